import type { UsersetRef } from '../../src/model/expand-tree.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import {
  keyOf,
  type ReferenceEvaluator,
  type ReferenceTarget,
  type ReferenceValue,
  type WeighedTuple,
} from './reference-evaluator.ts';
import { NOW_MS, USERS } from './worlds.ts';

type ValuesOf = (target: ReferenceTarget) => ReadonlyMap<string, ReferenceValue>;

/** The conditions that generated worlds use, decided again; expired tuples and those decided false are left out. */
export function weighTuples(tuples: readonly RelationTuple[], contextJson: string): WeighedTuple[] {
  const context = (contextJson === '' ? {} : JSON.parse(contextJson)) as { age?: unknown };
  return tuples.flatMap((tuple): WeighedTuple[] => {
    if (tuple.expiresAtUs !== undefined && BigInt(NOW_MS) * 1000n >= tuple.expiresAtUs) return [];
    if (tuple.conditionName === undefined) return [{ tuple, weight: 'true' }];
    const isDecided =
      tuple.conditionName === 'age_at_least' &&
      tuple.conditionParams === '{"min_age":18}' &&
      typeof context.age === 'number';
    if (!isDecided) return [{ tuple, weight: 'undecided' }];
    return (context.age as number) >= 18 ? [{ tuple, weight: 'true' }] : [];
  });
}

/** Remembers the values of each target. */
export function memoizedValues(valuesOf: ValuesOf): ValuesOf {
  const known = new Map<string, ReadonlyMap<string, ReferenceValue>>();
  return (target) => {
    const key = JSON.stringify(target);
    let values = known.get(key);
    if (values === undefined) known.set(key, (values = valuesOf(target)));
    return values;
  };
}

/**
 * Check with the third value. Of an exact userset it is its own value, of another one it is the greatest of its own value and, over every user of the worlds,
 * of the lesser of "is a member of it" and "holds the object". But a wildcard adds no members: users count who are
 * stored below it, and those who are stored by undecided tuples alone may be members at most.
 */
export function decisionOf(
  reference: ReferenceEvaluator,
  ref: UsersetRef,
  subject: Subject,
  valuesOf: ValuesOf,
  isExact = false,
): ReferenceValue {
  const key = keyOf(ref, false);
  if (subject.kind === 'wildcard' || subject.kind === 'wildcardOf') return 'false';
  if (subject.kind === 'user') return valuesOf(subject).get(key) ?? 'false';
  const { namespace, objectId, relation } = subject;
  const set = { namespace, objectId, relation };
  if (isSame(set, ref)) return 'true';
  if (isExact) return valuesOf({ kind: 'set', ref: set, isExact }).get(key) ?? 'false';
  let value = valuesOf({ kind: 'set', ref: set }).get(key) ?? 'false';
  const [certain, stored] = [reference.usersBelow(set, false), reference.usersBelow(set, true)];
  for (const userId of USERS) {
    if (!stored.has(userId)) continue;
    const values = valuesOf({ kind: 'user', userId });
    const member = values.get(keyOf(set, false)) ?? 'false';
    const both = least(member, values.get(key) ?? 'false');
    value = greatest(value, certain.has(userId) ? both : least(both, 'cut'));
  }
  // Who is stored below it by an undecided tuple alone allows nothing, although a wildcard makes the user a member.
  return value === 'true' && !reference.check(ref, subject, valuesOf) ? 'cut' : value;
}

const RANK = { false: 0, cut: 1, true: 2 } as const;

function least(a: ReferenceValue, b: ReferenceValue): ReferenceValue {
  return RANK[a] <= RANK[b] ? a : b;
}

function greatest(a: ReferenceValue, b: ReferenceValue): ReferenceValue {
  return RANK[a] >= RANK[b] ? a : b;
}

function isSame(a: UsersetRef, b: UsersetRef): boolean {
  return a.namespace === b.namespace && a.objectId === b.objectId && a.relation === b.relation;
}
