import { BroadcastChannel } from 'node:worker_threads';
import { afterAll, expect, test } from 'vitest';
import type { FlippedPart } from '../support/flip-bit.ts';
import { startInstance } from '../support/instance.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { ok } from './support.ts';

const database = await createTestDatabase();
const env = { GATEWAY_FSCK_INTERVAL_SECONDS: '1', GATEWAY_FSCK_ROWS_PER_SECOND: '100000' };
const filename = new URL('./flipping-worker.ts', import.meta.url).href;
const instance = await startInstance(database, env, filename);
afterAll(async () => {
  await instance.stop();
  await database.drop();
});

/** Each takes seconds; test/workers/index-fsck.test.ts has all of them, without a thread. */
const PARTS: readonly FlippedPart[] = byLength(
  ['an entry of a forward list', 'an expiry'],
  [
    'the users of an object',
    'an entry of a forward list',
    'an entry of a reverse list',
    'an expiry',
  ],
);

async function figure(name: string): Promise<number> {
  const text = await instance.renderMetrics();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

test('in a thread over PostgreSQL each flipped bit is found in the background, and the shard loaded again', async () => {
  const tuple = (object_id: string, user_id: string, more: object = {}): object => ({
    op: 'OP_INSERT',
    tuple: { namespace: 'doc', object_id, relation: 'viewer', subject: { user_id }, ...more },
  });
  const updates = Array.from({ length: 200 }, (_, i) => tuple('popular', `u${i}`));
  for (let i = 0; i < 200; i++) {
    updates.push(tuple(`d${i}`, 'u1', { expires_at: '2100-01-01T00:00:00.000001Z' }));
  }
  ok(await call(instance, 'AuthzService/WriteRelationTuples', { tenant_id: 't', updates }));
  const users = Array.from({ length: 200 }, (_, i) => `u${i}`);
  const allowed = async (): Promise<number> => {
    const items = users.map((user) => ({
      namespace: 'doc',
      object_id: 'popular',
      relation: 'viewer',
      subject_user_id: user,
    }));
    const answer = ok(await call(instance, 'AuthzService/BatchCheck', { tenant_id: 't', items }));
    const results = answer['results'] as readonly { readonly allowed: boolean }[];
    return results.filter((result) => result.allowed).length;
  };
  expect(await allowed()).toBe(200);
  const channel = new BroadcastChannel('flip-bit');
  for (const [i, part] of PARTS.entries()) {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
    channel.postMessage(part);
    await expect
      .poll(() => figure('gatehouse_fsck_differences_total'), { timeout: 20_000 })
      .toBe(i + 1);
    expect(await allowed()).toBe(200);
    await expect.poll(() => figure('gatehouse_shard_loads_total')).toBe(i + 2);
  }
  channel.close();
  expect(await instance.workers.checkIndexes()).toMatchObject({ differences: 0, shards: 1 });
  expect(await figure('gatehouse_fsck_rows_total')).toBeGreaterThan(400);
}, 120_000);
