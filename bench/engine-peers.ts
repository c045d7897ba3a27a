/**
 * Checks of the engine alone, beside what peers reach on the same data: one thread, ids interned, every answer compared
 * before anything is timed. [DATA_DIR] has data of peers, else it is the data set at its scale.
 */
import { Bench } from 'tinybench';
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { parseModel } from '../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../src/model/tuple-reader.ts';
import { systemClock } from '../src/shared/time/clock.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import type { Question } from '../test/support/dataset/questions.ts';
import { OPTIONS, report } from './harness/options.ts';
import { inKeyOrder, peerTuples, peerWorkloads, rowOf } from './harness/peer-data.ts';

const READ_BUDGET = 10_000;
const NS_PER_MS = 1e6;

const [directory] = process.argv.slice(2);
const index = new TupleIndex();
for (const row of inKeyOrder(peerTuples(directory).map(rowOf))) index.insert(row);
const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
const evaluator = new Evaluator(index, parseModel(DATASET_MODEL_JSON), options, systemClock);
const nowMs = Date.now();

/** Object, relation and user of each question, as the evaluator takes them. */
function idsOf(questions: readonly Question[]): Uint32Array {
  const [doc, viewer] = [index.nameId('doc'), index.nameId('viewer')];
  return Uint32Array.from(
    questions.flatMap(({ objectId, userId }) => [
      index.entityId(doc, objectId),
      viewer,
      index.entityId(EMPTY_NAME, userId),
    ]),
  );
}

function check(ids: Uint32Array, at: number): number {
  const [object, relation, user] = [ids[at], ids[at + 1], ids[at + 2]] as [number, number, number];
  return evaluator.checkUser(object, relation, user, nowMs, READ_BUDGET);
}

const workloads = peerWorkloads(directory);
if (workloads.size === 0) throw new Error(`${directory} has no file of questions`);
for (const [workload, questions] of workloads) {
  const ids = idsOf(questions);
  const codes = questions.map((_, i) => check(ids, 3 * i));
  const wrong = codes.filter((code, i) => (code === CHECK_ALLOWED) !== questions[i]?.allow).length;
  if (wrong > 0) throw new Error(`${workload}: ${wrong} answers are wrong`);
  const bench = new Bench({
    time: OPTIONS.rounds * OPTIONS.seconds * 1000,
    iterations: 5,
    throws: true,
  });
  let allowed = 0;
  bench.add(workload, () => {
    for (let at = 0; at < ids.length; at += 3) if (check(ids, at) === CHECK_ALLOWED) allowed++;
  });
  const [task] = await bench.run();
  if (task?.result?.state !== 'completed' || allowed === 0) throw new Error(`${workload} failed`);
  const { p50, min } = task.result.latency;
  report({
    workload,
    tuples: index.tupleCount,
    checks: questions.length,
    allowedShare: questions.filter(({ allow }) => allow).length / questions.length,
    generalShare: codes.filter((code) => code === CHECK_GENERAL).length / questions.length,
    medianNs: (p50 * NS_PER_MS) / questions.length,
    fastestNs: (min * NS_PER_MS) / questions.length,
    medianPerSecond: Math.round((questions.length / p50) * 1000),
  });
}
