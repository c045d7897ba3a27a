import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { createTcpSwitch } from '../../../test/support/tcp-switch.ts';
import type { ServerTarget } from '../postgres/pool.ts';
import { InstanceMembership } from './membership.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => await database.drop());

it('asks a server that refuses connections five times a second, however it was lost', async () => {
  const server = await createTcpSwitch(database.target as ServerTarget);
  let attempts = 0;
  const membership = new InstanceMembership({
    target: server.target,
    region: '',
    isExclusive: false,
    log: (_level, event) => {
      if (event === 'instance_lease_not_renewed') attempts++;
    },
  });
  try {
    await membership.start();
    const startedMs = performance.now();
    server.close();
    await expect.poll(() => attempts, { timeout: 20_000 }).toBeGreaterThanOrEqual(5);
    // The first attempt comes at once, and so does the one after a connection that stood.
    const elapsedMs = performance.now() - startedMs;
    expect(attempts).toBeLessThanOrEqual(2 + elapsedMs / 200);
    server.point(database.target as ServerTarget);
    await expect.poll(() => membership.writeId, { timeout: 20_000 }).toBeDefined();
  } finally {
    await membership.leave();
    await server.end();
  }
}, 120_000);
