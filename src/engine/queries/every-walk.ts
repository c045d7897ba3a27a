import type { BoundModel, Op } from '../bound/bound-model.ts';

/** Of each namespace and tupleset ("5 7") the relations that some rewrite looks for behind its tuples. */
export type EveryWalk = ReadonlyMap<string, ReadonlySet<number>>;

const known = new WeakMap<BoundModel, EveryWalk>();

/** The walks of all rewrites, on whichever side of an operator. O(model) once for each model. */
export function everyWalk(model: BoundModel): EveryWalk {
  const found = known.get(model);
  if (found !== undefined) return found;
  const all = new Map<string, Set<number>>();
  const visit = (namespace: number, { walks, children }: Op): void => {
    for (let i = 0; i < walks.length; i += 2) {
      const key = `${namespace} ${walks[i]}`;
      const relations = all.get(key) ?? new Set();
      all.set(key, relations.add(walks[i + 1] as number));
    }
    for (const child of children) visit(namespace, child);
  };
  for (const { namespace, root } of model.programs) visit(namespace, root);
  known.set(model, all);
  return all;
}
