import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { attacker, until } from './http1-attack.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

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

const CONNECTIONS = byLength(300, 3_000);
const BATCH = 100;

async function connected(text: string): Promise<Awaited<ReturnType<typeof attacker>>[]> {
  const clients: Awaited<ReturnType<typeof attacker>>[] = [];
  for (let i = 0; i < CONNECTIONS; i += BATCH) {
    const some = await Promise.all(Array.from({ length: BATCH }, () => attacker(port)));
    for (const { socket } of some) socket.write(text);
    clients.push(...some);
  }
  return clients;
}

test('idle connections behind a request cost some kilobytes each', async () => {
  const toll = await tollOf(watched(), async () => {
    const clients = await connected('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await until(() => clients.every((one) => one.isClosed() || one.received().includes('200 OK')));
    for (const { socket } of clients) socket.destroy();
  });
  printToll(`${CONNECTIONS} idle connections`, toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  expect(toll.grownBytes).toBeLessThan(CONNECTIONS * 32_768);
});

test('heads that come byte by byte are closed in time, and hold what came', async () => {
  const toll = await tollOf(watched(), async () => {
    const clients = await connected('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await until(() => clients.every((one) => one.isClosed() || one.received().includes('200 OK')));
    for (const { socket } of clients) socket.write('GET /healthz HTTP/1.1\r\n');
    const dripping = setInterval(() => {
      for (const { socket } of clients) if (socket.writable) socket.write('x');
    }, 500);
    await until(() => clients.every((one) => one.isClosed()));
    clearInterval(dripping);
  });
  printToll(`${CONNECTIONS} heads byte by byte`, toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  expect(toll.grownBytes).toBeLessThan(CONNECTIONS * 32_768);
});
