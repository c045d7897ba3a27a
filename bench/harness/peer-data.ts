import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TupleRow } from '../../src/cache/tuple-row.ts';
import { mixedQuestions, type Question } from '../../test/support/dataset/questions.ts';
import { type NeutralTuple, World } from '../../test/support/dataset/world.ts';
import { OPTIONS, SEED } from './options.ts';

const QUESTIONS = 50_000;
/** Files of questions that a directory of data may hold. */
const WORKLOADS = ['direct', 'nested', 'mixu', 'mix'];

/** Tuples that peers are measured on: `tuples.jsonl` of a directory, without one the data set at its scale. */
export function peerTuples(directory: string | undefined): readonly NeutralTuple[] {
  if (directory === undefined) return new World(OPTIONS.scale, SEED).tuples;
  return linesOf<NeutralTuple>(directory, 'tuples');
}

/**
 * Checks "may this user view this document?" with their answers, by workload: any of `direct.jsonl`, `nested.jsonl`,
 * `mixu.jsonl` (uniform) and `mix.jsonl` (Zipf) of a directory, without one both mixes of the data set.
 */
export function peerWorkloads(
  directory: string | undefined,
): ReadonlyMap<string, readonly Question[]> {
  if (directory === undefined) {
    const world = new World(OPTIONS.scale, SEED);
    return new Map([
      ['mixu', mixedQuestions(world, QUESTIONS, 'uniform')],
      ['mix', mixedQuestions(world, QUESTIONS, 'zipf')],
    ]);
  }
  const workloads = WORKLOADS.map((name): [string, Question[]] => [
    name,
    linesOf<NeutralTuple & { readonly allow?: boolean }>(directory, name).map((line) => ({
      objectId: line.object_id,
      userId: line.subject.slice('user:'.length),
      allow: line.allow === true,
    })),
  ]);
  return new Map(workloads.filter(([, questions]) => questions.length > 0));
}

/** Lines of a file of JSON lines; none of a file that is not there. */
function linesOf<T>(directory: string, name: string): T[] {
  const path = join(directory, `${name}.jsonl`);
  const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as T);
}

/** Columns of a tuple of the data. */
export function rowOf({
  namespace,
  object_id: objectId,
  relation,
  subject,
}: NeutralTuple): TupleRow {
  const colon = subject.indexOf(':');
  const hash = subject.indexOf('#');
  const subjectNamespace = subject.slice(0, colon);
  return {
    namespace,
    objectId,
    relation,
    subjectNamespace: subjectNamespace === 'user' ? '' : subjectNamespace,
    subjectId: subject.slice(colon + 1, hash < 0 ? undefined : hash),
    subjectRelation: hash < 0 ? '' : subject.slice(hash + 1),
  };
}

/** The six columns of the key, as the table and its snapshots order them. */
export function columnsOf(row: TupleRow): readonly string[] {
  const { namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation } = row;
  return [namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation];
}

/** Rows in the order of the table's key; ids of the data are ASCII, so that code units order as the table does. */
export function inKeyOrder(rows: readonly TupleRow[]): TupleRow[] {
  const keyed = rows.map((row) => [columnsOf(row).join('\u0001'), row] as const);
  return keyed.sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([, row]) => row);
}
