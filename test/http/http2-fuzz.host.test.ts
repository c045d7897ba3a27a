import http2 from 'node:http2';
import fc from 'fast-check';
import { expect, test } from 'vitest';
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
import { byLength } from '../support/test-length.ts';
import { startServer, waitFor } from './start-server.ts';

/* Whatever frames come: the service serves others on, and nothing stays behind. */

const FIELDS = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'localhost'],
  [':path', '/workspace.v1.AuthzService/Check'],
  ['content-type', 'application/json'],
] as const;
const BODIES = ['{}', '{"object_id":"wait:5"}', '{"object_id":"wait:20000"}', '{', ''];
const id = fc.integer({ min: 0, max: 8 }).map((n) => n * 2 + 1);
const call = fc
  .tuple(id, fc.constantFrom(...BODIES), fc.constantFrom(0, END_STREAM))
  .map(([stream, body, end]) =>
    Buffer.concat([
      frame(TYPE.headers, END_HEADERS, stream, block(FIELDS)),
      frame(TYPE.data, end, stream, Buffer.from(body)),
    ]),
  );
const number = fc.oneof(fc.constantFrom(0, 1, 8, 65_535, 2 ** 31 - 1), fc.nat(2 ** 32 - 1));
const numbered = fc
  .tuple(fc.constantFrom(TYPE.rstStream, TYPE.windowUpdate), fc.oneof(id, fc.constant(0)), number)
  .map(([type, stream, value]) => frame(type, 0, stream, uint32(value)));
const set = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 7 }), number), { maxLength: 4 })
  .map((pairs) => settings(...pairs));
const any = fc
  .tuple(fc.nat(10), fc.nat(255), fc.nat(9), fc.uint8Array({ maxLength: 40 }))
  .map(([type, flags, stream, payload]) => frame(type, flags, stream, payload));
const piece = fc
  .tuple(fc.constantFrom(TYPE.headers, TYPE.continuation), fc.constantFrom(0, END_HEADERS), id)
  .map(([type, flags, stream]) => frame(type, flags, stream, block(FIELDS.slice(0, 2))));
const rubbish = fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes));
const sent = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: call },
    { weight: 3, arbitrary: numbered },
    { weight: 2, arbitrary: set },
    { weight: 2, arbitrary: any },
    { weight: 1, arbitrary: piece },
    { weight: 1, arbitrary: rubbish },
  ),
  { minLength: 1, maxLength: 30 },
);

test('random frames, valid and not, in pieces', async () => {
  const target = await startServer({ limits: { http2StreamsMax: 8 } });
  const pieces = fc.tuple(sent, fc.integer({ min: 1, max: 500 }), fc.boolean());
  const property = fc.asyncProperty(pieces, async ([frames, size, isRead]) => {
    const client = new RawHttp2(target.port);
    if (!isRead) client.socket.pause();
    const bytes = Buffer.concat([PREFACE, settings(), ...frames]);
    for (let at = 0; at < bytes.length; at += size) {
      client.socket.write(bytes.subarray(at, at + size));
      if (at % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
    client.socket.destroy();
    await waitFor(() => target.server.inFlightCount === 0 && target.server.connectionCount === 0);
  });
  const report = await fc.check(property, { numRuns: byLength(60, 400) });
  expect(report.failed, `seed ${report.seed}: ${String(report.errorInstance)}`).toBe(false);
  const session = http2.connect(target.baseUrl);
  const stream = session.request(Object.fromEntries(FIELDS));
  stream.end('{"subject_user_id":"alice"}');
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  expect(text).toBe('{"allowed":true}');
  session.close();
  await target.server.stop(1_000);
  expect(target.failures).toEqual([]);
}, 120_000);
