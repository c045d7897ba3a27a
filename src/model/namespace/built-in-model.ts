import type { Rewrite } from './model-shape.ts';

/** Built-in namespace that is merged only into documents without namespaces. */
export const RESOURCE_NAMESPACE = 'resource';

const own: Rewrite = { op: 'this' };

function unionOf(...children: readonly Rewrite[]): Rewrite {
  return { op: 'union', children: [own, ...children] };
}

function computed(relation: string): Rewrite {
  return { op: 'computed', relation };
}

function fromParent(relation: string): Rewrite {
  return { op: 'tupleToUserset', tupleset: 'parent', computed: relation };
}

/** Built-in namespaces of the service, as in the table of its specification. */
export const BUILT_IN_NAMESPACES: ReadonlyMap<string, ReadonlyMap<string, Rewrite>> = new Map([
  [
    'workspace',
    new Map([
      ['owner', own],
      ['admin', unionOf(computed('owner'))],
      ['member', unionOf(computed('admin'))],
      ['guest', unionOf(computed('member'))],
    ]),
  ],
  ['group', new Map([['member', own]])],
  [
    RESOURCE_NAMESPACE,
    new Map([
      ['parent', own],
      ['owner', own],
      ['editor', unionOf(computed('owner'), fromParent('admin'))],
      ['viewer', unionOf(computed('editor'), fromParent('member'))],
    ]),
  ],
]);
