/**
 * Yields checks a second of the engine alone: one thread, ids interned, uniform mix, every answer
 * compared with the expected one before anything is timed.
 * Run: npm run bench -- engine-peers [--scale 10] [-- DATA_DIR [ROUNDS]]. DATA_DIR holds tuples.jsonl and
 * any of direct.jsonl, nested.jsonl, mixu.jsonl (uniform mix), mix.jsonl (Zipf).
 *
 * Prints one JSON line a workload: checks, checks per CPU second (best round and median), allowed share.
 */
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import type { Subject } from '../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../src/model/tuple-reader.ts';
import { systemClock } from '../src/shared/clock.ts';
import { dataDirectory } from './generated-data.ts';

type Line = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject: string;
  readonly allow?: boolean;
};

const directory = dataDirectory(process.argv[2]);
const rounds = Number(process.argv[3] ?? 15);
const READ_BUDGET = 10_000;

async function* linesOf(file: string): AsyncGenerator<Line> {
  const lines = createInterface({ input: createReadStream(join(directory, file)) });
  for await (const line of lines) if (line !== '') yield JSON.parse(line) as Line;
}

function subjectOf(text: string): Subject {
  const colon = text.indexOf(':');
  const namespace = text.slice(0, colon);
  const rest = text.slice(colon + 1);
  if (namespace === 'user') return { kind: 'user', userId: rest };
  const hash = rest.indexOf('#');
  if (hash < 0) return { kind: 'set', namespace, objectId: rest, relation: '' };
  return { kind: 'set', namespace, objectId: rest.slice(0, hash), relation: rest.slice(hash + 1) };
}

// In key order, as a snapshot arrives from the database.
const lines: Line[] = [];
for await (const line of linesOf('tuples.jsonl')) lines.push(line);
const keyOf = (line: Line): string =>
  [line.namespace, line.object_id, line.relation, line.subject].join('\0');
const keyed = lines.map((line) => [keyOf(line), line] as const);
keyed.sort((a, b) => (a[0] < b[0] ? -1 : 1));
const index = new TupleIndex();
for (const [, line] of keyed) {
  const { namespace, object_id: objectId, relation } = line;
  index.applyChange('insert', { namespace, objectId, relation, subject: subjectOf(line.subject) });
}
const modelJson = readFileSync(new URL('peers-model.json', import.meta.url), 'utf8');
const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
const evaluator = new Evaluator(index, parseModel(modelJson), options, systemClock);
const nowMs = Date.now();

/** Expected answers, and the ids that `checkUser` takes, in triples. */
async function load(file: string): Promise<{ ids: Uint32Array; expected: Uint8Array }> {
  const ids: number[] = [];
  const expected: number[] = [];
  for await (const line of linesOf(file)) {
    const entity = index.entityId(index.nameId(line.namespace), line.object_id);
    const user = index.entityId(EMPTY_NAME, line.subject.slice('user:'.length));
    ids.push(entity, index.nameId(line.relation), user);
    expected.push(line.allow === true ? 1 : 0);
  }
  return { ids: Uint32Array.from(ids), expected: Uint8Array.from(expected) };
}

function check(ids: Uint32Array, at: number): number {
  return evaluator.checkUser(
    ids[at] as number,
    ids[at + 1] as number,
    ids[at + 2] as number,
    nowMs,
    READ_BUDGET,
  );
}

function measure(ids: Uint32Array): number {
  // CPU time of the process: neighbours on the machine count less than by the wall clock.
  const start = process.cpuUsage();
  let allowed = 0;
  for (let at = 0; at < ids.length; at += 3) if (check(ids, at) === CHECK_ALLOWED) allowed++;
  const { user, system } = process.cpuUsage(start);
  const seconds = (user + system) / 1e6;
  return allowed < 0 ? 0 : ids.length / 3 / seconds;
}

for (const workload of ['direct', 'nested', 'mixu', 'mix']) {
  const file = `${workload}.jsonl`;
  if (!existsSync(join(directory, file))) continue;
  const { ids, expected } = await load(file);
  let wrong = 0;
  let general = 0;
  for (let i = 0; i < expected.length; i++) {
    const code = check(ids, i * 3);
    if (code === CHECK_GENERAL) general++;
    else if ((code === CHECK_ALLOWED ? 1 : 0) !== expected[i]) wrong++;
  }
  const rates = Array.from({ length: rounds }, () => measure(ids)).sort((a, b) => a - b);
  const perSecond = (rate: number | undefined): number => Math.round(rate ?? 0);
  console.log(
    JSON.stringify({
      bench: 'engine-peers',
      workload,
      tuples: index.tupleCount,
      checks: expected.length,
      wrong,
      general,
      allowed: expected.reduce((sum, one) => sum + one, 0) / expected.length,
      bestPerSecond: perSecond(rates[rates.length - 1]),
      medianPerSecond: perSecond(rates[rates.length >> 1]),
    }),
  );
  if (wrong > 0) process.exitCode = 1;
}
