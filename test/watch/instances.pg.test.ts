import { afterAll, beforeAll, expect, test } from 'vitest';
import { TupleUpdate_Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { type Member, startMember, startProcess, startWhole } from '../faults/members.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import type { Service } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { authzOver, tuplesOver } from '../tuples/support.ts';

/* Three instances: who follows at one is told what the others wrote, and goes on at another when it dies. */

const WRITES = byLength(60, 120);

let database: TestDatabase;
let doomed: Service;
let services: readonly Member[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const env = {
    GATEWAY_WORKERS: '1',
    GATEWAY_PG_POOL_SIZE: '6',
    GATEWAY_WATCH_STREAMS: '8',
  };
  const starting = [startWhole(database, env), startProcess(database, env)] as const;
  const member = await startMember(database, env);
  const [next, killed] = await Promise.all(starting);
  doomed = killed;
  services = [next, member, killed];
}, 120_000);
afterAll(async () => {
  const codes = await Promise.all(services.map((service) => service.stop()));
  await database.drop();
  expect(codes.filter((code) => code !== 0 && code !== null)).toEqual([]);
}, 120_000);

const at = (index: number): Member => services[index] as Member;

/** Follows from `startAfter` on until `count` writes were told or the stream breaks; [writes, cursor]. */
async function follow(
  service: Member,
  startAfter: string,
  count: number,
  onBegun: () => void,
): Promise<readonly [told: readonly string[], cursor: string]> {
  const told: string[] = [];
  let cursor = startAfter;
  const stream = tuplesOver(service, 'grpc').watch({
    allTenants: true,
    startAfter,
    heartbeatSeconds: 1,
  });
  try {
    for await (const message of stream) {
      ({ cursor } = message);
      onBegun();
      const { kind } = message;
      if (kind.case !== 'changes') continue;
      const { tenantId, updates } = kind.value;
      told.push(`${tenantId} ${updates.map(({ tuple }) => tuple?.objectId).join()}`);
      if (told.length >= count) break;
    }
  } catch {
    // It was killed: what is told goes on at another one.
  }
  return [told, cursor];
}

test('nothing is lost, doubled or out of order where the followed instance is killed', async () => {
  const begun = Promise.withResolvers<void>();
  const first = follow(at(2), '', WRITES, begun.resolve);
  await begun.promise;
  const written = new Map<string, string[]>([
    ['a', []],
    ['b', []],
  ]);
  const write = async (tenantId: string, from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++) {
      const object = `${tenantId}${n}`;
      await authzOver(at(n % 2)).writeRelationTuples({
        tenantId,
        updates: [
          {
            op: TupleUpdate_Op.INSERT,
            tuple: {
              namespace: 'doc',
              objectId: object,
              relation: 'viewer',
              subject: { kind: { case: 'userId', value: 'u' } },
            },
          },
        ],
      });
      written.get(tenantId)?.push(`${tenantId} ${object}`);
    }
  };
  const half = WRITES / 4;
  await Promise.all([write('a', 0, half), write('b', 0, half)]);
  const killed = doomed.kill();
  await Promise.all([write('a', half, 2 * half), write('b', half, 2 * half), killed]);
  const [before, cursor] = await first;
  const [after] = await follow(at(0), cursor, WRITES - before.length, () => undefined);
  const told = [...before, ...after];
  for (const [tenantId, writes] of written) {
    expect(told.filter((one) => one.startsWith(`${tenantId} `))).toEqual(writes);
  }
  expect(told).toHaveLength(WRITES);
}, 120_000);
