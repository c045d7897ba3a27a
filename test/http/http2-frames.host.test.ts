import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { isOfPlatform } from '../support/http1-parsers.ts';
import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PADDED,
  PREFACE,
  PRIORITIZED,
  RawHttp2,
  settings,
  TYPE,
  uint32,
} from '../support/raw-http2.ts';
import { startServer, waitFor, type TestServer } from './start-server.ts';

/* What a peer may do wrong with frames, and what it is told: codes of RFC 9113. */
const [PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR] = [1, 3, 5, 6];
const [REFUSED_STREAM, COMPRESSION_ERROR, CALM] = [7, 9, 11];
const STREAMS_MAX = 8;
const HEADER_BYTES_MAX = 16_384;

let target: TestServer;
beforeAll(async () => {
  target = await startServer({ limits: { http2StreamsMax: STREAMS_MAX, http2IdleMs: 60_000 } });
});
afterAll(async () => {
  await target.server.stop(1_000);
  expect(target.failures).toEqual([]);
  expect(target.server.connectionCount).toBe(0);
});

type Field = readonly [name: string, value: string];

const PSEUDO: readonly Field[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'localhost'],
  [':path', '/workspace.v1.AuthzService/Check'],
];
const TYPED: readonly Field[] = [...PSEUDO, ['content-type', 'application/json']];
const BODY = Buffer.from('{"object_id":"a"}');
const WAIT = Buffer.from('{"object_id":"wait:20000"}');

function headers(
  id: number,
  fields: readonly Field[] = TYPED,
  flags: number = END_HEADERS,
): Buffer {
  return frame(TYPE.headers, flags, id, block(fields));
}

/** A whole call. */
function call(id: number, fields: readonly Field[] = TYPED, body: Uint8Array = BODY): Buffer {
  return Buffer.concat([headers(id, fields), frame(TYPE.data, END_STREAM, id, body)]);
}

/** A call that is not answered for now. */
function open(id: number): Buffer {
  return call(id, TYPED, WAIT);
}

/** A call that is reset on its way. */
function dropped(id: number): Buffer {
  return Buffer.concat([open(id), frame(TYPE.rstStream, 0, id, uint32(8))]);
}

function without(name: string): readonly Field[] {
  return TYPED.filter(([one]) => one !== name);
}

function times(count: number, make: (i: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => make(i)));
}

function connect(port = target.port): RawHttp2 {
  const client = new RawHttp2(port);
  onTestFinished(() => {
    client.socket.destroy();
  });
  return client;
}

type Outcome = { readonly goaway: number } | { readonly rst: number } | 'served' | 'alive';
type Row = readonly [name: string, sent: Buffer, outcome: Outcome];

const PRIORITY_OF_1 = Buffer.concat([uint32(1), Buffer.from([16])]);
const PRIORITY_OF_0 = Buffer.concat([uint32(0), Buffer.from([16])]);
const goaway = (code: number): Outcome => ({ goaway: code });
const rst = (code: number): Outcome => ({ rst: code });

/** Of stream 1, after preface and settings. */
const ROWS: readonly Row[] = [
  ['a call', call(1), 'served'],
  [
    'a call byte by byte in frames',
    Buffer.concat([
      headers(1),
      ...[...BODY].map((_, i) =>
        frame(TYPE.data, i === BODY.length - 1 ? END_STREAM : 0, 1, BODY.subarray(i, i + 1)),
      ),
    ]),
    'served',
  ],
  [
    'an end of its own',
    Buffer.concat([headers(1), frame(TYPE.data, 0, 1, BODY), frame(TYPE.data, END_STREAM, 1)]),
    'served',
  ],
  [
    'trailers',
    Buffer.concat([
      headers(1),
      frame(TYPE.data, 0, 1, BODY),
      headers(1, [['x-end', '1']], END_HEADERS | END_STREAM),
    ]),
    'served',
  ],
  [
    'padding',
    Buffer.concat([
      headers(1),
      frame(
        TYPE.data,
        PADDED | END_STREAM,
        1,
        Buffer.concat([Buffer.from([3]), BODY, Buffer.alloc(3)]),
      ),
    ]),
    'served',
  ],
  [
    'padded and prioritized headers',
    Buffer.concat([
      frame(
        TYPE.headers,
        END_HEADERS | PADDED | PRIORITIZED,
        1,
        Buffer.concat([Buffer.from([2]), PRIORITY_OF_0, block(TYPED), Buffer.alloc(2)]),
      ),
      frame(TYPE.data, END_STREAM, 1, BODY),
    ]),
    'served',
  ],
  [
    'headers in pieces',
    Buffer.concat([
      frame(TYPE.headers, 0, 1, block(PSEUDO)),
      frame(TYPE.continuation, 0, 1),
      frame(TYPE.continuation, END_HEADERS, 1, block([['content-type', 'application/json']])),
      frame(TYPE.data, END_STREAM, 1, BODY),
    ]),
    'served',
  ],
  [
    'unknown frames',
    Buffer.concat([frame(0x77, 0xff, 0, Buffer.from('?')), frame(0x77, 0, 1), call(1)]),
    'served',
  ],
  [
    'a content-length that is right',
    call(1, [...TYPED, ['content-length', String(BODY.length)]]),
    'served',
  ],
  ['te: trailers', call(1, [...TYPED, ['te', 'trailers']]), 'served'],
  [
    'host instead of :authority',
    call(1, [...without(':authority'), ['host', 'localhost']]),
    'served',
  ],
  [
    'a priority ahead of its stream',
    Buffer.concat([frame(TYPE.priority, 0, 1, PRIORITY_OF_0), call(1)]),
    'served',
  ],
  [
    'no settings of ours acknowledged',
    Buffer.concat([settings([4, 100_000], [0x99, 1]), call(1)]),
    'served',
  ],
  ['the peer’s table taken away', Buffer.concat([settings([1, 0]), call(1)]), 'served'],
  [
    'a window update of a closed stream',
    Buffer.concat([dropped(1), frame(TYPE.windowUpdate, 0, 1, uint32(1))]),
    'alive',
  ],

  ['data of stream 0', frame(TYPE.data, 0, 0, BODY), goaway(PROTOCOL_ERROR)],
  ['headers of stream 0', headers(0), goaway(PROTOCOL_ERROR)],
  ['headers of an even stream', headers(2), goaway(PROTOCOL_ERROR)],
  ['priority of stream 0', frame(TYPE.priority, 0, 0, PRIORITY_OF_0), goaway(PROTOCOL_ERROR)],
  ['reset of stream 0', frame(TYPE.rstStream, 0, 0, uint32(8)), goaway(PROTOCOL_ERROR)],
  ['settings of a stream', frame(TYPE.settings, 0, 1), goaway(PROTOCOL_ERROR)],
  ['ping of a stream', frame(TYPE.ping, 0, 1, Buffer.alloc(8)), goaway(PROTOCOL_ERROR)],
  ['goaway of a stream', frame(TYPE.goaway, 0, 1, Buffer.alloc(8)), goaway(PROTOCOL_ERROR)],
  ['a push', frame(TYPE.pushPromise, END_HEADERS, 1, uint32(2)), goaway(PROTOCOL_ERROR)],
  ['a continuation of nothing', frame(TYPE.continuation, END_HEADERS, 1), goaway(PROTOCOL_ERROR)],
  [
    'headers of another stream between headers',
    Buffer.concat([headers(1, TYPED, 0), headers(3)]),
    goaway(PROTOCOL_ERROR),
  ],
  [
    'a ping between headers',
    Buffer.concat([headers(1, TYPED, 0), frame(TYPE.ping, 0, 0, Buffer.alloc(8))]),
    goaway(PROTOCOL_ERROR),
  ],
  [
    'an unknown frame between headers',
    Buffer.concat([headers(1, TYPED, 0), frame(0x77, 0, 1)]),
    goaway(PROTOCOL_ERROR),
  ],
  ['data of an idle stream', frame(TYPE.data, 0, 5, BODY), goaway(PROTOCOL_ERROR)],
  ['reset of an idle stream', frame(TYPE.rstStream, 0, 5, uint32(8)), goaway(PROTOCOL_ERROR)],
  ['window of an idle stream', frame(TYPE.windowUpdate, 0, 5, uint32(1)), goaway(PROTOCOL_ERROR)],
  ['ids that go back', Buffer.concat([open(5), headers(3)]), goaway(PROTOCOL_ERROR)],
  ['headers of a closed stream', Buffer.concat([dropped(1), headers(1)]), goaway(STREAM_CLOSED)],
  [
    'data of a closed stream',
    Buffer.concat([dropped(1), frame(TYPE.data, 0, 1, BODY)]),
    goaway(STREAM_CLOSED),
  ],
  [
    'padding longer than data',
    Buffer.concat([headers(1), frame(TYPE.data, PADDED, 1, Buffer.from([9, 1]))]),
    goaway(PROTOCOL_ERROR),
  ],
  [
    'padded data without a length',
    Buffer.concat([headers(1), frame(TYPE.data, PADDED, 1)]),
    goaway(PROTOCOL_ERROR),
  ],
  [
    'padding longer than headers',
    frame(TYPE.headers, END_HEADERS | PADDED, 1, Buffer.from([9, 1])),
    goaway(PROTOCOL_ERROR),
  ],
  [
    'a frame of 16,385 bytes',
    frame(TYPE.data, 0, 1, Buffer.alloc(0), 16_385),
    goaway(FRAME_SIZE_ERROR),
  ],
  [
    'a frame of 16 MiB',
    frame(TYPE.settings, 0, 0, Buffer.alloc(0), 2 ** 24 - 1),
    goaway(FRAME_SIZE_ERROR),
  ],
  [
    'a reset of 3 bytes',
    Buffer.concat([open(1), frame(TYPE.rstStream, 0, 1, Buffer.alloc(3))]),
    goaway(FRAME_SIZE_ERROR),
  ],
  ['a ping of 7 bytes', frame(TYPE.ping, 0, 0, Buffer.alloc(7)), goaway(FRAME_SIZE_ERROR)],
  ['settings of 5 bytes', frame(TYPE.settings, 0, 0, Buffer.alloc(5)), goaway(FRAME_SIZE_ERROR)],
  [
    'settings acknowledged with bytes',
    frame(TYPE.settings, 1, 0, Buffer.alloc(6)),
    goaway(FRAME_SIZE_ERROR),
  ],
  [
    'a window update of 3 bytes',
    frame(TYPE.windowUpdate, 0, 0, Buffer.alloc(3)),
    goaway(FRAME_SIZE_ERROR),
  ],
  ['a goaway of 7 bytes', frame(TYPE.goaway, 0, 0, Buffer.alloc(7)), goaway(FRAME_SIZE_ERROR)],
  [
    'a priority of 4 bytes within headers',
    frame(TYPE.headers, END_HEADERS | PRIORITIZED, 1, Buffer.alloc(4)),
    goaway(FRAME_SIZE_ERROR),
  ],
  ['push allowed by 2', settings([2, 2]), goaway(PROTOCOL_ERROR)],
  ['a window of 2^31', settings([4, 2 ** 31]), goaway(FLOW_CONTROL_ERROR)],
  ['frames of 16,383', settings([5, 16_383]), goaway(PROTOCOL_ERROR)],
  ['frames of 2^24', settings([5, 2 ** 24]), goaway(PROTOCOL_ERROR)],
  [
    '33 settings',
    settings(...Array.from({ length: 33 }, (): readonly [number, number] => [3, 1])),
    goaway(CALM),
  ],
  [
    'the connection’s window opened by 0',
    frame(TYPE.windowUpdate, 0, 0, uint32(0)),
    goaway(PROTOCOL_ERROR),
  ],
  [
    'the connection’s window opened too far',
    frame(TYPE.windowUpdate, 0, 0, uint32(2 ** 31 - 1)),
    goaway(FLOW_CONTROL_ERROR),
  ],
  [
    'streams’ windows opened too far by settings',
    Buffer.concat([
      open(1),
      frame(TYPE.windowUpdate, 0, 1, uint32(2 ** 30)),
      settings([4, 2 ** 31 - 1]),
    ]),
    goaway(FLOW_CONTROL_ERROR),
  ],

  ['index 0', frame(TYPE.headers, END_HEADERS, 1, Buffer.from([0x80])), goaway(COMPRESSION_ERROR)],
  [
    'an index beyond the tables',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.from([0xff, 0x20])),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'an endless integer',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.alloc(20, 0xff)),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'a string longer than its block',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.from([0, 9, 0x61])),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'padding of a Huffman code that is not of ones',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.from([0, 0x81, 0x18, 0])),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'EOS in a Huffman code',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.from([0, 0x84, 0xff, 0xff, 0xff, 0xff, 0])),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'a table larger than allowed',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.from([0x3f, 0xe2, 0x1f])),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'a table resized late',
    frame(TYPE.headers, END_HEADERS, 1, Buffer.concat([block(TYPED), Buffer.from([0x20])])),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'a table resized three times',
    frame(
      TYPE.headers,
      END_HEADERS,
      1,
      Buffer.concat([Buffer.from([0x20, 0x21, 0x22]), block(TYPED)]),
    ),
    goaway(COMPRESSION_ERROR),
  ],
  [
    'a broken block of a refused stream',
    Buffer.concat([
      times(STREAMS_MAX, (i) => open(i * 2 + 1)),
      frame(TYPE.headers, END_HEADERS, 99, Buffer.from([0x80])),
    ]),
    goaway(COMPRESSION_ERROR),
  ],

  [
    'data behind the end',
    Buffer.concat([open(1), frame(TYPE.data, 0, 1, BODY)]),
    rst(STREAM_CLOSED),
  ],
  ['headers behind the end', Buffer.concat([open(1), headers(1)]), rst(STREAM_CLOSED)],
  [
    'a stream that depends on itself',
    frame(TYPE.headers, END_HEADERS | PRIORITIZED, 1, Buffer.concat([PRIORITY_OF_1, block(TYPED)])),
    rst(PROTOCOL_ERROR),
  ],
  [
    'a stream made dependent on itself',
    Buffer.concat([open(1), frame(TYPE.priority, 0, 1, PRIORITY_OF_1)]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'a priority of 4 bytes',
    Buffer.concat([open(1), frame(TYPE.priority, 0, 1, Buffer.alloc(4))]),
    rst(FRAME_SIZE_ERROR),
  ],
  [
    'a window opened by 0',
    Buffer.concat([open(1), frame(TYPE.windowUpdate, 0, 1, uint32(0))]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'a window opened too far',
    Buffer.concat([open(1), frame(TYPE.windowUpdate, 0, 1, uint32(2 ** 31 - 1))]),
    rst(FLOW_CONTROL_ERROR),
  ],
  [
    'second headers that do not end',
    Buffer.concat([headers(1), headers(1, [['x-a', '1']])]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'pseudo fields among trailers',
    Buffer.concat([headers(1), headers(1, [[':path', '/']], END_HEADERS | END_STREAM)]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'trailers that are none',
    Buffer.concat([headers(1), headers(1, [['X-End', '1']], END_HEADERS | END_STREAM)]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'trailers before the length is reached',
    Buffer.concat([
      headers(1, [...TYPED, ['content-length', '5']]),
      headers(1, [['x-end', '1']], END_HEADERS | END_STREAM),
    ]),
    rst(PROTOCOL_ERROR),
  ],
  ['an empty list', headers(1, [], END_HEADERS | END_STREAM), rst(PROTOCOL_ERROR)],
  ...[':method', ':scheme', ':path', ':authority'].map((name): Row => [
    `no ${name}`,
    headers(1, without(name)),
    rst(PROTOCOL_ERROR),
  ]),
  ...PSEUDO.map((field): Row => [
    `${field[0]} twice`,
    headers(1, [field, ...TYPED]),
    rst(PROTOCOL_ERROR),
  ]),
  ['a late pseudo field', headers(1, [...without(':path'), [':path', '/x']]), rst(PROTOCOL_ERROR)],
  ['an unknown pseudo field', headers(1, [[':extra', '1'], ...TYPED]), rst(PROTOCOL_ERROR)],
  ['a pseudo field of answers', headers(1, [[':status', '200'], ...TYPED]), rst(PROTOCOL_ERROR)],
  [
    'an empty path',
    headers(1, [...without(':path').slice(0, 3), [':path', '']]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'a path without a slash',
    headers(1, [...without(':path').slice(0, 3), [':path', 'x']]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'a path with a blank',
    headers(1, [...without(':path').slice(0, 3), [':path', '/ x']]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'CONNECT with a path',
    headers(1, [[':method', 'CONNECT'], ...TYPED.slice(1)]),
    rst(PROTOCOL_ERROR),
  ],
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].map(
    (name): Row => [name, headers(1, [...TYPED, [name, 'x']]), rst(PROTOCOL_ERROR)],
  ),
  ['te: gzip', headers(1, [...TYPED, ['te', 'gzip']]), rst(PROTOCOL_ERROR)],
  ...['X-A', 'x a', 'x\0', 'x:y', '', 'x\x7f', 'xé'].map((name): Row => [
    `the name ${JSON.stringify(name)}`,
    headers(1, [...TYPED, [name, '1']]),
    rst(PROTOCOL_ERROR),
  ]),
  ...['a\0b', 'a\rb', 'a\nb', ' a', 'a ', '\ta', 'a\x01', 'a\x7f'].map((value): Row => [
    `the value ${JSON.stringify(value)}`,
    headers(1, [...TYPED, ['x-a', value]]),
    rst(PROTOCOL_ERROR),
  ]),
  ...['', '-1', '1.5', '1e3', '99999999999999999999', '5, 5'].map((value): Row => [
    `content-length "${value}"`,
    headers(1, [...TYPED, ['content-length', value]]),
    rst(PROTOCOL_ERROR),
  ]),
  [
    'content-length twice',
    headers(1, [...TYPED, ['content-length', '17'], ['content-length', '17']]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'more data than content-length',
    call(1, [...TYPED, ['content-length', '5']]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'less data than content-length',
    call(1, [...TYPED, ['content-length', '500']]),
    rst(PROTOCOL_ERROR),
  ],
  [
    'no data in spite of content-length',
    headers(1, [...TYPED, ['content-length', '5']], END_HEADERS | END_STREAM),
    rst(PROTOCOL_ERROR),
  ],
  [
    'a header list too long',
    headers(1, [...TYPED, ['x-long', 'x'.repeat(HEADER_BYTES_MAX - 200)]]),
    rst(CALM),
  ],
  [
    '129 fields',
    headers(1, [...TYPED, ...Array.from({ length: 124 }, (_, i): Field => [`x-${i}`, ''])]),
    rst(CALM),
  ],
  [
    'a bomb of HPACK',
    frame(
      TYPE.headers,
      END_HEADERS,
      1,
      Buffer.concat([
        block(TYPED),
        Buffer.from([0x40, 1, 0x62, 0x7f, 0xa1, 0x1e]),
        Buffer.alloc(4_000, 0x61),
        Buffer.alloc(12_000, 0xbe),
      ]),
    ),
    rst(CALM),
  ],
  [
    'a body in crumbs',
    Buffer.concat([headers(1), times(300, () => frame(TYPE.data, 0, 1))]),
    rst(CALM),
  ],
];

/** Sends preface, settings and `sent`; tells what came back. */
async function outcomeOf(sent: Buffer, expected: Outcome, splitAt?: number): Promise<Outcome> {
  const client = connect();
  const all = Buffer.concat([PREFACE, settings(), sent]);
  const parts = splitAt === undefined ? [all] : [all.subarray(0, splitAt), all.subarray(splitAt)];
  const probe = Buffer.concat([
    headers(
      1_001,
      [[':method', 'GET'], ...TYPED.slice(1, 3), [':path', '/x']],
      END_HEADERS | END_STREAM,
    ),
  ]);
  for (const part of parts) {
    client.socket.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (expected === 'served')
    await waitFor(() => client.isAnswered(1) || client.goawayCode !== undefined);
  if (typeof expected === 'string' || 'rst' in expected) {
    client.socket.write(frame(TYPE.rstStream, 0, 1, uint32(8)));
    client.socket.write(probe);
    await waitFor(() => client.frames.some(({ id }) => id === 1_001) || client.isClosed);
  } else await waitFor(() => client.isClosed);
  if (client.goawayCode !== undefined) return { goaway: client.goawayCode };
  const code = client.resetCode(1);
  if (code !== undefined) return { rst: code };
  return client.isAnswered(1) && expected === 'served' ? 'served' : 'alive';
}

describe('frames of stream 1', () => {
  test.each(ROWS)('%s', async (_name, sent, outcome) => {
    expect(await outcomeOf(sent, outcome)).toEqual(outcome);
  });
});

describe('calls of one connection', () => {
  test('a call that is reset in the same read as it came is begun and told', async () => {
    const client = connect();
    const body = Buffer.from('{"object_id":"wait:20000","relation":"dropped-at-once"}');
    const reset = frame(TYPE.rstStream, 0, 1, uint32(8));
    client.socket.write(Buffer.concat([PREFACE, settings(), call(1, TYPED, body), reset]));
    await waitFor(() => target.aborted.includes('dropped-at-once'));
    await waitFor(() => target.server.inFlightCount === 0);
  });

  test('beyond the limit of streams one is refused, and may be tried again', async () => {
    const client = connect();
    const last = STREAMS_MAX * 2 + 1;
    client.socket.write(
      Buffer.concat([PREFACE, settings(), times(STREAMS_MAX + 1, (i) => open(i * 2 + 1))]),
    );
    await waitFor(() => client.resetCode(last) !== undefined);
    expect(client.resetCode(last)).toBe(REFUSED_STREAM);
    client.socket.write(Buffer.concat([frame(TYPE.rstStream, 0, 1, uint32(8)), call(last + 2)]));
    await waitFor(() => client.isAnswered(last + 2));
  });

  test('cut anywhere they are the same', async () => {
    const sent = Buffer.concat([call(1), frame(TYPE.ping, 0, 0, Buffer.from('pingpong')), call(3)]);
    const length = PREFACE.length + settings().length + sent.length;
    const one = async (splitAt: number): Promise<void> => {
      const client = connect();
      const all = Buffer.concat([PREFACE, settings(), sent]);
      client.socket.write(all.subarray(0, splitAt));
      await new Promise((resolve) => setTimeout(resolve, 2));
      client.socket.write(all.subarray(splitAt));
      await waitFor(() => client.isAnswered(1) && client.isAnswered(3));
      expect(client.of(TYPE.ping).map(({ payload }) => payload.toString())).toEqual(['pingpong']);
      client.socket.destroy();
    };
    // The listener itself waits for the first bytes of a connection.
    for (let at = 20; at < length; at += 16) {
      await Promise.all(Array.from({ length: Math.min(16, length - at) }, (_, i) => one(at + i)));
    }
  });

  test('an answer waits for windows that settings made negative, and comes whole', async () => {
    const client = connect();
    const ask = Buffer.from('{"relation":"n5000"}');
    const path: Field = [':path', '/workspace.v1.AuthzService/ListObjects'];
    const fields = [...PSEUDO.slice(0, 3), path, ...TYPED.slice(4)];
    const sizeOf = (): number =>
      client.of(TYPE.data, 1).reduce((sum, { payload }) => sum + payload.length, 0);
    client.socket.write(Buffer.concat([PREFACE, settings([4, 1_000]), call(1, fields, ask)]));
    await waitFor(() => sizeOf() === 1_000);
    // 900 below nothing.
    client.socket.write(
      Buffer.concat([
        settings([4, 100]),
        frame(TYPE.windowUpdate, 0, 1, uint32(900)),
        frame(TYPE.ping, 0, 0, Buffer.alloc(8)),
      ]),
    );
    await waitFor(() => client.of(TYPE.ping).length === 1);
    expect(sizeOf()).toBe(1_000);
    client.socket.write(frame(TYPE.windowUpdate, 0, 1, uint32(7)));
    await waitFor(() => sizeOf() === 1_007);
    client.socket.write(settings([4, 2 ** 20]));
    await waitFor(() => sizeOf() === 65_535);
    client.socket.write(frame(TYPE.windowUpdate, 0, 0, uint32(2 ** 20)));
    await waitFor(() => client.isAnswered(1));
    const text = Buffer.concat(client.of(TYPE.data, 1).map(({ payload }) => payload)).toString();
    expect((JSON.parse(text) as { object_ids: string[] }).object_ids.length).toBe(5_000);
    expect(Math.max(...client.frames.map(({ payload }) => payload.length))).toBeLessThanOrEqual(
      16_384,
    );
  });
});

describe('floods', () => {
  const flood = async (sent: Buffer): Promise<RawHttp2> => {
    const client = connect();
    client.socket.write(Buffer.concat([PREFACE, settings(), sent]));
    await waitFor(() => client.isClosed);
    return client;
  };

  test('streams opened and dropped', async () => {
    const client = await flood(times(1_100, (i) => dropped(i * 2 + 1)));
    expect(client.goawayCode).toBe(CALM);
  });

  test('streams that we reset', async () => {
    const wrong = (i: number): Buffer => headers(i * 2 + 1, without(':path'));
    expect((await flood(times(1_100, wrong))).goawayCode).toBe(CALM);
  });

  test('resets that windows provoke', async () => {
    const provoked = (i: number): Buffer =>
      Buffer.concat([open(i * 2 + 1), frame(TYPE.windowUpdate, 0, i * 2 + 1, uint32(0))]);
    expect((await flood(times(1_100, provoked))).goawayCode).toBe(CALM);
  });

  test('streams beyond the limit', async () => {
    expect((await flood(times(STREAMS_MAX + 102, (i) => open(i * 2 + 1)))).goawayCode).toBe(CALM);
  });

  test('continuations', async () => {
    const pieces = times(9, () => frame(TYPE.continuation, 0, 1));
    expect((await flood(Buffer.concat([headers(1, TYPED, 0), pieces]))).goawayCode).toBe(CALM);
  });

  test('long continuations', async () => {
    const pieces = times(5, () => frame(TYPE.continuation, 0, 1, Buffer.alloc(16_384)));
    expect((await flood(Buffer.concat([headers(1, TYPED, 0), pieces]))).goawayCode).toBe(CALM);
  });

  test.each([
    ['pings', frame(TYPE.ping, 0, 0, Buffer.alloc(8))],
    ['settings', settings([3, 1])],
  ])('%s whose answers nobody reads', async (_name, one) => {
    const client = connect();
    client.socket.pause();
    const many = times(2_000, () => one);
    client.socket.write(Buffer.concat([PREFACE, settings()]));
    const writing = setInterval(() => client.socket.write(many), 1);
    onTestFinished(() => clearInterval(writing));
    await waitFor(
      () => target.incidents.includes('http2_session') && client.socket.bytesWritten > 0,
    );
    client.socket.resume();
    await waitFor(() => client.isClosed);
  });

  test('answers that nobody reads wait with their streams', async () => {
    const client = connect();
    client.socket.pause();
    const ask = Buffer.from('{"relation":"n300000"}');
    const path: Field = [':path', '/workspace.v1.AuthzService/ListObjects'];
    const fields = [...PSEUDO.slice(0, 3), path, ...TYPED.slice(4)];
    const opened = frame(TYPE.windowUpdate, 0, 0, uint32(2 ** 30));
    const calls = times(STREAMS_MAX, (i) => call(i * 2 + 1, fields, ask));
    client.socket.write(Buffer.concat([PREFACE, settings([4, 2 ** 30]), opened, calls]));
    const before = target.server.inFlightCount;
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(before).toBeLessThanOrEqual(STREAMS_MAX);
    expect(target.server.inFlightCount).toBeGreaterThanOrEqual(STREAMS_MAX - 2);
    client.socket.resume();
    await waitFor(() => [1, 3, 5, 7, 9, 11, 13, 15].every((id) => client.isAnswered(id)));
    await waitFor(() => target.server.inFlightCount === 0);
  });
});

describe('time', () => {
  test('a connection without streams is closed, one with a stream is not', async () => {
    const idle = await startServer({ limits: { http2IdleMs: 100 } });
    onTestFinished(() => idle.server.stop(0));
    const quiet = connect(idle.port);
    quiet.socket.write(Buffer.concat([PREFACE, settings()]));
    const busy = connect(idle.port);
    busy.socket.write(
      Buffer.concat([PREFACE, settings(), call(1, TYPED, Buffer.from('{"object_id":"wait:600"}'))]),
    );
    await waitFor(() => quiet.isClosed);
    expect(quiet.goawayCode).toBe(0);
    await waitFor(() => busy.isAnswered(1));
    await waitFor(() => busy.isClosed);
  });
});

describe('resets of the application', () => {
  test.each([
    ['INTERNAL_ERROR', 2, ['http2_stream']],
    ['NO_ERROR', 0, []],
    ['CANCEL', 8, []],
  ] as const)('%s', async (_name, code, told) => {
    const incidents: string[] = [];
    const server = createHttpServer({
      host: '127.0.0.1',
      port: 0,
      http2: { onStream: (stream) => stream.close(code) },
      onIncident: (event) => {
        if (!isOfPlatform(event)) incidents.push(event);
      },
    });
    onTestFinished(() => server.stop(0));
    const { port } = await server.listen();
    const client = connect(port);
    client.socket.write(Buffer.concat([PREFACE, settings(), call(1)]));
    await waitFor(() => client.resetCode(1) !== undefined);
    expect(client.resetCode(1)).toBe(code);
    expect(incidents).toEqual(told);
  });
});

describe('a connection that its client resets', () => {
  test.each([
    ['with a call', true, ['http2_session']],
    ['asked to go, without a call', false, []],
  ] as const)('%s', async (_name, isBusy, told) => {
    const draining = await startServer();
    const { server, incidents } = draining;
    onTestFinished(() => server.stop(0));
    const client = connect(draining.port);
    const wait = call(1, TYPED, Buffer.from('{"object_id":"wait:5000","relation":"long"}'));
    const acknowledged = frame(TYPE.settings, 1, 0);
    const opening = Buffer.concat([PREFACE, settings(), acknowledged]);
    client.socket.write(isBusy ? Buffer.concat([opening, wait]) : opening);
    if (isBusy) await waitFor(() => draining.begun.includes('long'));
    server.beginDrain();
    await waitFor(() => client.goawayCode === 0);
    client.socket.resetAndDestroy();
    if (isBusy) await waitFor(() => draining.aborted.includes('long'));
    // Then it has seen that the connection has ended.
    await server.stop(1_000);
    expect(incidents).toEqual(told);
  });
});
