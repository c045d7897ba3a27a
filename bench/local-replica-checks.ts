/**
 * Yields what single Checks of one busy tenant cost with replicas on the gateway's thread over what they cost without: two
 * services in turns, over HTTP/1.1 with 2, 8, 32 and 128 connections, first as fast as they answer, then both at half the rate
 * of the one without: Checks a second, by CPU-second, latencies, and CPU of the gateway's thread and of all others.
 * Run: npm run bench -- near-checks [--scale 10], with BENCH_SECONDS, BENCH_ROUNDS. One JSON line for each number of connections and rate.
 */
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { measurePaced } from './harness/http-paced.ts';
import { measureHttp } from './harness/http-rate.ts';
import { type MeasuredService, startMeasured } from './harness/measured-service.ts';
import { fillService, PEER_SCOPE } from './harness/service-data.ts';

const scale = Number(process.env['BENCH_SCALE'] ?? '1');
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 1);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9);
const CHECK_PATH = '/workspace.v1.AuthzService/Check';
const QUESTIONS = 20_000;
/** Those of a paced load go to its process as an argument. */
const PACED_QUESTIONS = 500;

type Round = {
  readonly perSecond: number;
  /** Microseconds of CPU a Check, of the whole service and of the gateway's thread. */
  readonly cpuUs: number;
  readonly gatewayUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

const settings = {
  GATEWAY_INDEX_BYTES: String(1024 * 1024 * 1024 * Math.max(1, scale)),
};
const off = await startMeasured('.', { ...settings, GATEWAY_THREAD_INDEX_BYTES: '0' });
const on = await startMeasured('.', {
  ...settings,
  GATEWAY_THREAD_INDEX_BYTES: String(128 * 1024 * 1024 * Math.max(1, scale)),
  // Also where a machine is too busy for many.
  GATEWAY_THREAD_CHECKS_PER_SECOND: '10',
});
try {
  await fillService(off, scale);
  const world = await fillService(on, scale);
  const bodies = mixedQuestions(world, QUESTIONS, 'uniform').map(({ objectId, userId }) =>
    JSON.stringify({
      ...PEER_SCOPE,
      namespace: 'doc',
      object_id: objectId,
      relation: 'viewer',
      subject_user_id: userId,
    }),
  );
  // The replica is loaded in slices while all goes on.
  for (const service of [on, off]) await ask(service, bodies, 32, 0, 8);
  for (const connections of [2, 8, 32, 128]) {
    const saturation = await inTurns(bodies, connections, 0);
    print(connections, 'saturation', saturation);
    const half = median(saturation.map((pair) => pair.off.perSecond)) / 2;
    print(connections, 'half', await inTurns(bodies, connections, half));
  }
} finally {
  await on.stop();
  await off.stop();
}

type Pair = { readonly on: Round; readonly off: Round };

async function inTurns(
  bodies: readonly string[],
  connections: number,
  perSecond: number,
): Promise<readonly Pair[]> {
  const pairs: Pair[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const run = (service: MeasuredService): Promise<Round> =>
      ask(service, bodies, connections, perSecond, SECONDS);
    if (round % 2 === 0) pairs.push({ off: await run(off), on: await run(on) });
    else {
      const first = await run(on);
      pairs.push({ on: first, off: await run(off) });
    }
  }
  return pairs;
}

/** One round at a rate; 0: as fast as it answers, where the latencies are the mean. */
async function ask(
  service: MeasuredService,
  bodies: readonly string[],
  connections: number,
  perSecond: number,
  seconds: number,
): Promise<Round> {
  const pid = service.pid();
  const load = {
    port: service.port(),
    pid,
    path: CHECK_PATH,
    headers: { 'content-type': 'application/json' },
    bodies,
    connections,
    seconds,
  };
  const gatewaySeconds = (): number => service.threads().get(pid) ?? Number.NaN;
  const before = gatewaySeconds();
  if (perSecond === 0) {
    const rate = await measureHttp(load);
    const meanMs = (connections * 1_000) / rate.perSecond;
    return {
      perSecond: rate.perSecond,
      cpuUs: 1e6 / rate.perCpuSecond,
      gatewayUs: ((gatewaySeconds() - before) * 1e6) / (rate.perSecond * seconds),
      p50Ms: meanMs,
      p99Ms: Number.NaN,
    };
  }
  const rate = await measurePaced({ ...load, bodies: bodies.slice(0, PACED_QUESTIONS), perSecond });
  const gatewayUs = ((gatewaySeconds() - before) * 1e6) / (rate.perSecond * seconds);
  return { ...rate, gatewayUs };
}

function print(connections: number, rate: string, pairs: readonly Pair[]): void {
  const of = (which: 'on' | 'off'): Record<string, number> =>
    Object.fromEntries(
      (['perSecond', 'cpuUs', 'gatewayUs', 'p50Ms', 'p99Ms'] as const).map((name) => [
        name,
        rounded(median(pairs.map((pair) => pair[which][name]))),
      ]),
    );
  const result = {
    bench: 'local-replica-checks',
    scale,
    connections,
    rate,
    off: of('off'),
    on: of('on'),
    checksPerSecond: rounded(median(pairs.map((pair) => pair.on.perSecond / pair.off.perSecond))),
    checksPerCpuSecond: rounded(median(pairs.map((pair) => pair.off.cpuUs / pair.on.cpuUs))),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
