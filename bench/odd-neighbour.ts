/**
 * Times Checks of one tenant: alone, beside another tenant of the same worker that sends bodies of 8 MiB which must be decoded, and while
 * the same bodies are sent to a second service on this machine, which is what sharing its cores alone costs. p50, p99 and the longest, as
 * ratios. Run: npm run bench -- odd-neighbour. BENCH_SECONDS is the length of a part, of which there are five of each, in turns; an
 * argument names another checkout, whose service is measured. Prints one JSON line.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
} from '../src/gen/workspace/v1/authz_service_pb.ts';
import { type Service, startService } from './harness/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 3);
const PARTS = 5;
const ATTACKERS = 2;
const PAUSE_MS = 2;
const LONG_ID = 'x'.repeat(680);
const ITEM = { namespace: 'resource', objectId: 'a', relation: 'viewer', subjectUserId: 'u' };

type Target = Pick<Service, 'baseUrl' | 'token'>;
type Attack = Target & { readonly name: string };
type Body = { readonly type: string; readonly method: string; readonly bytes: Uint8Array };

const BODIES: Readonly<Record<string, Body>> = {
  'items with nulls, JSON': {
    type: 'application/json',
    method: 'BatchCheck',
    bytes: jsonOf({
      tenant_id: 'attacker',
      items: Array.from({ length: 10_000 }, () => ({
        ...ITEM,
        objectId: LONG_ID,
        subject_user_id: null,
        subjectUserId: undefined,
      })),
    }),
  },
  'items that are not valid, binary': {
    type: 'application/proto',
    method: 'BatchCheck',
    bytes: toBinary(
      BatchCheckRequestSchema,
      create(BatchCheckRequestSchema, {
        tenantId: 'attacker',
        items: Array.from({ length: 10_000 }, () => ({
          ...ITEM,
          objectId: LONG_ID + LONG_ID.slice(0, 90),
        })),
      }),
    ),
  },
  'a context of 8,000 members, binary': {
    type: 'application/proto',
    method: 'Check',
    bytes: toBinary(
      CheckRequestSchema,
      create(CheckRequestSchema, {
        ...ITEM,
        tenantId: 'attacker',
        context: Object.fromEntries(Array.from({ length: 8_000 }, (_, i) => [`member${i}`, i])),
      }),
    ),
  },
};

function jsonOf(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

const agent = new Agent({ keepAlive: true });
const CHECK: Body = {
  type: 'application/json',
  method: 'Check',
  bytes: jsonOf({ ...ITEM, tenantId: 'neighbour' }),
};

function post({ baseUrl, token }: Target, { type, method, bytes }: Body): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': type,
      'content-length': bytes.length,
      authorization: `Bearer ${token}`,
    };
    const url = `${baseUrl}/workspace.v1.AuthzService/${method}`;
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject);
    sent.end(bytes);
  });
}

/** Milliseconds of each Check of the neighbour. */
async function timesOf(service: Service): Promise<number[]> {
  const times: number[] = [];
  const untilMs = performance.now() + SECONDS * 1000;
  while (performance.now() < untilMs) {
    const sinceMs = performance.now();
    const status = await post(service, CHECK);
    if (status !== 200) throw new Error(`a Check of the neighbour: HTTP ${status}`);
    times.push(performance.now() - sinceMs);
    await sleep(PAUSE_MS);
  }
  return times;
}

/** Times while `attacked` is sent bodies. The attackers have a thread of their own: what they send must not hold up who measures. */
async function besideTimes(
  measured: Service,
  { baseUrl, token }: Service,
  name: string,
): Promise<{ readonly times: number[]; readonly bodies: number }> {
  const attackers = new Worker(new URL(import.meta.url), { workerData: { baseUrl, token, name } });
  await once(attackers, 'message');
  const times = await timesOf(measured);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  attackers.postMessage('end');
  const [bodies] = (await once(attackers, 'message')) as [number];
  await once(attackers, 'exit');
  return { times, bodies };
}

async function attack({ baseUrl, token, name }: Attack): Promise<void> {
  const body = BODIES[name];
  if (body === undefined) throw new Error(`no body is called ${name}`);
  let isOver = false;
  let bodies = 0;
  parentPort?.once('message', () => {
    isOver = true;
  });
  const one = async (): Promise<void> => {
    while (!isOver) {
      await post({ baseUrl, token }, body);
      bodies += 1;
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      if (bodies === 1) parentPort?.postMessage('begun');
    }
  };
  await Promise.all(Array.from({ length: ATTACKERS }, one));
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  parentPort?.postMessage(bodies);
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN) * 100) / 100;
}

const shown = (times: readonly number[]): object => ({
  p50: quantile(times, 0.5),
  p99: quantile(times, 0.99),
  most: quantile(times, 1),
});

if (!isMainThread) {
  await attack(workerData as Attack);
  process.exit(0);
}

const directory = process.argv[2];
const service = await startService({ GATEWAY_WORKERS: '1' }, directory);
const other = await startService({ GATEWAY_WORKERS: '1' }, directory);
const residentMiB = (): number =>
  Math.round(
    (Number(readFileSync(`/proc/${service.pid}/statm`, 'utf8').split(' ')[1]) * 4096) / 2 ** 20,
  );
try {
  const results: Record<string, object> = {};
  await timesOf(service);
  for (const [name, body] of Object.entries(BODIES)) {
    const [alone, beside, elsewhere]: [number[], number[], number[]] = [[], [], []];
    const bodies = { beside: 0, elsewhere: 0 };
    const before = residentMiB();
    let peak = 0;
    for (let part = 0; part < PARTS; part++) {
      alone.push(...(await timesOf(service)));
      const apart = await besideTimes(service, other, name);
      elsewhere.push(...apart.times);
      bodies.elsewhere += apart.bodies;
      const found = await besideTimes(service, service, name);
      beside.push(...found.times);
      bodies.beside += found.bodies;
      peak = Math.max(peak, residentMiB());
    }
    const aloneP99 = quantile(alone, 0.99);
    results[name] = {
      bytes: body.bytes.length,
      bodies,
      alone: shown(alone),
      beside: shown(beside),
      elsewhere: shown(elsewhere),
      p99Ratio: Math.round((quantile(beside, 0.99) / aloneP99) * 10) / 10,
      p99RatioElsewhere: Math.round((quantile(elsewhere, 0.99) / aloneP99) * 10) / 10,
      residentMiB: [before, peak],
    };
    process.stderr.write(`${name} ${JSON.stringify(results[name])}\n`);
  }
  const load = loadavg().map((one) => Math.round(one * 10) / 10);
  process.stdout.write(`${JSON.stringify({ bench: 'odd-neighbour', load, ...results })}\n`);
} finally {
  agent.destroy();
  await service.stop();
  await other.stop();
}
