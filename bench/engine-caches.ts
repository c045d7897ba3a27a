/**
 * Yields how many times as many checks a second the engine answers with each of its caches as without it, one
 * thread, ids interned. A cache that is off remembers nothing, and what comes after it in the walk is done
 * instead, the general evaluation included.
 * Run: npm run bench -- engine-caches [--scale 10] [-- ROUNDS]
 *
 * Each measurement is a process of its own, so that the code is compiled for one kind of cache; they take
 * turns, and each counts by its fastest round. Prints one JSON line a cache.
 */
import { spawnSync } from 'node:child_process';
import { TupleIndex } from '../src/cache/tuple-index.ts';
import {
  CHECK_ALLOWED,
  CHECK_GENERAL,
  ENGINE_CACHES,
  type EngineCache,
} from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import { EMPTY_NAME } from '../src/model/tuple-reader.ts';
import { systemClock } from '../src/shared/clock.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { mustHold } from './harness/micro-bench.ts';
import { BENCH_SEED, insertOf } from './worker-data.ts';

const READ_BUDGET = 10_000;
const PASSES = 15;
const PASS_MS_MIN = 100;
const CHILD = '--measure';

/** Checks of a pass, and whether one is allowed. */
type Workload = { readonly checks: number; readonly check: (i: number) => boolean };

function optionsOf(cachesOff: readonly EngineCache[]) {
  return { depthMax: 256, membershipBytesMax: 64 << 20, cachesOff };
}

/** Documents in folders, shared with users and nested groups: checks of concrete users. */
function documents(cachesOff: readonly EngineCache[]): Workload {
  const world = new World(Number(process.env['BENCH_SCALE'] ?? '1'), BENCH_SEED);
  const questions = mixedQuestions(world, 50_000, 'uniform');
  const index = new TupleIndex();
  for (const tuple of world.tuples) {
    const { op, tuple: key } = insertOf(tuple);
    index.applyChange(op, key);
  }
  const model = parseModel(DATASET_MODEL_JSON);
  const evaluator = new Evaluator(index, model, optionsOf(cachesOff), systemClock);
  const [doc, viewer] = [index.nameId('doc'), index.nameId('viewer')];
  const objects = Uint32Array.from(questions, ({ objectId }) => index.entityId(doc, objectId));
  const users = Uint32Array.from(questions, ({ userId }) => index.entityId(EMPTY_NAME, userId));
  const nowMs = Date.now();
  const check = (i: number): boolean => {
    const [object, user] = [objects[i] as number, users[i] as number];
    const code = evaluator.checkUser(object, viewer, user, nowMs, READ_BUDGET);
    if (code !== CHECK_GENERAL) return code === CHECK_ALLOWED;
    const task = evaluator.startCheckIds(object, viewer, user, nowMs, READ_BUDGET);
    mustHold(task.run(Infinity) === 'done', 'an evaluation without a slice ends');
    return task.result();
  };
  for (let pass = 0; pass < 2; pass++) {
    const isRight = questions.every(({ allow }, i) => check(i) === allow);
    mustHold(isRight, 'every answer is right');
  }
  return { checks: questions.length, check };
}

/** Documents that are shared within networks, a hundred different lists of them. */
function networks(cachesOff: readonly EngineCache[]): Workload {
  const index = new TupleIndex();
  const checks = 2_000;
  for (let i = 0; i < checks; i++) {
    const list = i % 100;
    index.applyChange('insert', {
      namespace: 'doc',
      objectId: `d${i}`,
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' },
      conditionName: 'ip_in_cidrs',
      conditionParams: `{"cidrs":["10.${list}.0.0/16","192.168.${list}.0/24","fd00::/8"]}`,
    });
  }
  const model = parseModel(DATASET_MODEL_JSON);
  const evaluator = new Evaluator(index, model, optionsOf(cachesOff), systemClock);
  const check = (i: number): boolean => {
    const query = {
      namespace: 'doc',
      objectId: `d${i}`,
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' },
      contextJson: `{"ip":"10.${(i + (i % 2)) % 100}.1.1"}`,
    } as const;
    const task = evaluator.startCheck(query, 0, READ_BUDGET);
    mustHold(task.run(Infinity) === 'done', 'an evaluation without a slice ends');
    return task.result();
  };
  let allowed = 0;
  for (let i = 0; i < checks; i++) if (check(i)) allowed++;
  mustHold(allowed === checks / 2, 'half of the addresses lie in the networks');
  return { checks, check };
}

/** Checks a CPU second of the fastest pass: neighbours on the machine count less than by the wall clock. */
function fastest({ checks, check }: Workload): number {
  let best = 0;
  for (let pass = 0; pass < PASSES; pass++) {
    const start = process.cpuUsage();
    const endMs = performance.now() + PASS_MS_MIN;
    let count = 0;
    let allowed = 0;
    do {
      for (let i = 0; i < checks; i++) if (check(i)) allowed++;
      count += checks;
    } while (performance.now() < endMs);
    const { user, system } = process.cpuUsage(start);
    mustHold(allowed === count / 2, 'half of all questions are allowed');
    best = Math.max(best, count / ((user + system) / 1e6));
  }
  return best;
}

function measured(workload: string, cachesOff: readonly EngineCache[]): number {
  const args = [import.meta.filename, CHILD, workload, ...cachesOff];
  const { stdout, status } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  mustHold(
    status === 0,
    `the measurement of ${workload} without ${cachesOff.join(', ')} ends well`,
  );
  return Number(stdout);
}

const [flag, workload, ...cachesOff] = process.argv.slice(2);
if (flag === CHILD) {
  const make = workload === 'networks' ? networks : documents;
  console.log(fastest(make(cachesOff as EngineCache[])));
} else {
  const rounds = Number(flag ?? 3);
  const rows = ENGINE_CACHES.map((cache) => ({
    cache,
    workload: cache === 'conditions' ? 'networks' : 'documents',
    // Chains are made of lines: without lines there are none.
    both: cache === 'objects' ? (['chains'] as const) : [],
    withIt: 0,
    without: 0,
  }));
  for (let round = 0; round < rounds; round++) {
    for (const row of rows) {
      row.withIt = Math.max(row.withIt, measured(row.workload, row.both));
      row.without = Math.max(row.without, measured(row.workload, [...row.both, row.cache]));
    }
  }
  for (const { cache, workload: of, withIt, without } of rows) {
    console.log(
      JSON.stringify({
        bench: 'engine-caches',
        cache,
        workload: of,
        perSecondWith: Math.round(withIt),
        perSecondWithout: Math.round(without),
        ratio: Number((withIt / without).toFixed(2)),
      }),
    );
  }
}
