/**
 * Yields objects a CPU-second of lists over `but not` and `and` in the engine alone, one thread, in slices as in a worker, and what they
 * read of the budget; and bytes of one list of the most documents. `highWaterBytes` is the most that heap and buffers grew by while it
 * ran, garbage with it; `reachableBytes` the same after collections, every 50 ms and at its end.
 * Run: npm run bench -- list-exclusions-engine. BENCH_SIZES (800,10000,100000) are numbers of documents, BENCH_SECONDS (2) the length of
 * a round, BENCH_ROUNDS (5). Prints one JSON line a size and relation.
 */
import { TupleIndex } from '../src/cache/tuple-index.ts';
import type { EvaluationTask } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { parseGate } from '../src/language/gate/parse-gate.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import { systemClock } from '../src/shared/clock.ts';
import { reachableBytes } from '../test/support/reachable-memory.ts';
import {
  BANNED_WORLD_GATE,
  BannedWorld,
  LISTED_RELATIONS,
  type ListedRelation,
} from './dataset/banned-world.ts';
import { median } from './harness/median.ts';
import { mustHold } from './harness/micro-bench.ts';
import { report } from './index-data.ts';
import { insertOf } from './worker-data.ts';

const SIZES = (process.env['BENCH_SIZES'] ?? '800,10000,100000').split(',').map(Number);
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const READ_BUDGET = 1_000_000_000;
const SLICE_MS = 2;
const COLLECT_EVERY_SLICES = 25;

type Lists = { readonly world: BannedWorld; readonly evaluator: Evaluator };

function listsOf(documents: number): Lists {
  const world = new BannedWorld(documents);
  const index = new TupleIndex();
  for (const { op, tuple } of world.tuples.map(insertOf)) index.applyChange(op, tuple);
  const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
  const model = parseModel(parseGate(BANNED_WORLD_GATE).json);
  return { world, evaluator: new Evaluator(index, model, options, systemClock) };
}

function start(of: Lists, relation: ListedRelation, user: number) {
  const query = { namespace: 'doc', relation, userId: of.world.users[user] ?? '' };
  return of.evaluator.startListObjects(query, Date.now(), READ_BUDGET);
}

function finish(task: EvaluationTask<readonly string[]>, onSlice = (): void => undefined) {
  while (task.run(systemClock.monotonicMs() + SLICE_MS) === 'more') onSlice();
  onSlice();
  return task.result();
}

/** Fails unless each user's list is right; returns the reads of the longest. */
function readsOfRight(of: Lists, relation: ListedRelation): number {
  const reads = of.world.users.map((_, user) => {
    const task = start(of, relation, user);
    const found = finish(task).join();
    mustHold(found === of.world.list(relation, user).join(), `${relation} of user ${user}`);
    return task.reads ?? 0;
  });
  return Math.max(...reads);
}

function objectsPerCpuSecond(of: Lists, relation: ListedRelation): number {
  const endMs = performance.now() + SECONDS * 1000;
  const before = process.cpuUsage();
  let objects = 0;
  for (let user = 0; performance.now() < endMs; user = (user + 1) % of.world.users.length) {
    objects += finish(start(of, relation, user)).length;
  }
  const { user, system } = process.cpuUsage(before);
  return objects / ((user + system) / 1e6);
}

/** How much heap and buffers grow by while one list is made, with it. */
function bytesOf(of: Lists, relation: ListedRelation) {
  const used = (): number => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const growth = (everySlices: number, bytes: () => number): number => {
    const before = reachableBytes();
    let [most, slices] = [0, 0];
    const look = (): void => void (most = Math.max(most, bytes() - before));
    const task = start(of, relation, 0);
    const list = finish(task, () => {
      if (slices++ % everySlices === 0) look();
    });
    look();
    mustHold(task.result() === list, 'a list is held while it is weighed');
    return most;
  };
  return {
    highWaterBytes: growth(1, used),
    reachableBytes: growth(COLLECT_EVERY_SLICES, reachableBytes),
  };
}

const weighed = Math.max(...SIZES);
for (const documents of SIZES) {
  const lists = listsOf(documents);
  const reads = LISTED_RELATIONS.map((relation) => readsOfRight(lists, relation));
  const rates = LISTED_RELATIONS.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    LISTED_RELATIONS.forEach((relation, i) => rates[i]?.push(objectsPerCpuSecond(lists, relation)));
  }
  LISTED_RELATIONS.forEach((relation, i) => {
    report('list-exclusions-engine', {
      documents,
      relation,
      objects: lists.world.list(relation, 0).length,
      objectsPerCpuSecond: Math.round(median(rates[i] ?? [])),
      reads: reads[i],
      ...(documents === weighed ? bytesOf(lists, relation) : {}),
    });
  });
}
