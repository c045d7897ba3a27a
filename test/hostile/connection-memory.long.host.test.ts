import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../http/start-server.ts';
import { reachableBytes } from '../support/reachable-memory.ts';
import * as attacks from './connection-attacks.ts';
import { rawClientsOf } from './raw-clients-of.ts';

/* What a connection of HTTP/2 without any credential keeps in memory, whatever it has sent: all that can still be reached. */
const CONNECTIONS = 100;
/** Of those that share a bound: a few may have more of it. */
const SHARING = 300;
/** Of those who read nothing: first the kernel's memory of each is filled with answers. */
const UNREADING = 30;
const BYTES_MAX = 32 * 1_024;
/** By so much two measures of the same differ. */
const NOISE_BYTES = 4 * 1_024;

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
  async (name, { parts, isReading, staysOpen, isShared }) => {
    const one = { port: target.port, parts, isReading };
    // What is made once, for all connections.
    await (await rawClientsOf({ ...one, count: 5 })).close();
    await settled();
    const before = await settledBytes();
    const count = !isReading ? UNREADING : isShared ? SHARING : CONNECTIONS;
    const clients = await rawClientsOf({ ...one, count });
    const each = ((await settledBytes()) - before) / count;
    const standing = target.server.connectionCount;
    process.stdout.write(
      `hostile: ${name}: ${(each / 1_024).toFixed(1)} KiB a connection, ${standing} stand\n`,
    );
    await clients.close();
    await settled();
    if (staysOpen) expect(standing).toBe(count);
    expect(each).toBeLessThan(BYTES_MAX + NOISE_BYTES);
  },
  120_000,
);

async function settled(): Promise<void> {
  while (target.server.connectionCount > 0) await sleep(20);
}
