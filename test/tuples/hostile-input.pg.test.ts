import { Code, type ConnectError } from '@connectrpc/connect';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import * as grpc from '@grpc/grpc-js';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../support/any-text.ts';
import { instanceForFile } from '../support/instance.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { exported, getLines, linesOf, plainTuples, postLines, tuplesOver } from './support.ts';

/* Whatever is sent to the methods and routes of tuples: an error that names what is wrong, and never one of ours. */

const { instance } = await instanceForFile();

const nasty = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 30 }),
  fc.constantFrom(
    '',
    '\u0000',
    '\ud800',
    'a'.repeat(300),
    'a#b',
    '__proto__',
    '*',
    "'; drop table x",
    '\\N',
    'Ü',
  ),
);
const anyJson = fc.oneof(
  { weight: 3, arbitrary: nasty },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  fc.constantFrom(null, true, 0, -1, 1e308, [], {}, [[]], 'OP_INSERT', 2 ** 53),
);
const FIELDS = [
  'project_id',
  'tenant_id',
  'updates',
  'preconditions',
  'idempotency_key',
  'op',
  'tuple',
  'namespace',
  'object_id',
  'relation',
  'subject',
  'user_id',
  'set',
  'wildcard',
  'wildcard_of',
  'expires_at',
  'condition_name',
  'condition_params',
  'must_exist',
  'must_not_exist',
  'unchanged_since',
  'filter',
  'dry_run',
  'count_max',
  'all_tenants',
  'at_least_consistency_token',
  'cursor',
  'unknown',
  'tupleX',
];
const fields = fc.constantFrom(...FIELDS);
/** Objects with the fields of our messages, in places where they belong and where they do not. */
const message = fc.letrec<{ node: unknown; object: unknown }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    anyJson,
    tie('object'),
    fc.array(tie('object'), { maxLength: 3 }),
  ),
  object: fc.dictionary(fields, tie('node'), { maxKeys: 5 }),
})).object;

async function post(
  method: string,
  body: string | Uint8Array,
  type = 'application/json',
): Promise<Response> {
  return await fetch(`${instance.baseUrl}/gatehouse.v1.TupleService/${method}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${instance.token}`, 'content-type': type },
    body,
  });
}

function enveloped(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

test.each(['WriteTuples', 'DeleteTuples'])('%s over Connect', async (method) => {
  await fc.assert(
    fc.asyncProperty(message, async (body) => {
      const { status } = await post(method, JSON.stringify(body));
      expect(status).not.toBe(500);
    }),
    { numRuns: byLength(60, 300) },
  );
});

test.each(['StreamTuples', 'ImportTuples'])('%s over Connect', async (method) => {
  await fc.assert(
    fc.asyncProperty(message, fc.boolean(), async (body, isWrapped) => {
      const text = JSON.stringify(
        isWrapped && method === 'ImportTuples' ? { options: {}, tuples: [body] } : body,
      );
      const response = await post(method, enveloped(text), 'application/connect+json');
      expect(response.status).toBe(200);
      expect(await response.text()).not.toContain('"code":"internal"');
    }),
    { numRuns: byLength(60, 300) },
  );
});

test.each(['WriteTuples', 'DeleteTuples', 'StreamTuples', 'ImportTuples'])(
  '%s over gRPC, of any bytes',
  async (method) => {
    const client = new grpc.Client(
      instance.baseUrl.replace('http://', ''),
      grpc.credentials.createInsecure(),
    );
    const metadata = new grpc.Metadata();
    metadata.set('authorization', `Bearer ${instance.token}`);
    const path = `/gatehouse.v1.TupleService/${method}`;
    const same = (bytes: Buffer): Buffer => bytes;
    const callOnce = (bytes: Buffer): Promise<number> =>
      new Promise((resolve) => {
        if (method === 'StreamTuples') {
          const stream = client.makeServerStreamRequest(path, same, same, bytes, metadata);
          stream.on('data', () => undefined);
          stream.on('error', (error: grpc.ServiceError) => resolve(error.code));
          stream.on('end', () => resolve(0));
          return;
        }
        const done = (error: grpc.ServiceError | null): void => resolve(error?.code ?? 0);
        if (method !== 'ImportTuples') {
          client.makeUnaryRequest(path, same, same, bytes, metadata, done);
          return;
        }
        const stream = client.makeClientStreamRequest(path, same, same, metadata, done);
        stream.write(bytes);
        stream.end();
      });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 60 }),
          // Tags of fields that exist, with bytes behind them.
          fc
            .array(
              fc.tuple(
                fc.constantFrom(0x0a, 0x12, 0x1a, 0x22, 0x2a, 0x18, 0x30),
                fc.uint8Array({ maxLength: 20 }),
              ),
              { maxLength: 6 },
            )
            .map((parts) =>
              Buffer.concat(
                parts.map(([tag, bytes]) => Buffer.from([tag, bytes.length, ...bytes])),
              ),
            ),
        ),
        async (bytes) => {
          const code = await callOnce(Buffer.from(bytes));
          expect([0, 3, 5, 8, 9]).toContain(code);
        },
      ),
      { numRuns: byLength(60, 300) },
    );
    client.close();
  },
);

describe('lines', () => {
  test('of any kind', async () => {
    const line = fc.oneof(
      message.map((value) => JSON.stringify(value)),
      message.map((value) => JSON.stringify({ tuple: value })),
      nasty,
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.constantFrom(
        '{"end":true}',
        '{"begin":true,"cursor":""}',
        '{"end":true,"count":0,"sha256":""}',
        '{"cursor":"x"}',
        '[',
        '{"tuple":',
        '\ufeff',
        '{"tuple":{},"tuple":{}}',
        '[['.repeat(20_000),
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 8 }), fc.boolean(), async (some, isDry) => {
        const { status } = await postLines(
          instance,
          `?tenant_id=fuzz&dry_run=${isDry}`,
          some.join('\n'),
        );
        expect([200, 400]).toContain(status);
      }),
      { numRuns: byLength(60, 300) },
    );
  });

  test('addresses of any kind', async () => {
    const names = fc.constantFrom(
      'project_id',
      'tenant_id',
      'all_tenants',
      'namespace',
      'object_id',
      'relation',
      'subject_user_id',
      'subject_namespace',
      'subject_object_id',
      'subject_relation',
      'subject_wildcard',
      'subject_wildcard_of',
      'cursor',
      'at_least_consistency_token',
      'dry_run',
      'import_id',
      'else',
    );
    const value = fc.oneof(nasty, fc.constantFrom('true', 'false', 'doc', 'default', 'a'));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(names, value), { maxLength: 5 }), async (pairs) => {
        const query = new URLSearchParams(
          pairs.map(([name, text]): [string, string] => [name, text.toWellFormed()]),
        );
        expect([200, 400, 404]).toContain(
          (await getLines(instance, `?${query.toString()}`)).status,
        );
        expect([200, 400, 404]).toContain(
          (await postLines(instance, `?${query.toString()}&dry_run=true`, '')).status,
        );
      }),
      { numRuns: byLength(40, 200) },
    );
  });

  inShort(test)('are refused by their number, and nothing of them is written', async () => {
    const query = '?tenant_id=line';
    const good = linesOf(plainTuples(20_000));
    const bad = await postLines(instance, query, `${good}\n\n{"namespace":"doc"}\n`);
    expect(bad.status).toBe(400);
    expect(bad.body['message']).toBe('tuples[20000].object_id: is required');
    const few = linesOf(plainTuples(200));
    const broken = await postLines(instance, query, `${few}{"namespace":7}\n`);
    expect(broken.body['message']).toMatch(/^line 201: /);
    const cut = await postLines(instance, query, `${few}{"error":{}}\n`);
    expect(cut.status).toBe(400);
    const latin = await postLines(instance, query, Buffer.from('{"namespace":"\xff"}\n', 'latin1'));
    expect(latin.body['message']).toContain('UTF-8');
    const long = await postLines(instance, query, `{"namespace":"${'a'.repeat(9_000_000)}`);
    expect(long.status).toBe(429);
    expect(await exported(instance, query)).toEqual([]);
  });

  inShort(test)('need the credential, no browser, the right type and verb', async () => {
    const get = (init: RequestInit): Promise<Response> =>
      fetch(`${instance.baseUrl}/v1/tuples`, init);
    expect((await get({})).status).toBe(401);
    const authorization = `Bearer ${instance.token}`;
    expect((await get({ headers: { authorization, origin: 'https://evil.example' } })).status).toBe(
      403,
    );
    expect((await get({ headers: { authorization }, method: 'POST' })).status).toBe(405);
    const wrong = await postLines(instance, '', '', { 'content-type': 'text/plain' });
    expect(wrong.status).toBe(415);
    const zipped = await postLines(instance, '', '', { 'content-encoding': 'gzip' });
    expect(zipped.status).toBe(415);
    const foreign = await postLines({ ...instance, token: 'no' }, '', '');
    expect(foreign.status).toBe(401);
  });
});

inShort(test)('options belong to the first message alone', async () => {
  const client = tuplesOver(instance);
  const send = async (messages: object[]): Promise<string> =>
    await client.importTuples(createAsyncIterable([...messages]) as never).then(
      () => '',
      (error: unknown) => (error as ConnectError).rawMessage,
    );
  expect(await send([])).toBe('options: is required');
  expect(await send([{}])).toBe('options: is required');
  expect(await send([{ options: {} }, { options: {} }])).toContain('first message');
  expect(await send([{ options: { importId: 'x'.repeat(65) } }])).toContain('at most 64');
  expect(await send([{ options: {} }])).toBe('');
});

inShort(test)('a cursor is refused where anything of it is another', async () => {
  const query = '?tenant_id=cursors';
  await postLines(instance, query, linesOf(plainTuples(3)));
  const { lines } = await getLines(instance, query);
  const cursor = String(lines.at(-1)?.['cursor']);
  const stream = async (request: object): Promise<Code | undefined> => {
    try {
      for await (const _part of tuplesOver(instance).streamTuples(request)) continue;
      return undefined;
    } catch (error) {
      return (error as ConnectError).code;
    }
  };
  expect(await stream({ tenantId: 'cursors', cursor })).toBe(undefined);
  for (let i = 0; i < cursor.length; i += 7) {
    const other = `${cursor.slice(0, i)}${cursor[i] === 'A' ? 'B' : 'A'}${cursor.slice(i + 1)}`;
    expect(await stream({ tenantId: 'cursors', cursor: other })).toBe(Code.InvalidArgument);
  }
  expect(await stream({ allTenants: true, cursor })).toBe(Code.InvalidArgument);
  expect(await stream({ tenantId: 'cursors', cursor, filter: { namespace: 'doc' } })).toBe(
    Code.InvalidArgument,
  );
});
