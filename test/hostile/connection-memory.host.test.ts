import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../http/start-server.ts';
import { reachableBytes } from '../support/reachable-memory.ts';
import * as attacks from './connection-attacks.ts';
import { rawClientsOf } from './raw-clients-of.ts';

/* What a connection of HTTP/2 without any credential keeps in memory, whatever it has sent: all that can still be reached. */
const CONNECTIONS = 300;
const BYTES_MAX = 32 * 1_024;

let target: TestServer;
beforeAll(async () => {
  target = await startServer({ hasCredential: true, limits: { http2IdleMs: 600_000 } });
});
afterAll(() => target.server.stop(0));

/** Once it changes no more: what was sent is read, and what was to be answered is. */
async function settledBytes(): Promise<number> {
  let before = Number.NaN;
  for (;;) {
    const now = reachableBytes();
    if (Math.abs(now - before) < 200_000) return now;
    before = now;
    await sleep(1_500);
  }
}

test.each(Object.entries(attacks.ATTACKS))(
  '%s',
  async (name, { parts, isReading, staysOpen }) => {
    const one = { port: target.port, parts, isReading };
    // What is made once, for all connections.
    await (await rawClientsOf({ ...one, count: 5 })).close();
    await settled();
    const before = await settledBytes();
    const clients = await rawClientsOf({ ...one, count: CONNECTIONS });
    const each = ((await settledBytes()) - before) / CONNECTIONS;
    const standing = target.server.connectionCount;
    process.stdout.write(
      `hostile: ${name}: ${(each / 1_024).toFixed(1)} KiB a connection, ${standing} stand\n`,
    );
    await clients.close();
    await settled();
    if (staysOpen) expect(standing).toBe(CONNECTIONS);
    expect(each).toBeLessThan(BYTES_MAX);
  },
  120_000,
);

async function settled(): Promise<void> {
  while (target.server.connectionCount > 0) await sleep(20);
}
