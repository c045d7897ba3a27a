/**
 * Yields what HTTP/1.1 costs by node:http: CPU of the whole service for a request, and requests a second, over those by uWebSockets.js, for a Check and a
 * BatchCheck of 30 over HTTP JSON with a bearer token. In each round the services stand in turns, so that all see the same neighbours; medians of
 * the quotients of the rounds are compared. BENCH_OTHER_NODE is the path of another Node.js, which serves by node:http too; with
 * BENCH_OTHER_HTTP1, a value of GATEWAY_HTTP1, by that as well.
 * Run: npm run bench -- http1-parsers, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS, BENCH_GENERATOR=own. Prints a JSON line for each.
 */
import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { LoadClient } from './harness/client.ts';
import { HTTP_GENERATOR, type HttpRate, measureHttp } from './harness/http-rate.ts';
import { median } from './harness/median.ts';
import { type Service, startService } from './harness/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 3);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 32);
const OTHER_NODE = process.env['BENCH_OTHER_NODE'];
const OTHER_HTTP1 = process.env['BENCH_OTHER_HTTP1'];
const SERVICE = '/workspace.v1.AuthzService';
const CHECK = `${SERVICE}/Check`;
const OBJECTS = 500;
const BATCH = 30;

type Way = { readonly name: string; readonly http1: string; readonly node?: string | undefined };

const WAYS: readonly Way[] = [
  { name: 'uws', http1: 'uws' },
  { name: 'node:http', http1: 'node' },
  ...(OTHER_NODE === undefined ? [] : waysOf(OTHER_NODE)),
];

function waysOf(node: string): readonly Way[] {
  const version = execFileSync(node, ['-v'], { encoding: 'utf8' }).trim();
  const byNode = { name: `node:http, Node.js ${version}`, http1: 'node', node };
  if (OTHER_HTTP1 === undefined) return [byNode];
  return [byNode, { name: `BENCH_OTHER_HTTP1, Node.js ${version}`, http1: OTHER_HTTP1, node }];
}

const query = (i: number): object => ({
  namespace: 'resource',
  object_id: `doc-${(i * 7) % OBJECTS}`,
  relation: 'viewer',
  subject_user_id: 'alice',
});
const KINDS = [
  {
    kind: 'Check',
    path: CHECK,
    bodies: Array.from({ length: OBJECTS }, (_, i) => JSON.stringify(query(i))),
  },
  {
    kind: `BatchCheck of ${BATCH}`,
    path: `${SERVICE}/BatchCheck`,
    bodies: Array.from({ length: 50 }, (_, i) =>
      JSON.stringify({
        items: Array.from({ length: BATCH }, (_unused, j) => query(i * BATCH + j)),
      }),
    ),
  },
];

const services: Service[] = [];
try {
  for (const { http1, node } of WAYS) {
    const env = { GATEWAY_WORKERS: '1', GATEWAY_HTTP1: http1 };
    const service = await startService(env, process.cwd(), node);
    services.push(service);
    await writeGrants(service);
  }
  for (const { kind, path, bodies } of KINDS) {
    const rounds: HttpRate[][] = WAYS.map(() => []);
    // The first round warms up.
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [i, service] of services.entries()) {
        const rate = await measureHttp({
          port: Number(new URL(service.baseUrl).port),
          pid: service.pid,
          path,
          headers: headersOf(service),
          bodies,
          connections: CONNECTIONS,
          seconds: SECONDS,
        });
        if (round > 0) rounds[i]?.push(rate);
      }
    }
    const [uws = []] = rounds;
    for (const [i, { name }] of WAYS.entries()) {
      const own = rounds[i] ?? [];
      const cpu = own.map((rate, r) => (uws[r]?.perCpuSecond ?? Number.NaN) / rate.perCpuSecond);
      const rate = own.map((one, r) => one.perSecond / (uws[r]?.perSecond ?? Number.NaN));
      const line = {
        bench: 'http1-parsers',
        kind,
        parser: name,
        generator: HTTP_GENERATOR,
        connections: CONNECTIONS,
        cpuUs: rounded(1e6 / median(own.map(({ perCpuSecond }) => perCpuSecond))),
        cpuOverUws: rounded(median(cpu)),
        cpuOfRounds: cpu.map(rounded),
        rateOverUws: rounded(median(rate)),
        load: rounded(loadavg()[0] ?? Number.NaN),
      };
      process.stdout.write(`${JSON.stringify(line)}\n`);
    }
  }
} finally {
  for (const service of services) await service.stop();
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function headersOf({ token }: Service): Record<string, string> {
  return { 'content-type': 'application/json', authorization: `Bearer ${token}` };
}

/** Half of the objects are alice's to view; an answer of each is looked at before anything is measured. */
async function writeGrants({ baseUrl, token }: Service): Promise<void> {
  const client = new LoadClient({ baseUrl, token, connections: 1 });
  const updates = Array.from({ length: OBJECTS }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'resource',
      object_id: `doc-${i}`,
      relation: 'viewer',
      subject: { user_id: i % 2 === 0 ? 'alice' : `user-${i}` },
    },
  }));
  await client.call(`${SERVICE}/WriteRelationTuples`, { updates });
  for (let i = 0; i < 2; i++) {
    const answer = JSON.stringify(await client.call(CHECK, query(i)));
    const wanted = JSON.stringify({ allowed: ((i * 7) % OBJECTS) % 2 === 0 });
    if (answer !== wanted) throw new Error(`${JSON.stringify(query(i))}: ${answer}`);
  }
  await client.close();
}
