import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { attacker, pour, until } from './http1-attack.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

const MIB = 1_048_576;
const TIMES = byLength(4, 20);
/** Sent on a connection. Half of what all send, at most, is held, or is garbage that was not collected yet. */
const SENT_MIB = 16;
const GROWN_MIB_MAX = byLength(32, 64);
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

const chunked = (): string =>
  'POST /workspace.v1.AuthzService/Check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n' +
  `authorization: Bearer ${service.token}\r\ntransfer-encoding: chunked\r\n\r\n`;

test('megabytes of chunk extensions are refused behind the first kilobytes', async () => {
  const extension = Buffer.alloc(MIB, 'a');
  const toll = await tollOf(watched(), async () => {
    for (let i = 0; i < TIMES; i++) {
      const client = await attacker(port);
      await pour(client, Buffer.from(`${chunked()}2;`));
      for (let k = 0; k < SENT_MIB; k++) await pour(client, extension);
      await until(() => client.isClosed() || client.received().includes('400 Bad Request'));
      expect(client.received().match(/HTTP\/1\.1 \d+/g) ?? []).toEqual(['HTTP/1.1 400']);
      client.socket.destroy();
    }
  });
  printToll('megabytes of chunk extensions', toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  expect(toll.grownBytes).toBeLessThan(GROWN_MIB_MAX * MIB);
});

test('megabytes of trailer fields are refused behind the first kilobytes', async () => {
  const trailers = Buffer.from('x-trailer: aaaaaaaaaaaaaaaa\r\n'.repeat(MIB / 32));
  const toll = await tollOf(watched(), async () => {
    for (let i = 0; i < TIMES; i++) {
      const client = await attacker(port);
      await pour(client, Buffer.from(`${chunked()}2\r\n{}\r\n0\r\n`));
      for (let k = 0; k < SENT_MIB; k++) await pour(client, trailers);
      await until(() => client.isClosed() || client.received().includes('HTTP/1.1 '));
      expect(client.received().match(/HTTP\/1\.1 \d+/g) ?? []).toEqual(['HTTP/1.1 400']);
      client.socket.destroy();
    }
  });
  printToll('megabytes of trailer fields', toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  expect(toll.grownBytes).toBeLessThan(GROWN_MIB_MAX * MIB);
});
