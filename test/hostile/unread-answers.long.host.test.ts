import net from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PREFACE,
  RawHttp2,
  settings,
  TYPE,
  uint32,
} from '../support/raw-http2.ts';
import { call, type Service, startService } from '../support/service.ts';
import { printToll, residentBytesOf, STALL_MS_MAX, tollOf } from './toll.ts';

/* Answers of the general path that nobody reads: bounded in bytes, and given up after a time. */
const MIB = 2 ** 20;
const OBJECTS = 8_000;
const CALM = 11;
const LIST = Buffer.from(
  JSON.stringify({ namespace: 'resource', relation: 'viewer', subject_user_id: 'alice' }),
);

let service: Service;

async function fill(): Promise<void> {
  for (let from = 0; from < OBJECTS; from += 1_000) {
    const updates = Array.from({ length: 1_000 }, (_, i) => ({
      op: 'OP_INSERT',
      tuple: {
        namespace: 'resource',
        object_id: `${'x'.repeat(230)}-${from + i}`,
        relation: 'viewer',
        subject: { user_id: 'alice' },
      },
    }));
    const { status } = await call(service, 'AuthzService/WriteRelationTuples', { updates });
    expect(status).toBe(200);
  }
}

beforeAll(async () => {
  const env = { GATEWAY_STREAM_STALL_SECONDS: '4', GATEWAY_METRICS_TOKEN: '' };
  service = await startService({ env });
  await fill();
}, 180_000);
afterAll(async () => {
  await service?.stop();
});

function ask(id: number, method: string, body: Uint8Array): Buffer {
  const fields = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':authority', 'localhost'],
    [':path', `/workspace.v1.AuthzService/${method}`],
    ['content-type', 'application/json; charset=utf-8'],
    ['authorization', `Bearer ${service.token}`],
  ] as const;
  return Buffer.concat([
    frame(TYPE.headers, END_HEADERS, id, block(fields)),
    frame(TYPE.data, END_STREAM, id, body),
  ]);
}

function port(): number {
  return Number(service.address.split(':')[1]);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
}

test('closed windows: 240 answers of 2 MB', async () => {
  const before = residentBytesOf(service.pid);
  const client = new RawHttp2(port());
  const ids = Array.from({ length: 240 }, (_, i) => i * 2 + 1);
  const toll = await tollOf(
    { pid: service.pid, healthUrl: `${service.metricsUrl}/healthz` },
    async () => {
      client.socket.write(Buffer.concat([PREFACE, settings([4, 0])]));
      for (const id of ids) {
        client.socket.write(ask(id, 'ListObjects', LIST));
        await until(() => client.of(TYPE.headers, id).length > 0 || client.isClosed);
      }
      const isGone = (id: number): boolean => client.isClosed || client.resetCode(id) !== undefined;
      await until(() => ids.every(isGone));
    },
  );
  printToll('240 answers of 2 MB behind closed windows', toll);
  for (const id of ids) {
    if (!client.isClosed) expect(client.resetCode(id)).toBe(CALM);
  }
  client.socket.destroy();
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  // 480 MiB of answers; 64 are held, and their making leaves garbage.
  expect(residentBytesOf(service.pid) - before).toBeLessThan(300 * MIB);
  expect(toll.grownBytes).toBeLessThan(300 * MIB);
  expect(await metric('gatehouse_http2_unread_answers_total')).toBeGreaterThan(0);
  expect(await metric('gatehouse_stalled_answers_total')).toBeGreaterThan(0);
}, 180_000);

test('a reader who takes a little again and again gets all of it', async () => {
  const client = new RawHttp2(port());
  client.socket.write(
    Buffer.concat([
      PREFACE,
      settings([4, 0]),
      frame(TYPE.windowUpdate, 0, 0, uint32(2 ** 30)),
      ask(1, 'ListObjects', LIST),
    ]),
  );
  await until(() => client.of(TYPE.headers, 1).length > 0);
  // Some times as long as one who takes nothing has.
  for (let i = 0; i < 12; i++) {
    client.socket.write(frame(TYPE.windowUpdate, 0, 1, uint32(20_000)));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(client.resetCode(1)).toBeUndefined();
  }
  client.socket.write(frame(TYPE.windowUpdate, 0, 1, uint32(2 ** 30)));
  await until(() => client.isAnswered(1) || client.isClosed);
  const data = Buffer.concat(client.of(TYPE.data, 1).map(({ payload }) => payload));
  const { object_ids: ids } = JSON.parse(data.toString()) as { object_ids: string[] };
  expect(ids.length).toBe(OBJECTS);
  client.socket.destroy();
}, 120_000);

test('a small answer behind a closed window is given up as well', async () => {
  const client = new RawHttp2(port());
  const body = Buffer.from(
    JSON.stringify({
      namespace: 'resource',
      object_id: 'a',
      relation: 'viewer',
      subject_user_id: 'alice',
    }),
  );
  client.socket.write(Buffer.concat([PREFACE, settings([4, 0]), ask(1, 'Check', body)]));
  await until(() => client.resetCode(1) !== undefined || client.isClosed);
  expect(client.resetCode(1)).toBe(CALM);
  client.socket.destroy();
}, 120_000);

test('over HTTP/1.1 a connection whose answer is not read is closed', async () => {
  const socket = net.connect({ port: port(), host: '127.0.0.1' });
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.pause();
  const one =
    'POST /workspace.v1.AuthzService/ListObjects HTTP/1.1\r\nhost: x\r\n' +
    `authorization: Bearer ${service.token}\r\ncontent-type: application/json; charset=utf-8\r\n` +
    `content-length: ${LIST.length}\r\n\r\n`;
  // More than the kernel takes of answers that nobody reads.
  for (let i = 0; i < 8; i++) socket.write(Buffer.concat([Buffer.from(one), LIST]));
  const opened = socket.localPort;
  await new Promise((resolve) => setTimeout(resolve, 12_000));
  socket.resume();
  await until(() => isClosed);
  expect(opened === undefined || isClosed).toBe(true);
}, 120_000);
