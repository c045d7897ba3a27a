import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { attacker, pour, until } from './http1-attack.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

const MIB = 1_048_576;
let service: Service;
let port: number;
beforeAll(async () => {
  service = await startService({ postgres: 'shared' });
  port = Number(new URL(service.baseUrl).port);
});
afterAll(async () => {
  await service.stop();
});
const watched = (): { pid: number; healthUrl: string } => ({
  pid: service.pid,
  healthUrl: `${service.metricsUrl}/healthz`,
});

const REQUESTS = 10_000;
/** Pieces that hold whole requests each would be read apart from each other. */
const PIECE = Buffer.from('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(REQUESTS));

test('ten times ten thousand requests behind each other hold up nobody', async () => {
  const toll = await tollOf(watched(), async () => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => attacker(port)));
    await Promise.all(clients.map((client) => pour(client, PIECE)));
    await until(() =>
      clients.every((one) => one.isClosed() || one.receivedBytes() > REQUESTS * 100),
    );
    expect(clients.filter((one) => one.isClosed()).length).toBe(0);
    for (const { socket } of clients) socket.destroy();
  });
  printToll('requests behind each other', toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  expect(toll.grownBytes).toBeLessThan(96 * MIB);
});
