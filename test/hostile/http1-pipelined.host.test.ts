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

const CLIENTS = 10;
const REQUESTS = 10_000;
/** Requests that may wait behind one that is not answered. */
const WAITING_MAX = 100;
const HEALTH = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n';
/** Pieces that hold whole requests each would be read apart from each other. */
const PIECE = Buffer.from(HEALTH.repeat(REQUESTS));

// What was read with those that are too many is parsed as well: at once they would take as long as so many requests do.
test('ten times ten thousand requests behind each other end their connections, and hold up nobody', async () => {
  const toll = await tollOf(watched(), async () => {
    for (let i = 0; i < CLIENTS; i++) {
      const client = await attacker(port);
      await pour(client, PIECE);
      await until(() => client.isClosed());
    }
  });
  printToll('requests behind each other', toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  expect(toll.grownBytes).toBeLessThan(96 * MIB);
});

test('as many as may wait behind one are answered', async () => {
  const client = await attacker(port);
  await pour(client, Buffer.from(HEALTH.repeat(1 + WAITING_MAX)));
  const answers = (): number => client.received().split('HTTP/1.1 200').length - 1;
  await until(() => client.isClosed() || answers() === 1 + WAITING_MAX);
  expect(answers()).toBe(1 + WAITING_MAX);
  client.socket.destroy();
});
