import { isTyped, hasThis, relationPath, walkRewrite } from './model-references.ts';
import type { NamespaceModel, Rewrite } from './model-shape.ts';
import { subjectText } from './model-subjects.ts';
import { ModelTypes, NO_KINDS, canExclude } from './model-types.ts';

type ExclusionReport = (path: string, message: string) => void;
type Exclusion = Rewrite & { readonly op: 'exclusion' };

/**
 * Reports parts of a model without effect. `error` gets exclusions that can never exclude anyone, by the types of both
 * sides. `warn` gets what is only probably a mistake. The references of the model must be valid. Cost: O(model),
 * bounded.
 */
export function findMootParts(
  model: NamespaceModel,
  error: ExclusionReport,
  warn: ExclusionReport,
): void {
  const types = new ModelTypes(model);
  if (!types.isComplete) {
    warn('$', 'is too large for a look at whom its exclusions can exclude');
    return;
  }
  for (const [namespace, relations] of model.namespaces) {
    for (const [relation, rewrite] of relations) {
      walkRewrite(rewrite, relationPath(namespace, relation), (inner, path) => {
        if (inner.op === 'exclusion') {
          checkExclusion(model, types, { namespace, relation, path, error, warn }, inner);
        }
        if (inner.op !== 'tupleToUserset') return;
        checkTupleset(model, namespace, inner.tupleset, `${path}.tuple_to_userset.tupleset`, warn);
      });
      if (isTyped(model) && types.ofRewrite(namespace, relation, rewrite) === NO_KINDS) {
        warn(
          relationPath(namespace, relation),
          'can never hold for anybody, by the types that it admits',
        );
      }
    }
  }
}

type ExclusionContext = {
  readonly namespace: string;
  readonly relation: string;
  readonly path: string;
  readonly error: ExclusionReport;
  readonly warn: ExclusionReport;
};

function checkExclusion(
  model: NamespaceModel,
  types: ModelTypes,
  { namespace, relation, path, error, warn }: ExclusionContext,
  { include, exclude }: Exclusion,
): void {
  const included = types.ofRewrite(namespace, relation, include);
  const excluded = types.ofRewrite(namespace, relation, exclude);
  const excludePath = `${path}.exclusion.exclude`;
  if (included !== NO_KINDS && !canExclude(included, excluded)) {
    error(
      excludePath,
      'can never exclude anybody: it has no type of subject in common with include',
    );
    return;
  }
  if (JSON.stringify(include) === JSON.stringify(exclude)) {
    warn(`${path}.exclusion`, 'excludes what it includes, so it can never hold');
  }
  if (isMoot(model, namespace, exclude)) {
    warn(excludePath, 'can never exclude anybody: no tuple of its tupleset counts');
  }
  for (const source of storedSources(model, namespace, relation, exclude)) {
    for (const type of model.subjects.get(namespace)?.get(source) ?? []) {
      if (included === NO_KINDS || canExclude(included, types.ofType(type))) continue;
      const text = subjectText(type);
      warn(excludePath, `"${text}" on "${source}" can never exclude anybody that include holds`);
    }
  }
}

/** Whether a rewrite can never hold, as far as this is decidable without types. */
function isMoot(model: NamespaceModel, namespace: string, rewrite: Rewrite): boolean {
  if (isTyped(model) || model.open.has(namespace)) return false;
  switch (rewrite.op) {
    case 'this':
    case 'computed':
      return false;
    case 'tupleToUserset': {
      const tupleset = model.namespaces.get(namespace)?.get(rewrite.tupleset);
      return tupleset !== undefined && !hasThis(tupleset);
    }
    case 'union':
      return rewrite.children.every((child) => isMoot(model, namespace, child));
    case 'intersection':
      return rewrite.children.some((child) => isMoot(model, namespace, child));
    case 'exclusion':
      return isMoot(model, namespace, rewrite.include);
  }
}

/** Relations of the same object whose stored tuples count directly for a rewrite. */
function storedSources(
  model: NamespaceModel,
  namespace: string,
  relation: string,
  rewrite: Rewrite,
): ReadonlySet<string> {
  const sources = new Set<string>();
  const seen = new Set<string>();
  const visit = (inner: Rewrite, of: string): void => {
    switch (inner.op) {
      case 'this':
        sources.add(of);
        return;
      case 'computed': {
        if (seen.has(inner.relation)) return;
        seen.add(inner.relation);
        const next = model.namespaces.get(namespace)?.get(inner.relation);
        if (next !== undefined) visit(next, inner.relation);
        return;
      }
      case 'union':
        for (const child of inner.children) visit(child, of);
        return;
      case 'intersection':
      case 'exclusion':
      case 'tupleToUserset':
        // These hold more than the tuples of one relation.
        return;
    }
  };
  visit(rewrite, relation);
  return sources;
}

/** Warns of a tupleset that has a rewrite: only its stored tuples are followed, whatever the rewrite is. */
function checkTupleset(
  model: NamespaceModel,
  namespace: string,
  tupleset: string,
  path: string,
  warn: ExclusionReport,
): void {
  const rewrite = model.namespaces.get(namespace)?.get(tupleset);
  if (rewrite === undefined || rewrite.op === 'this') return;
  warn(path, `follows the stored tuples of "${tupleset}" only, not what its rewrite holds`);
}
