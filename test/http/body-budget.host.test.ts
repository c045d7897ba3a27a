import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createClient } from '@connectrpc/connect';
import { compressionGzip, createGrpcTransport } from '@connectrpc/connect-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CallerScopes } from '../../src/gateway/callers/caller-scopes.ts';
import { Caller, Credential } from '../../src/gateway/callers/caller.ts';
import { BodyBudget, NO_OWNER } from '../../src/http/bodies/body-budget.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { ConformanceService } from '../conformance-connect/gen/connectrpc/conformance/v1/service_pb.ts';
import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PREFACE,
  RawHttp2,
  settings,
  TYPE,
} from '../support/raw-http2.ts';
import { READ_MAX_BYTES, startServer, type TestServer, waitFor } from './start-server.ts';

/* One budget for the bodies of all listeners and protocols: shares hold, place is made, and all is given back. */

const CHECK = '/workspace.v1.AuthzService/Check';
const BUDGET_BYTES = 1_600_000;
const SHARE_BYTES = BUDGET_BYTES / 2;
const HELD_BYTES = 90_000;
const CALM = 11;

const credentials: ReadonlyMap<string, Credential> = new Map(
  ['ann', 'ben'].map((name) => {
    const counts = { accepted: 0, rateLimited: 0, outOfScope: 0 };
    const caller = new Caller(name, new CallerScopes([], ''), counts, undefined);
    return [`Bearer ${name}`, new Credential(caller)] as const;
  }),
);

/** Counts what bodies add, which is not seen from what they hold. */
class WatchedBudget extends BodyBudget {
  changes = 0;

  override change(...args: Parameters<BodyBudget['change']>): ReturnType<BodyBudget['change']> {
    this.changes += 1;
    return super.change(...args);
  }
}

let budget: WatchedBudget;
/** Of the budget: it goes on where a test says so. */
let nowMs = 0;
let started: TestServer;
const clients: (net.Socket | RawHttp2)[] = [];

async function start(
  isPortShared = true,
  bodyTimeoutMs = 30_000,
  bytesMax = BUDGET_BYTES,
): Promise<void> {
  budget = new WatchedBudget({ bytesMax, now: () => nowMs });
  started = await startServer({
    isPortShared,
    bodyBudget: budget,
    limits: { bodyTimeoutMs },
    authorize: (_path, header) => {
      const authorization = header('authorization');
      // It takes long to find out who this is.
      if (authorization === 'Bearer pending') return new Promise(() => undefined);
      return (
        credentials.get(authorization) ?? new AppError('CREDENTIAL_INVALID', 'nobody knows you')
      );
    },
  });
}

beforeEach(() => start());
afterEach(async () => {
  for (const client of clients.splice(0)) {
    if (client instanceof RawHttp2) client.socket.destroy();
    else client.destroy();
  }
  await started.server.stop(0);
});

type Sent = {
  /** What has come as the answer, as text. */
  readonly answer: () => string;
  readonly more: (bytes: number) => void;
  readonly drop: () => void;
};

type Way = {
  readonly name: string;
  send(caller: string, bytes: number): Sent;
};

/** `origin`: an absolute target, which node:http reads. */
function overHttp1(name: string, origin = ''): Way {
  return {
    name,
    send(caller, bytes) {
      const socket = net.connect({ port: started.port, host: '127.0.0.1' });
      clients.push(socket);
      let received = '';
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
      });
      socket.write(
        `POST ${origin}${CHECK} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${caller}\r\n` +
          `content-type: application/json\r\ncontent-length: 99000\r\n\r\n${' '.repeat(bytes)}`,
      );
      return {
        answer: () => received,
        more: (count) => void socket.write(' '.repeat(count)),
        drop: () => void socket.destroy(),
      };
    },
  };
}

/** All on one connection, as streams. */
function overHttp2(name: string): Way {
  let client: RawHttp2 | null = null;
  let id = -1;
  return {
    name,
    send(caller, bytes) {
      if (client === null || client.isClosed || !clients.includes(client)) {
        client = new RawHttp2(started.http2Port);
        clients.push(client);
        id = -1;
        client.socket.write(Buffer.concat([PREFACE, settings()]));
      }
      id += 2;
      const own = id;
      const { socket } = client;
      const at = client;
      const head = block([
        [':method', 'POST'],
        [':scheme', 'http'],
        [':authority', 'x'],
        [':path', CHECK],
        ['content-type', 'application/json'],
        ['authorization', `Bearer ${caller}`],
      ]);
      const more = (count: number): void => {
        for (let left = count; left > 0; left -= 16_000) {
          socket.write(frame(TYPE.data, 0, own, Buffer.alloc(Math.min(left, 16_000), 0x20)));
        }
      };
      socket.write(frame(TYPE.headers, END_HEADERS, own, head));
      more(bytes);
      return {
        answer: () =>
          at.of(TYPE.data, own).reduce((text, { payload }) => text + payload.toString(), '') +
          (at.resetCode(own) === CALM ? 'ENHANCE_YOUR_CALM' : ''),
        more,
        drop: () => void socket.write(frame(TYPE.rstStream, 0, own, Buffer.from([0, 0, 0, 8]))),
      };
    },
  };
}

const WAYS = [
  { way: overHttp1('HTTP/1.1, uWebSockets.js'), isPortShared: true },
  { way: overHttp1('HTTP/1.1, node:http', 'http://x'), isPortShared: true },
  { way: overHttp2('HTTP/2'), isPortShared: true },
  { way: overHttp1('HTTP/1.1 on a port of its own'), isPortShared: false },
  { way: overHttp2('HTTP/2 on a port of its own'), isPortShared: false },
] as const;

/** Counted beside the bytes of a body. */
const OVERHEAD_BYTES = 1_024;

/** Sends a body and waits until all of it is held, or something had to make place. How it comes in pieces says how much it holds. */
async function hold(way: Way, caller: string): Promise<Sent> {
  const before = budget.heldBytesOf(caller);
  const { refused, cut } = budget.counts;
  const lost = (): number => refused.caller + cut.caller;
  const lostBefore = lost();
  const one = way.send(caller, HELD_BYTES);
  const heldMin = before + HELD_BYTES + OVERHEAD_BYTES;
  await waitFor(() => budget.heldBytesOf(caller) >= heldMin || lost() > lostBefore);
  return one;
}

/** Sends bodies until one of them, the last, is refused. */
async function fill(way: Way, caller: string): Promise<{ held: Sent[]; beyond: Sent }> {
  const held: Sent[] = [];
  for (;;) {
    const one = await hold(way, caller);
    if (budget.counts.refused.caller > 0) return { held, beyond: one };
    held.push(one);
  }
}

/** A whole question of the way that is served in any case. */
async function isServed(caller: string, padding: number): Promise<boolean> {
  const response = await fetch(`${started.baseUrl}${CHECK}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${caller}` },
    body: `{"subject_user_id":"alice"${' '.repeat(padding)}}`,
  });
  const text = await response.text();
  return response.status === 200 && text.includes('true');
}

describe.each(WAYS)('$way.name', ({ way, isPortShared }) => {
  beforeEach(async () => {
    if (isPortShared) return;
    await started.server.stop(0);
    await start(isPortShared);
  });

  test('a caller fills its share and no more; others are served meanwhile', async () => {
    const { held, beyond } = await fill(way, 'ann');
    // Blocks hold up to twice what comes in pieces.
    expect(held.length).toBeGreaterThan(SHARE_BYTES / HELD_BYTES / 2);
    // All of it is read, so that the answer gets through.
    beyond.more(99_000 - HELD_BYTES);
    await waitFor(() => beyond.answer().includes('BODY_MEMORY_EXHAUSTED'));
    expect(beyond.answer()).toContain('resource_exhausted');
    expect(budget.heldBytesOf('ann')).toBeLessThanOrEqual(SHARE_BYTES);
    expect(await isServed('ben', 95_000)).toBe(true);
    // A small one that comes whole needs no room.
    expect(await isServed('ann', 100)).toBe(true);
    for (const one of held) expect(one.answer()).toBe('');
  });

  test('what is not authenticated yet has a share of its own', async () => {
    for (let i = 0; i < 4; i++) way.send('pending', HELD_BYTES);
    await waitFor(() => budget.counts.refused.unauthenticated > 0);
    expect(budget.heldBytesOf(NO_OWNER)).toBeLessThanOrEqual(BUDGET_BYTES / 8);
    expect(await isServed('ann', 95_000)).toBe(true);
  });

  test('bodies that went quiet make place and are told so', async () => {
    const renewed = await hold(way, 'ann');
    const quiet: Sent[] = [];
    for (let i = 0; i < 3; i++) quiet.push(await hold(way, 'ann'));
    nowMs += 1_200;
    // One that sends again is quiet no more.
    const before = budget.changes;
    renewed.more(1_000);
    await waitFor(() => budget.changes > before);
    const others = [renewed];
    while (budget.counts.cut.caller < 2) others.push(await hold(way, 'ann'));
    const told = (): number =>
      quiet.filter((one) => one.answer().includes('BODY_MEMORY_EXHAUSTED')).length;
    await waitFor(() => told() >= 2);
    for (const one of others) expect(one.answer()).toBe('');
    expect(budget.counts.refused.caller).toBe(0);
    expect(budget.heldBytesOf('ann')).toBeLessThanOrEqual(SHARE_BYTES);
  });

  test('all is given back when clients go', async () => {
    const { held } = await fill(way, 'ann');
    for (const one of held) one.drop();
    await waitFor(() => budget.heldBytes === 0);
  });
});

test.each(WAYS)('$way.name: bodies that take too long give all back', async (row) => {
  await started.server.stop(0);
  await start(row.isPortShared, 500);
  for (let i = 0; i < 4; i++) row.way.send('ann', HELD_BYTES);
  await waitFor(() => budget.heldBytes > 0);
  await waitFor(() => budget.heldBytes === 0);
});

test.each([
  ['first', ''],
  ['later', 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'],
])(
  'a body of chunks of a byte over HTTP/1.1 is put together as it is read: a %s request',
  async (_nth, before) => {
    const socket = net.connect({ port: started.port, host: '127.0.0.1' });
    clients.push(socket);
    let received = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    if (before !== '') {
      socket.write(before);
      await waitFor(() => received.endsWith('{}'));
      received = '';
    }
    socket.write(
      `POST ${CHECK} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ann\r\n` +
        `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(20_000)}`,
    );
    await waitFor(() => budget.heldBytes > 20_000);
    expect(budget.heldBytes).toBeLessThan(80_000);
    expect(budget.counts.refused.crumbs).toBe(0);
    socket.write('2\r\n{}\r\n0\r\n\r\n');
    await waitFor(() => received.includes('\r\n\r\n'));
    expect(received).toContain('HTTP/1.1 200');
    await waitFor(() => budget.heldBytes === 0);
  },
);

describe('what becomes of compressed bodies', () => {
  const bomb = gzipSync(`{"subject_user_id":"alice"${' '.repeat(99_000)}}`);

  test('counts while the call is under way', async () => {
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, budget.heldBytesOf('ann'))), 1);
    const ask = async (i: number): Promise<string> => {
      const response = await fetch(`${started.baseUrl}${CHECK}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-encoding': 'gzip',
          authorization: 'Bearer ann',
        },
        body: gzipSync(`{"object_id":"wait:300","relation":"r${i}"${' '.repeat(90_000)}}`),
      });
      return response.text();
    };
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => ask(i)));
    clearInterval(watch);
    expect(most).toBeGreaterThan(90_000);
    expect(most).toBeLessThanOrEqual(SHARE_BYTES);
    expect(answers.filter((text) => text.includes('allowed')).length).toBeGreaterThan(4);
    expect(answers.some((text) => text.includes('BODY_MEMORY_EXHAUSTED'))).toBe(true);
    await waitFor(() => budget.heldBytes === 0);
  });

  test('is refused over gRPC, too, where others hold the share', async () => {
    await fill(WAYS[0].way, 'ann');
    const client = new RawHttp2(started.http2Port);
    clients.push(client);
    const head = block([
      [':method', 'POST'],
      [':scheme', 'http'],
      [':authority', 'x'],
      [':path', CHECK],
      ['content-type', 'application/grpc+json'],
      ['grpc-encoding', 'gzip'],
      ['te', 'trailers'],
      ['authorization', 'Bearer ann'],
    ]);
    const envelope = Buffer.alloc(5);
    envelope[0] = 1;
    envelope.writeUInt32BE(bomb.length, 1);
    client.socket.write(
      Buffer.concat([
        PREFACE,
        settings(),
        frame(TYPE.headers, END_HEADERS, 1, head),
        frame(TYPE.data, END_STREAM, 1, Buffer.concat([envelope, bomb])),
      ]),
    );
    await waitFor(() => client.isAnswered(1));
    // Beside the one that found no room.
    expect(budget.counts.refused.caller).toBe(2);
    expect(started.failures).toEqual([]);
  });
});

describe('client streams', () => {
  test('messages in pieces of a byte come whole, and hold nothing in the end', async () => {
    const client = new RawHttp2(started.http2Port);
    clients.push(client);
    const head = block([
      [':method', 'POST'],
      [':scheme', 'http'],
      [':authority', 'x'],
      [':path', '/connectrpc.conformance.v1.ConformanceService/ClientStream'],
      ['content-type', 'application/grpc+json'],
      ['te', 'trailers'],
      ['authorization', 'Bearer ann'],
    ]);
    const message = Buffer.from('{"request_data":"AAAA"}');
    const envelope = Buffer.alloc(5);
    envelope.writeUInt32BE(message.length, 1);
    const all = Buffer.concat([envelope, message, envelope, message]);
    client.socket.write(Buffer.concat([PREFACE, settings()]));
    client.socket.write(frame(TYPE.headers, END_HEADERS, 1, head));
    for (const byte of all) {
      client.socket.write(frame(TYPE.data, 0, 1, Buffer.of(byte)));
      await sleep(1);
    }
    client.socket.write(frame(TYPE.data, END_STREAM, 1));
    await waitFor(() => client.isAnswered(1));
    const answer = client.of(TYPE.data, 1).map(({ payload }) => payload.toString());
    expect(answer.join('').match(/AAAA/g)).toHaveLength(2);
    await waitFor(() => budget.heldBytes === 0);
  });

  test.each([
    ['plain', null],
    ['gzip', compressionGzip],
  ])(
    'many long messages pass one after another through a share that holds few: %s',
    async (_name, sendCompression) => {
      // The window of a stream is 1 MiB: so much comes before anybody reads.
      await started.server.stop(0);
      await start(true, 30_000, 3 * BUDGET_BYTES);
      const transport = createGrpcTransport({
        baseUrl: started.baseUrl,
        ...(sendCompression === null ? {} : { sendCompression }),
        interceptors: [
          (next) => (request) => {
            request.header.set('authorization', 'Bearer ann');
            return next(request);
          },
        ],
      });
      const count = 40;
      const messages = async function* () {
        for (let i = 0; i < count; i++) {
          yield { requestData: new Uint8Array(READ_MAX_BYTES - 1_000).fill(i) };
          await sleep(0);
        }
      };
      const client = createClient(ConformanceService, transport);
      const { payload } = await client.clientStream(messages());
      expect(payload?.requestInfo?.requests).toHaveLength(count);
      expect(budget.counts.refused.caller).toBe(0);
      await waitFor(() => budget.heldBytes === 0);
    },
  );
});
