import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { ATTACKS } from './connection-attacks.ts';
import { rawClientsOf } from './raw-clients-of.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

/* A thousand connections without a credential that were told long fields and stay: 541 MiB where evicted fields are kept. */
const CONNECTIONS = 1_000;
const GROWN_BYTES_MAX = 256 * 2 ** 20;

let service: Service;
beforeAll(async () => {
  service = await startService({ env: { NODE_OPTIONS: '--max-old-space-size=256' } });
}, 120_000);
afterAll(async () => {
  await service.stop();
});

test.each(['fields evicted by later ones', 'values in Huffman code'])(
  '%s',
  async (name) => {
    const attack = ATTACKS[name];
    if (attack === undefined) throw new Error(`there is no attack ${name}`);
    const port = Number(service.address.split(':')[1]);
    const { pid, baseUrl } = service;
    const toll = await tollOf({ pid, healthUrl: `${baseUrl}/healthz` }, async () => {
      const clients = await rawClientsOf({ port, count: CONNECTIONS, atOnce: 3, ...attack });
      expect(clients.openCount).toBe(CONNECTIONS);
      const { status } = await fetch(`${baseUrl}/healthz`);
      expect(status).toBe(200);
      await clients.close();
    });
    printToll(`${CONNECTIONS} connections: ${name}`, toll);
    expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
    expect(toll.grownBytes).toBeLessThan(GROWN_BYTES_MAX);
  },
  240_000,
);
