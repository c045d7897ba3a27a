/**
 * Yields one ratio: requests a second of a real Check over HTTP JSON with a bearer token, over those
 * of a raw uWebSockets.js server that checks the same token, parses the same JSON and answers with
 * the same bytes, both in one run. Rounds alternate, so that both see the same neighbours; medians are
 * compared, also per CPU-second of the server. Then both get half of the Check's rate, evenly spaced, again in turns: what a
 * request costs and how long it takes while nothing queues.
 * Run: npm run bench -- http-check-vs-echo, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS,
 * BENCH_GENERATOR=own. Prints one JSON line.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { measurePaced, type PacedRate } from './harness/http-paced.ts';
import { HTTP_GENERATOR, type HttpRate, measureHttp, medianRate } from './harness/http-rate.ts';
import { startService } from './harness/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 5);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 32);
const SERVICE = '/workspace.v1.AuthzService';
const OBJECTS = 500;

const service = await startService({ GATEWAY_WORKERS: '1' });
const headers = {
  'content-type': 'application/json',
  authorization: `Bearer ${service.token}`,
};
const bodies = Array.from({ length: OBJECTS }, (_, i) => {
  const object = { namespace: 'resource', object_id: `doc-${(i * 7) % OBJECTS}` };
  return JSON.stringify({ ...object, relation: 'viewer', subject_user_id: 'alice' });
});
const echo = spawn(process.execPath, ['bench/http-check-echo-server.ts'], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { PATH: process.env['PATH'], ECHO_TOKEN: service.token, ECHO_PORT: '0' },
});
try {
  const [said] = (await once(echo.stdout, 'data')) as [Buffer];
  const echoPort = Number(said.toString().trim());
  await writeGrants();
  const own: HttpRate[] = [];
  const raw: HttpRate[] = [];
  const common = { path: `${SERVICE}/Check`, headers, bodies, connections: CONNECTIONS };
  const ports = { own: Number(new URL(service.baseUrl).port), raw: echoPort };
  const load = (port: number, pid: number | undefined, seconds: number): Promise<HttpRate> =>
    measureHttp({ ...common, port, pid: pid ?? 0, seconds });
  await load(ports.own, service.pid, 1);
  await load(ports.raw, echo.pid, 1);
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await load(ports.own, service.pid, SECONDS));
    raw.push(await load(ports.raw, echo.pid, SECONDS));
  }
  const [check, yardstick] = [medianRate(own), medianRate(raw)];
  const ratio = (a: number, b: number): number => Math.round((a / b) * 1000) / 1000;
  const half = Math.round(check.perSecond / 2);
  const paced: { own: PacedRate; raw: PacedRate }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const at = { ...common, seconds: SECONDS, perSecond: half };
    paced.push({
      own: await measurePaced({ ...at, port: ports.own, pid: service.pid }),
      raw: await measurePaced({ ...at, port: ports.raw, pid: echo.pid ?? 0 }),
    });
  }
  /** The median over the rounds of a quotient in one round. */
  const median = (of: (round: { own: PacedRate; raw: PacedRate }) => number): number =>
    Math.round((paced.map(of).toSorted((a, b) => a - b)[paced.length >> 1] ?? Number.NaN) * 1000) /
    1000;
  const result = {
    bench: 'http-check-vs-echo',
    generator: HTTP_GENERATOR,
    connections: CONNECTIONS,
    check,
    echo: yardstick,
    ratio: ratio(check.perSecond, yardstick.perSecond),
    ratioPerCpuSecond: ratio(check.perCpuSecond, yardstick.perCpuSecond),
    rounds: own.map((rate, i) => ratio(rate.perSecond, raw[i]?.perSecond ?? Number.NaN)),
    halfRate: {
      perSecond: half,
      checkCpuUs: median((round) => round.own.cpuUs),
      echoCpuUs: median((round) => round.raw.cpuUs),
      /** CPU of a Check here over that at saturation. */
      cpuOfSaturation: median((round) => (round.own.cpuUs * check.perCpuSecond) / 1e6),
      echoCpuOfSaturation: median((round) => (round.raw.cpuUs * yardstick.perCpuSecond) / 1e6),
      p50Ratio: median((round) => round.own.p50Ms / round.raw.p50Ms),
      p99Ratio: median((round) => round.own.p99Ms / round.raw.p99Ms),
      checkP50Ms: median((round) => round.own.p50Ms),
      checkP99Ms: median((round) => round.own.p99Ms),
    },
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  echo.kill();
  await service.stop();
}

/** Half of the objects are alice's to view; her answers are looked at before anything is measured. */
async function writeGrants(): Promise<void> {
  const updates = Array.from({ length: OBJECTS }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'resource',
      object_id: `doc-${i}`,
      relation: 'viewer',
      subject: { user_id: i % 2 === 0 ? 'alice' : `user-${i}` },
    },
  }));
  await post('WriteRelationTuples', JSON.stringify({ updates }));
  for (const [i, body] of bodies.entries()) {
    const answer = await post('Check', body);
    const wanted = JSON.stringify({ allowed: ((i * 7) % OBJECTS) % 2 === 0 });
    if (answer !== wanted) throw new Error(`${body}: ${answer}`);
  }
}

async function post(method: string, body: string): Promise<string> {
  const url = `${service.baseUrl}${SERVICE}/${method}`;
  const response = await fetch(url, { method: 'POST', headers, body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method}: HTTP ${response.status} ${text}`);
  return text;
}
