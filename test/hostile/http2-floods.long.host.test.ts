import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PADDED,
  PREFACE,
  RawHttp2,
  settings,
  TYPE,
  uint32,
} from '../support/raw-http2.ts';
import { type Service, startService } from '../support/service.ts';
import { printToll, residentBytesOf, STALL_MS_MAX, tollOf } from './toll.ts';

/* Floods of frames by connections without a credential: what they cost the service in memory and in time of its main thread. */
const MIB = 2 ** 20;
const GROWN_BYTES_MAX = 64 * MIB;
const CONNECTIONS = 20;
const PATH = '/workspace.v1.AuthzService/Check';
const FIELDS = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'localhost'],
  [':path', PATH],
  ['content-type', 'application/json'],
] as const;

let service: Service;
beforeAll(async () => {
  service = await startService();
}, 120_000);
afterAll(async () => {
  await service.stop();
});

function headers(id: number, flags = END_HEADERS): Buffer {
  return frame(TYPE.headers, flags, id, block(FIELDS));
}

function times(count: number, make: (i: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => make(i)));
}

const RESET = uint32(8);
const EMPTY = frame(TYPE.data, 0, 1);
const FLOODS: Readonly<Record<string, Buffer>> = {
  'streams opened and reset': times(20_000, (i) =>
    Buffer.concat([headers(i * 2 + 1), frame(TYPE.rstStream, 0, i * 2 + 1, RESET)]),
  ),
  'streams that we must reset': times(20_000, (i) =>
    Buffer.concat([headers(i * 2 + 1), frame(TYPE.windowUpdate, 0, i * 2 + 1, uint32(0))]),
  ),
  settings: times(100_000, () => settings([4, 65_535])),
  'windows of streams up and down': Buffer.concat([
    times(200, (i) => headers(i * 2 + 1)),
    times(50_000, (i) => settings([4, i % 2 === 0 ? 0 : 65_535])),
  ]),
  pings: times(100_000, () => frame(TYPE.ping, 0, 0, Buffer.alloc(8))),
  'empty data': Buffer.concat([headers(1), times(100_000, () => EMPTY)]),
  'data of one byte': Buffer.concat([
    headers(1),
    times(100_000, () => frame(TYPE.data, 0, 1, Buffer.alloc(1))),
  ]),
  'data that is padding': Buffer.concat([
    headers(1),
    times(4_000, () =>
      frame(TYPE.data, PADDED, 1, Buffer.concat([Buffer.from([255]), Buffer.alloc(255)])),
    ),
  ]),
  priorities: times(100_000, (i) => frame(TYPE.priority, 0, i * 2 + 1, Buffer.alloc(5))),
  'window updates of one byte': Buffer.concat([
    settings([4, 0]),
    headers(1, END_HEADERS | END_STREAM),
    times(100_000, () => frame(TYPE.windowUpdate, 0, 1, uint32(1))),
  ]),
  'names of no length': times(20_000, (i) =>
    frame(
      TYPE.headers,
      END_HEADERS | END_STREAM,
      i * 2 + 1,
      Buffer.concat([block(FIELDS), block([['', 'x']])]),
    ),
  ),
  'continuations of nothing': Buffer.concat([
    headers(1, 0),
    times(100_000, () => frame(TYPE.continuation, 0, 1)),
  ]),
  'long continuations': Buffer.concat([
    headers(1, 0),
    times(100, () => frame(TYPE.continuation, 0, 1, Buffer.alloc(16_384))),
  ]),
  'unknown frames': times(100_000, () => frame(0xbe, 0, 0)),
  'lists of the table’s largest field': times(200, (i) =>
    frame(
      TYPE.headers,
      END_HEADERS | END_STREAM,
      i * 2 + 1,
      Buffer.concat([
        i === 0
          ? Buffer.concat([
              Buffer.from([0x40, 1, 0x78, 0x7f, 0x81, 0x1e]),
              Buffer.alloc(0x7f + 0x81 - 0x80 + 0x1e * 128, 0x61),
            ])
          : Buffer.alloc(0),
        Buffer.alloc(12_000, 0xbe),
      ]),
    ),
  ),
};

/** Sends all of it until the peer has answered what is behind, or has ended the connection. */
async function flood(port: number, bytes: Buffer): Promise<void> {
  const client = new RawHttp2(port);
  client.socket.write(Buffer.concat([PREFACE, settings()]));
  client.socket.write(bytes);
  const last = frame(TYPE.ping, 0, 0, Buffer.from('the last'));
  client.socket.write(last);
  const isAnswered = (): boolean =>
    client.of(TYPE.ping).some(({ payload }) => payload.toString() === 'the last');
  while (!client.isClosed && client.goawayCode === undefined && !isAnswered()) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  client.socket.destroy();
}

test.each(Object.entries(FLOODS))(
  '%s',
  async (name, bytes) => {
    const port = Number(service.address.split(':')[1]);
    const before = residentBytesOf(service.pid);
    // The port of calls is attacked, and its own thread is asked.
    const healthUrl = `${service.baseUrl}/healthz`;
    const toll = await tollOf({ pid: service.pid, healthUrl }, async () => {
      for (let i = 0; i < CONNECTIONS / 4; i++) {
        await Promise.all(Array.from({ length: 4 }, () => flood(port, bytes)));
      }
    });
    const sentMib = ((bytes.length * CONNECTIONS) / MIB).toFixed(1);
    printToll(`${name} (${sentMib} MiB sent by ${CONNECTIONS} connections)`, toll);
    expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
    expect(toll.grownBytes).toBeLessThan(GROWN_BYTES_MAX);
    expect(residentBytesOf(service.pid) - before).toBeLessThan(GROWN_BYTES_MAX);
  },
  120_000,
);
