/**
 * Checks of the engine alone by named versions of a typed model, beside the model in force, which counts all stored tuples.
 * In turns, each answer compared before: without misfits; with a tenth of the tuples as misfits, whose hot path ignores
 * them; the general evaluation of the same; and five versions one after the other, of which four stay bound.
 */
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { admittedOnly } from '../src/model/namespace/model-references.ts';
import { type NamespaceModel, parseModel } from '../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../src/model/tuple-reader.ts';
import { systemClock } from '../src/shared/time/clock.ts';
import { BoundEngines } from '../src/workers/jobs/bound-engine.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { type Contestant, inTurns, type Turn } from './harness/in-turns.ts';
import { OPTIONS, report } from './harness/options.ts';
import { inKeyOrder, peerTuples, peerWorkloads, rowOf } from './harness/peer-data.ts';

const READ_BUDGET = 10_000;
const ENGINE = { depthMax: 256, membershipBytesMax: 64 << 20 };
/** Checks between two looks at the clock. */
const STEP = 100;
const CHECKS = 10_000;
const VERSIONS = 5;
/** One misfit to nine tuples that fit. */
const FITTING_OF_TEN = 9;

type Tuple = ReturnType<typeof peerTuples>[number];
type Relations = Record<string, { subjects?: string[]; union?: unknown[]; this?: object }>;

/** The model of the data set, with the subjects that the tuples have. */
function typedModelJson(tuples: readonly Tuple[]): string {
  const document = JSON.parse(DATASET_MODEL_JSON) as {
    namespaces: Record<string, { relations: Relations }>;
  };
  for (const { namespace, relation, subject } of tuples) {
    const [type = '', tail = ''] = subject.split(':');
    const [, userset] = tail.split('#');
    const text = userset === undefined ? type : `${type}#${userset}`;
    const { relations } = (document.namespaces[namespace] ??= { relations: {} });
    const { subjects } = { subjects: [], ...relations[relation] };
    relations[relation] = { ...relations[relation], subjects: [...new Set([...subjects, text])] };
    if (userset === undefined) continue;
    (document.namespaces[type] ??= { relations: {} }).relations[userset] ??= { subjects: ['user'] };
  }
  return JSON.stringify(document);
}

const tuples = peerTuples(process.argv[2]);
const json = typedModelJson(tuples);
const fitting = new TupleIndex();
const mixed = new TupleIndex();
for (const [i, row] of inKeyOrder(tuples.map(rowOf)).entries()) {
  fitting.insert(row);
  mixed.insert(row);
  // Of a type that no relation admits, beside the tuple of a subject that it does admit.
  if (i % FITTING_OF_TEN === 0)
    mixed.insert({ ...row, subjectNamespace: 'robot', subjectId: `${i}`, subjectRelation: '' });
}
const nowMs = Date.now();
const questions = (peerWorkloads(process.argv[2]).get('mixu') ?? []).slice(0, CHECKS);
if (questions.length === 0) throw new Error('there are no questions');

type Check = (at: number) => boolean;

function idsOf(index: TupleIndex): Uint32Array {
  const [doc, viewer] = [index.nameId('doc'), index.nameId('viewer')];
  return Uint32Array.from(
    questions.flatMap(({ objectId, userId }) => [
      index.entityId(doc, objectId),
      viewer,
      index.entityId(EMPTY_NAME, userId),
    ]),
  );
}

function hotCheck(index: TupleIndex, evaluatorAt: (i: number) => Evaluator): Check {
  const ids = idsOf(index);
  return (i) => {
    const [object, relation, user] = [ids[3 * i], ids[3 * i + 1], ids[3 * i + 2]] as [
      number,
      number,
      number,
    ];
    const code = evaluatorAt(i).checkUser(object, relation, user, nowMs, READ_BUDGET);
    if (code === CHECK_GENERAL) throw new Error('a Check left the hot path');
    return code === CHECK_ALLOWED;
  };
}

function generalCheck(index: TupleIndex, evaluator: Evaluator): Check {
  const ids = idsOf(index);
  return (i) => {
    const [object, relation, user] = [ids[3 * i], ids[3 * i + 1], ids[3 * i + 2]] as [
      number,
      number,
      number,
    ];
    const task = evaluator.startCheckIds(object, relation, user, nowMs, READ_BUDGET);
    while (task.run(Number.POSITIVE_INFINITY) === 'more');
    return task.result();
  };
}

function contestant(name: string, check: Check): Contestant {
  const wrong = questions.filter(({ allow }, i) => check(i) !== allow).length;
  if (wrong > 0) throw new Error(`${name}: ${wrong} answers are wrong`);
  const turn = (): Promise<Turn> => {
    const before = process.cpuUsage();
    const startMs = performance.now();
    let operations = 0;
    while (performance.now() - startMs < OPTIONS.seconds * 1000) {
      for (let k = 0; k < STEP; k++) check((operations + k) % questions.length);
      operations += STEP;
    }
    const { user, system } = process.cpuUsage(before);
    return Promise.resolve({
      operations,
      seconds: (performance.now() - startMs) / 1000,
      operationsInAll: operations,
      cpuSeconds: (user + system) / 1e6,
      generatorCores: 0,
      p50Ms: Number.NaN,
      p99Ms: Number.NaN,
    });
  };
  return { name, turn };
}

const evaluatorOf = (index: TupleIndex, model: NamespaceModel): Evaluator =>
  new Evaluator(index, model, ENGINE, systemClock);
const inForce = evaluatorOf(fitting, parseModel(json));
const named = evaluatorOf(fitting, admittedOnly(parseModel(json)));
const ignoring = evaluatorOf(mixed, admittedOnly(parseModel(json)));
const models = Array.from({ length: VERSIONS }, () => admittedOnly(parseModel(json)));
const rotating = (count: number): Check => {
  const engines = new BoundEngines(ENGINE, systemClock);
  const index = { reader: fitting };
  return hotCheck(fitting, (i) => engines.of(index, models[i % count] as NamespaceModel).evaluator);
};
const rows = await inTurns([
  contestant(
    'the model in force',
    hotCheck(fitting, () => inForce),
  ),
  contestant(
    'a named version',
    hotCheck(fitting, () => named),
  ),
  contestant(
    'a named version, a tenth are misfits',
    hotCheck(mixed, () => ignoring),
  ),
  contestant('the same by the general evaluation', generalCheck(mixed, ignoring)),
  contestant('four named versions by turns', rotating(VERSIONS - 1)),
  contestant('five named versions by turns', rotating(VERSIONS)),
]);
for (const { contestant: name, perCpuSecond, firstPerCpuSecond, quartiles } of rows) {
  report({ tuples: fitting.tupleCount, checks: name, perCpuSecond, firstPerCpuSecond, quartiles });
}
