import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AuthzService, TupleUpdate_Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { HAS_HAPROXY, startHaproxy } from './haproxy.ts';
import { DYING_MS, failed, startMixedLoad, summary } from './mixed-load.ts';
import { SHARD_HEADER } from './steady-load.ts';

const INSTANCES = 3;
/** Side by side over one connection: what an instance refuses at its end must hit some of them. */
const CALLERS = 16;
let database: TestDatabase;
let cluster: Cluster;
let balancer: Pick<Balancer, 'port' | 'stop'> | undefined;

beforeEach(async () => {
  database = await createTestDatabase();
  cluster = await startCluster(database.target, INSTANCES);
}, 120_000);
afterEach(async () => {
  await balancer?.stop();
  await cluster.stop();
  await database.drop();
}, 120_000);

const BALANCERS = [
  { name: 'a balancer in this process', start: startBalancer, isThere: true },
  {
    name: 'haproxy (Debian package haproxy)',
    start: startHaproxy,
    isThere: HAS_HAPROXY,
  },
];

describe.each(BALANCERS)('behind $name', ({ name, start, isThere }) => {
  it.skipIf(!isThere)(
    'a rolling restart fails no request',
    async () => {
      balancer = await start(cluster.ports);
      const load = startMixedLoad(balancer.port, cluster.token);
      await delay(1_000);
      for (let index = 0; index < INSTANCES; index++) {
        expect(await cluster.restart(index)).toBe(0);
        // Until the balancer has it back: the next one goes only then.
        await delay(700);
      }
      const outcomes = await load.stop();
      process.stdout.write(`rolling restart behind ${name}: ${summary(outcomes)}\n`);
      expect(failed(outcomes)).toEqual([]);
      expect(outcomes.length).toBeGreaterThan(500);
    },
    120_000,
  );

  it.skipIf(!isThere)(
    'a kill fails nothing but what was written there at that moment',
    async () => {
      balancer = await start(cluster.ports);
      const load = startMixedLoad(balancer.port, cluster.token);
      const beganMs = performance.now();
      await delay(2_000);
      const before = load.outcomes.length;
      const killedMs = performance.now() - beganMs;
      await cluster.kill(1);
      await delay(4_000);
      const outcomes = await load.stop();
      const after = outcomes.slice(before);
      process.stdout.write(
        `kill behind ${name}: ${failed(outcomes).length} failed, then ${summary(after)}\n`,
      );
      for (const { startMs, tookMs } of failed(outcomes)) {
        // The clocks of the load and of this test began within a few milliseconds.
        expect(startMs).toBeLessThan(killedMs + DYING_MS);
        expect(startMs + tookMs).toBeGreaterThan(killedMs - 100);
      }
      // Every tenant was served afterwards, those of the dead one elsewhere.
      const served = new Set(
        after.filter(({ status }) => status === 200).map(({ tenant }) => tenant),
      );
      expect(served.size).toBe(30);
    },
    120_000,
  );
});

it.skipIf(!HAS_HAPROXY)(
  'behind haproxy (Debian package haproxy) gRPC goes on over HTTP/2, beside a restart',
  async () => {
    balancer = await startHaproxy(cluster.ports);
    const transport = createGrpcTransport({
      baseUrl: `http://127.0.0.1:${balancer.port}`,
      interceptors: [
        (next) => async (call) => {
          call.header.set('authorization', `Bearer ${cluster.token}`);
          call.header.set(SHARD_HEADER, 'default/t');
          return await next(call);
        },
      ],
    });
    const client = createClient(AuthzService, transport);
    const tuple = { namespace: 'document', objectId: 'd', relation: 'viewer' };
    const subject = { kind: { case: 'userId' as const, value: 'u' } };
    await client.writeRelationTuples({
      tenantId: 't',
      updates: [{ op: TupleUpdate_Op.INSERT, tuple: { ...tuple, subject } }],
    });
    let isOver = false;
    let count = 0;
    const ask = async (): Promise<void> => {
      while (!isOver) {
        const { allowed } = await client.check({ tenantId: 't', ...tuple, subjectUserId: 'u' });
        expect(allowed).toBe(true);
        count++;
      }
    };
    const asking = Promise.allSettled(Array.from({ length: CALLERS }, ask));
    for (let index = 0; index < INSTANCES; index++) {
      expect(await cluster.restart(index)).toBe(0);
      await delay(700);
    }
    isOver = true;
    const faults = (await asking).filter(({ status }) => status === 'rejected');
    expect(faults).toEqual([]);
    expect(count).toBeGreaterThan(50);
  },
  120_000,
);
