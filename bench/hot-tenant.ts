/**
 * Yields what two workers can answer of one tenant over what its owner alone can. One service with two workers leaves each
 * tenant to its owner, one spreads busy ones; both are loaded until the second has spread the tenant, then both get the same BatchChecks
 * at the same rate, in turns, below what the owner can do: the CPU that the busiest worker takes for a call says how many it
 * could answer. Also what a call costs all threads together. Answers are compared before anything is measured.
 * Run: npm run bench -- hot-tenant, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_ITEMS. Prints one JSON line.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { measurePaced } from './harness/http-paced.ts';
import { measureHttp } from './harness/http-rate.ts';
import { type Service, startService } from './harness/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const ITEMS = Number(process.env['BENCH_ITEMS'] ?? 300);
/** So that they fit into an argument of the generator. */
const BODIES = 3;
const CONNECTIONS = 16;
const OBJECTS = 20_000;
const WRITE = 1_000;
/** Of what the owner alone answered just before. */
const PACE = 0.8;
const SPREAD_TRIES = 200;
const TICK_US = 10_000;
const SERVICE = '/workspace.v1.AuthzService';

/** Microseconds of CPU a call: of the busiest worker, of both workers, and of all threads. */
type Cost = { readonly busiestUs: number; readonly workersUs: number; readonly allUs: number };

const bodies = Array.from({ length: BODIES }, (_, batch) =>
  JSON.stringify({
    items: Array.from({ length: ITEMS }, (_item, i) => itemOf((batch * ITEMS + i) * 7)),
  }),
);
const [alone, replicated] = await Promise.all([
  startService({ GATEWAY_WORKERS: '2', GATEWAY_SHARD_WORKERS: '1' }),
  startService({ GATEWAY_WORKERS: '2', GATEWAY_SHARD_WORKERS: '2' }),
]);
try {
  for (const service of [alone, replicated]) await prepare(service);
  const { perSecond } = await measureHttp(loadOf(alone));
  await untilReplicated();
  // The code of a worker is made fast by the worker itself.
  await measureHttp(loadOf(replicated));
  const rounds: { readonly alone: Cost; readonly replicated: Cost }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const pace = perSecond * PACE;
    rounds.push({ alone: await costOf(alone, pace), replicated: await costOf(replicated, pace) });
  }
  if ((await spreadShards()) !== 1) throw new Error('the tenant was gathered meanwhile');
  const median = (of: (round: { alone: Cost; replicated: Cost }) => number): number =>
    Math.round((rounds.map(of).toSorted((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN) * 100) / 100;
  const result = {
    bench: 'hot-tenant',
    items: ITEMS,
    perSecond: Math.round(perSecond * PACE),
    /** What the two could answer over what the owner alone could. */
    capacity: median((round) => round.alone.busiestUs / round.replicated.busiestUs),
    /** The same if both had the same share, as where each has a processor. */
    balanced: median((round) => round.alone.busiestUs / (round.replicated.workersUs / 2)),
    /** CPU of a call, all threads. */
    cost: median((round) => round.replicated.allUs / round.alone.allUs),
    aloneBusiestUs: median((round) => round.alone.busiestUs),
    spreadBusiestUs: median((round) => round.replicated.busiestUs),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  await alone.stop();
  await replicated.stop();
}

function itemOf(i: number): object {
  const object = { namespace: 'resource', object_id: `doc-${i % OBJECTS}` };
  return { ...object, relation: 'viewer', subject_user_id: 'alice' };
}

function loadOf({ baseUrl, pid, token }: Service) {
  return {
    port: Number(new URL(baseUrl).port),
    pid,
    path: `${SERVICE}/BatchCheck`,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    bodies,
    connections: CONNECTIONS,
    seconds: SECONDS,
  };
}

async function untilReplicated(): Promise<void> {
  // Of so many objects a page takes the worker long, and the gateway's thread next to nothing.
  const list = {
    namespace: 'resource',
    relation: 'viewer',
    subject: { user_id: 'alice' },
    page_size: 1,
  };
  for (let i = 0; i < SPREAD_TRIES; i++) {
    const pages = Array.from({ length: CONNECTIONS }, () =>
      post(replicated, '/gatehouse.v1.QueryService/ListObjects', JSON.stringify(list)),
    );
    await Promise.all(pages);
    if ((await spreadShards()) === 1) return;
  }
  throw new Error('the tenant was not spread');
}

async function spreadShards(): Promise<number> {
  const text = await (await fetch(`${replicated.metricsUrl}/metrics`)).text();
  return Number(/^gatehouse_spread_shards (\d+)$/m.exec(text)?.[1]);
}

async function costOf(service: Service, perSecond: number): Promise<Cost> {
  const before = threadsOf(service.pid);
  await measurePaced({ ...loadOf(service), perSecond });
  const after = threadsOf(service.pid);
  const calls = Math.round(perSecond * SECONDS);
  const others: number[] = [];
  let allUs = 0;
  for (const [thread, us] of after) {
    const took = (us - (before.get(thread) ?? 0)) / calls;
    allUs += took;
    // The gateway's thread has the number of the process; the busiest two of the others are the workers.
    if (thread !== String(service.pid)) others.push(took);
  }
  const [busiestUs = 0, secondUs = 0] = others.toSorted((a, b) => b - a);
  return { busiestUs, workersUs: busiestUs + secondUs, allUs };
}

/** CPU of each thread so far, microseconds. */
function threadsOf(pid: number): ReadonlyMap<string, number> {
  return new Map(
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return [thread, (Number(fields[11]) + Number(fields[12])) * TICK_US];
    }),
  );
}

async function prepare(service: Service): Promise<void> {
  for (let start = 0; start < OBJECTS; start += WRITE) {
    const updates = Array.from({ length: WRITE }, (_, i) => ({
      op: 'OP_INSERT',
      tuple: {
        namespace: 'resource',
        object_id: `doc-${start + i}`,
        relation: 'viewer',
        subject: { user_id: (start + i) % 2 === 0 ? 'alice' : `user-${start + i}` },
      },
    }));
    await post(service, 'WriteRelationTuples', JSON.stringify({ updates }));
  }
  for (const [batch, body] of bodies.entries()) {
    const { results } = (await post(service, 'BatchCheck', body)) as {
      results: readonly { readonly allowed: boolean }[];
    };
    results.forEach(({ allowed }, i) => {
      const object = ((batch * ITEMS + i) * 7) % OBJECTS;
      if (allowed !== (object % 2 === 0)) throw new Error(`doc-${object}: ${allowed}`);
    });
  }
}

async function post({ baseUrl, token }: Service, method: string, body: string): Promise<unknown> {
  const path = method.startsWith('/') ? method : `${SERVICE}/${method}`;
  const response = await fetch(baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body,
  });
  if (response.status !== 200) throw new Error(`HTTP ${response.status} ${await response.text()}`);
  return await response.json();
}
