import { stringify } from 'yaml';
import { type RelationTuple, subjectText } from '../../model/relation-tuple.ts';
import type { ImportedCheck, ImportedList, ImportedSuite } from './import-suite.ts';

/**
 * A suite as a file of assertions, in the form of docs/models.md. `modelFile` is the path of the
 * model, relative to the file. Leaves out tests without an assertion; undefined if that leaves
 * none. O(size).
 */
export function assertionFileOf(suite: ImportedSuite, modelFile: string): string | undefined {
  const tests = suite.tests
    .filter(({ checks, lists }) => checks.length + lists.length > 0)
    .map(({ name, tuples, checks, lists }) => ({
      name,
      ...(tuples.length === 0 ? {} : { tuples: tuples.map(tupleEntry) }),
      ...entriesOf('allow', checks, true),
      ...entriesOf('deny', checks, false),
      ...(lists.length === 0 ? {} : { list_objects: lists.map(listEntry) }),
    }));
  if (tests.length === 0) return undefined;
  const shared = suite.tuples.length === 0 ? {} : { tuples: suite.tuples.map(tupleEntry) };
  return stringify({ model_file: modelFile, ...shared, tests }, { lineWidth: 0 });
}

function tupleEntry(tuple: RelationTuple): object | string {
  const { namespace, objectId, relation, subject } = tuple;
  const { conditionName, conditionParams, expiresAtUs } = tuple;
  const text = `${namespace}:${objectId}#${relation}@${subjectText(subject)}`;
  if (conditionName === undefined && expiresAtUs === undefined) return text;
  return {
    tuple: text,
    ...(conditionName === undefined ? {} : { condition: conditionName }),
    ...(conditionParams === undefined ? {} : { params: JSON.parse(conditionParams) as object }),
    ...(expiresAtUs === undefined ? {} : { expires_at: instantText(expiresAtUs) }),
  };
}

function instantText(us: bigint): string {
  const fraction = String(us % 1_000_000n).padStart(6, '0');
  return `${new Date(Number(us / 1000n)).toISOString().slice(0, 19)}.${fraction}Z`;
}

function entriesOf(
  member: 'allow' | 'deny',
  checks: readonly ImportedCheck[],
  isAllowed: boolean,
): object {
  const entries = checks
    .filter((check) => check.isAllowed === isAllowed)
    .map(({ namespace, objectId, relation, subject, contextJson }) => {
      const check = `${namespace}:${objectId}#${relation}@${subjectText(subject)}`;
      return contextJson === '' ? check : { check, context: JSON.parse(contextJson) as object };
    });
  return entries.length === 0 ? {} : { [member]: entries };
}

function listEntry({ namespace, relation, userId, ids }: ImportedList): object {
  const objects = ids.map((id) => `${namespace}:${id}`);
  return { user: `user:${userId}`, type: namespace, assertions: { [relation]: objects } };
}
