import fc from 'fast-check';
import type { UsersetRef } from '../../src/model/expand-tree.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';

/** Wall clock of every generated world. */
export const NOW_MS = 1_700_000_000_000;
export const NAMESPACES = ['doc', 'group', 'plain'];
export const RELATIONS = ['r0', 'r1', 'r2', 'r3', 'parent'];
export const OBJECTS = ['a', 'b', 'c'];
export const USERS = ['u0', 'u1', 'u2', 'nobody'];
export const CONTEXTS = ['', '{"age":17}', '{"age":30}', '{"age":"30"}'];

export type World = {
  readonly modelJson: string;
  readonly tuples: readonly RelationTuple[];
};

type RewriteJson = { readonly [member: string]: unknown };

/** Computed relations point to earlier ones, so that no model is refused for a computed cycle. */
function rewrites(relationIndex: number): fc.Arbitrary<RewriteJson> {
  const leaves: { arbitrary: fc.Arbitrary<RewriteJson>; weight: number }[] = [
    { weight: 3, arbitrary: fc.constantFrom<RewriteJson>({}, { this: {} }) },
    {
      weight: 2,
      arbitrary: fc.record({
        tuple_to_userset: fc.record({
          tupleset: fc.constantFrom('parent', 'r0'),
          computed: fc.constantFrom(...RELATIONS),
        }),
      }),
    },
  ];
  if (relationIndex > 0) {
    const earlier = fc.constantFrom(...RELATIONS.slice(0, relationIndex));
    leaves.push({ weight: 3, arbitrary: fc.record({ computed: earlier }) });
  }
  const { tree } = fc.letrec<{ tree: RewriteJson; leaf: RewriteJson }>((tie) => ({
    leaf: fc.oneof(...leaves),
    tree: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      tie('leaf'),
      fc.record({ union: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ intersection: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ exclusion: fc.record({ include: tie('tree'), exclude: tie('tree') }) }),
    ),
  }));
  return tree;
}

const namespaceModels = fc.record({
  relations: fc.record(
    Object.fromEntries(RELATIONS.map((relation, index) => [relation, rewrites(index)])),
    { requiredKeys: ['r1', 'r2'] },
  ),
});

const models = fc
  .record({ doc: namespaceModels, group: namespaceModels })
  .map((namespaces) => JSON.stringify({ schema_version: 1, namespaces }));

const sets = fc.record({
  kind: fc.constant('set' as const),
  namespace: fc.constantFrom(...NAMESPACES),
  objectId: fc.constantFrom(...OBJECTS),
  relation: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...RELATIONS) },
    { weight: 2, arbitrary: fc.constant('') },
  ),
});

/** Every object of a namespace, of one without tuples too; and the object with the id that is written as such a wildcard. */
const typedWildcards = fc.oneof(
  fc.record({
    kind: fc.constant('wildcardOf' as const),
    namespace: fc.constantFrom(...NAMESPACES, 'ghost'),
  }),
  fc.record({
    kind: fc.constant('set' as const),
    namespace: fc.constantFrom(...NAMESPACES, 'ghost'),
    objectId: fc.constantFrom('*', 'never'),
    relation: fc.constant(''),
  }),
);

export const subjects: fc.Arbitrary<Subject> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('user' as const),
      userId: fc.constantFrom('u0', 'u1', 'u2'),
    }),
  },
  { weight: 6, arbitrary: sets },
  { weight: 1, arbitrary: fc.constant<Subject>({ kind: 'wildcard' }) },
  { weight: 3, arbitrary: typedWildcards },
);

const payloads = fc.oneof(
  { weight: 8, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.constant({ expiresAtUs: BigInt(NOW_MS) * 1000n }) },
  { weight: 1, arbitrary: fc.constant({ expiresAtUs: BigInt(NOW_MS) * 1000n + 1n }) },
  {
    weight: 2,
    arbitrary: fc.record({
      conditionName: fc.constantFrom('age_at_least', 'age_at_least', 'unheard_of'),
      conditionParams: fc.constantFrom('{"min_age":18}', '{"min_age":"x"}'),
    }),
  },
);

export const tuples: fc.Arbitrary<RelationTuple> = fc
  .record({
    namespace: fc.constantFrom(...NAMESPACES),
    objectId: fc.constantFrom(...OBJECTS),
    relation: fc.constantFrom(...RELATIONS),
    subject: subjects,
    payload: payloads,
  })
  .map(({ payload, ...key }) => ({ ...key, ...payload }));

export const worlds: fc.Arbitrary<World> = fc.record({
  modelJson: models,
  tuples: fc
    .array(tuples, { maxLength: 40, size: 'max' })
    .map((list) => [...new Map(list.map((tuple) => [identityOf(tuple), tuple])).values()]),
});

/** Shallow rules that mostly exclude or intersect, so that cycles pass through them. */
function tangledRewrites(relationIndex: number): fc.Arbitrary<RewriteJson> {
  const own = fc.constant<RewriteJson>({});
  const walk = fc.record({
    tuple_to_userset: fc.record({
      tupleset: fc.constant('parent'),
      computed: fc.constantFrom(...RELATIONS),
    }),
  });
  const earlier = fc.record({
    computed: fc.constantFrom(...RELATIONS.slice(0, Math.max(1, relationIndex))),
  });
  const leaf = relationIndex === 0 ? fc.oneof(own, walk) : fc.oneof(own, walk, earlier);
  const union = fc.record({ union: fc.array(leaf, { minLength: 2, maxLength: 3 }) });
  const operand = fc.oneof(leaf, leaf, union);
  const exclusion = fc.record({ exclusion: fc.record({ include: operand, exclude: operand }) });
  return fc.oneof(
    leaf,
    union,
    fc.record({ intersection: fc.tuple(operand, operand) }),
    exclusion,
    fc.record({ exclusion: fc.record({ include: operand, exclude: exclusion }) }),
    fc.record({ union: fc.tuple(leaf, exclusion) }),
  );
}

const tangledModels = fc
  .record(Object.fromEntries(RELATIONS.map((relation, i) => [relation, tangledRewrites(i)])))
  .map((relations) => JSON.stringify({ namespaces: { doc: { relations } } }));

/** Worlds of one namespace whose usersets hang together closely, for cycles and depth. */
export const knots: fc.Arbitrary<World> = fc.record({
  modelJson: fc.oneof(tangledModels, tangledModels, models),
  tuples: fc
    .array(
      fc.record({
        namespace: fc.constant('doc'),
        objectId: fc.constantFrom('a', 'b'),
        relation: fc.constantFrom(...RELATIONS),
        subject: fc.oneof(
          { weight: 2, arbitrary: fc.constant<Subject>({ kind: 'user', userId: 'u0' }) },
          {
            weight: 3,
            arbitrary: fc.record({
              kind: fc.constant('set' as const),
              namespace: fc.constant('doc'),
              objectId: fc.constantFrom('a', 'b'),
              relation: fc.constantFrom(...RELATIONS),
            }),
          },
        ),
      }),
      { maxLength: 16, size: 'max' },
    )
    .map((list) => [...new Map(list.map((tuple) => [identityOf(tuple), tuple])).values()]),
});

export function identityOf(tuple: RelationTuple): string {
  return JSON.stringify([tuple.namespace, tuple.objectId, tuple.relation, tuple.subject]);
}

/** Every userset of the small universe. */
export const ALL_REFS: readonly UsersetRef[] = NAMESPACES.flatMap((namespace) =>
  OBJECTS.flatMap((objectId) => RELATIONS.map((relation) => ({ namespace, objectId, relation }))),
);
