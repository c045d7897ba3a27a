/**
 * Yields milliseconds of a ListSubjects of 100,000 users in the engine, one thread: whole, in pages, through
 * groups, with bans and an intersection; and what each page costs of the whole.
 * Run: npm run bench -- list-subjects [-- USERS] [ROUNDS]
 *
 * Each counts by its fastest round. Prints one JSON line a list.
 */
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import type { GeneralEvaluator } from '../src/engine/general-evaluator.ts';
import { listSubjects } from '../src/engine/queries/list-subjects.ts';
import { StepsTask } from '../src/engine/queries/steps-task.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import type { Subject } from '../src/model/relation-tuple.ts';
import type { ListPage } from '../src/model/subject-list.ts';
import { systemClock } from '../src/shared/clock.ts';
import { mustHold } from './harness/micro-bench.ts';

const [users = 100_000, rounds = 9] = process.argv.slice(2).map(Number);
const READ_BUDGET = 10_000;
const SLICE_MS = 2;
/** Users of one group. */
const GROUP_USERS = 500;
const MODEL = parseModel(
  JSON.stringify({
    namespaces: {
      doc: {
        relations: {
          viewer: {},
          guest: {},
          banned: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
          both: { intersection: [{ computed: 'viewer' }, { computed: 'guest' }] },
        },
      },
    },
  }),
);

const index = new TupleIndex();
const user = (i: number): Subject => ({ kind: 'user', userId: `user-${(i * 7919) % users}` });
const insert = (namespace: string, objectId: string, relation: string, subject: Subject): void =>
  void index.applyChange('insert', { namespace, objectId, relation, subject });
for (let i = 0; i < users; i++) {
  const group = `g${Math.floor(i / GROUP_USERS)}`;
  insert('doc', 'direct', 'viewer', user(i));
  if (i % 2 === 0) insert('doc', 'direct', 'guest', user(i));
  if (i % 10 === 0) insert('doc', 'direct', 'banned', user(i));
  insert('group', group, 'member', user(i));
  if (i % GROUP_USERS > 0) continue;
  const members: Subject = {
    kind: 'set',
    namespace: 'group',
    objectId: group,
    relation: 'member',
  };
  insert('doc', 'grouped', 'viewer', members);
}
const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
const evaluator = new Evaluator(index, MODEL, options, systemClock).general;

/** Ids of one list, and how long it took; in slices, as in a worker. */
function measure(of: GeneralEvaluator, objectId: string, relation: string, page: ListPage) {
  const startedMs = performance.now();
  const scope = of.scope('list', '', Date.now(), READ_BUDGET);
  const entity = index.entityId(index.nameId('doc'), objectId);
  const steps = listSubjects(scope, { entity, relation: index.nameId(relation) }, page);
  const task = new StepsTask(scope, steps);
  let longestMs = 0;
  for (;;) {
    const sliceMs = performance.now();
    const progress = task.run(systemClock.monotonicMs() + SLICE_MS);
    longestMs = Math.max(longestMs, performance.now() - sliceMs);
    if (progress === 'done') break;
  }
  const list = task.result();
  return { list, ms: performance.now() - startedMs, longestMs, reads: scope.reads };
}

const middle = `user-${Math.floor(users / 2)}`;
const ALL = { after: '', idsMax: Infinity };
for (const [name, objectId, relation, page, count] of [
  ['whole', 'direct', 'viewer', ALL, users],
  ['whole, with bans', 'direct', 'reader', ALL, users - Math.ceil(users / 10)],
  ['whole, intersected', 'direct', 'both', ALL, Math.ceil(users / 2)],
  ['whole, of groups of 500', 'grouped', 'viewer', ALL, users],
  ['first page of 1,000', 'direct', 'reader', { after: '', idsMax: 1_000 }, 1_000],
  ['middle page of 1,000', 'direct', 'reader', { after: middle, idsMax: 1_000 }, 1_000],
  ['page of 10,000', 'direct', 'reader', { after: '', idsMax: 10_000 }, 10_000],
] as const) {
  const times: number[] = [];
  const slices: number[] = [];
  let reads = 0;
  for (let round = 0; round < rounds; round++) {
    const measured = measure(evaluator, objectId, relation, page);
    mustHold(measured.list.userIds.length === count, `${name} lists ${count}`);
    times.push(measured.ms);
    slices.push(measured.longestMs);
    reads = measured.reads;
  }
  const ms = Math.round(Math.min(...times) * 10) / 10;
  const longestSliceMs = Math.round(Math.min(...slices) * 10) / 10;
  process.stdout.write(
    `${JSON.stringify({ name: `list-subjects: ${name}`, users, ms, longestSliceMs, reads })}\n`,
  );
}
