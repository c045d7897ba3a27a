/* Requests that no scanner takes, as a worker decodes them: the answers of plain ones, the errors of the contract, and never another scope. */
import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import { expect, test, vi } from 'vitest';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import type { RawAnswer, RawMethod } from '../../src/protocol/shard-client.ts';
import { askRaw, type Fixture, scopeOf, startFixture, viewer } from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: '' };
const CHECK = '"namespace":"doc","object_id":"a","relation":"viewer","subject_user_id":"u"';
const ITEM = `{${CHECK}}`;

async function started(): Promise<Fixture> {
  const fixture = await startFixture({ workerCount: 1, queueBytesMax: 200_000_000 });
  fixture.source.commit(SHARD, [viewer('insert', 'a', 'u'), viewer('insert', 'ü"\\', 'u')]);
  return fixture;
}

/** What came of a request: yes or no, the text of an answer, or the reason and the text of an error. */
function outcomeOf(answer: RawAnswer): string {
  if (answer.kind === 'error') return `${answer.error.reason}: ${answer.error.message}`;
  return answer.kind === 'body' ? Buffer.from(answer.body).toString() : answer.kind;
}

async function asked(
  { pool }: Fixture,
  method: RawMethod,
  body: string | Uint8Array,
): Promise<string> {
  // The bytes of an answer are the pool's once it was given.
  return await new Promise((resolve) => {
    const format = typeof body === 'string' ? 'json' : 'proto';
    const expected = { projectId: '', tenantId: '', token: '' };
    pool.raw(method, format, Buffer.from(body), scopeOf(SHARD, 0), expected, (answer) =>
      resolve(outcomeOf(answer)),
    );
  });
}

test.each([
  ['an escaped key', 'check', `{${CHECK.replace('object_id', 'object\\u005fid')}}`, 'allowed'],
  ['an escaped value', 'check', `{${CHECK.replace('"a"', '"\\u0061"')}}`, 'allowed'],
  ['an id that needs escapes', 'check', `{${CHECK.replace('"a"', '"ü\\"\\\\"')}}`, 'allowed'],
  ['a null', 'check', `{${CHECK},"context":null,"project_id":null}`, 'allowed'],
  ['a mark of the byte order', 'check', `\uFEFF{${CHECK}}`, 'allowed'],
  ['a context with escapes', 'check', `{${CHECK},"context":{"\\u0061":[{"b":null}]}}`, 'allowed'],
  ['a long context', 'check', `{${CHECK},"context":{"a":"${'x'.repeat(100_000)}"}}`, 'allowed'],
  [
    'an object as the subject',
    'check',
    `{${CHECK.replace('"subject_user_id":"u"', '"subject_set":{"namespace":"doc","object_id":"a"}')}}`,
    'denied',
  ],
  [
    'a userset that is the same',
    'check',
    `{${CHECK.replace('"subject_user_id":"u"', '"subjectSet":{"namespace":"doc","objectId":"a","relation":"viewer"}')}}`,
    'allowed',
  ],
  ['no items', 'batchCheck', '{"items":[]}', '{"results":[]}'],
  [
    'items of which some are wrong',
    'batchCheck',
    `{"items":[{"namespace":"Doc"},${ITEM},{},{${CHECK.replace('"a"', '"b"')}},{${CHECK.replace('"u"', '""')}}]}`,
    '{"results":[' +
      '{"allowed":false,"error":"namespace: must match [a-z][a-z0-9_-]{0,63}"},{"allowed":true,"error":""},' +
      '{"allowed":false,"error":"namespace: is required"},{"allowed":false,"error":""},' +
      '{"allowed":false,"error":"subject_user_id: is required, or a subject_set"}]}',
  ],
  [
    'a list with escapes',
    'listObjects',
    '{"namespace":"d\\u006fc","relation":"viewer","subjectUserId":"u"}',
    '{"object_ids":["a","ü\\"\\\\"]}',
  ],
] as const)('%s is answered as it says', async (_what, method, body, wanted) => {
  await using fixture = await started();
  expect(await asked(fixture, method, body)).toBe(wanted);
});

test.each([
  ['no JSON', 'check', '{', 'BODY_MALFORMED'],
  ['a field that there is not', 'check', `{${CHECK},"nobody":1}`, 'BODY_MALFORMED: '],
  ['a key that comes twice', 'check', `{${CHECK},"objectId":"b"}`, 'BODY_MALFORMED'],
  ['a value of another type', 'check', `{${CHECK},"context":7}`, 'BODY_MALFORMED'],
  ['a bad name', 'check', `{${CHECK.replace('"doc"', '"Doc"')}}`, 'FIELD_INVALID: namespace: '],
  ['nobody', 'check', `{${CHECK.replace('"u"', '""')}}`, 'FIELD_REQUIRED: subject_user_id: '],
  ['both subjects', 'check', `{${CHECK},"subject_set":{}}`, 'FIELD_INVALID: subject_set: '],
  [
    'too many items',
    'batchCheck',
    `{"items":[${'{},'.repeat(10_000)}{}]}`,
    'BATCH_TOO_LARGE: items',
  ],
  ['a list of nobody', 'listObjects', '{"namespace":"doc"}', 'FIELD_REQUIRED: relation: '],
  ['no protobuf', 'check', Uint8Array.of(0x0a, 9, 0x64), 'BODY_MALFORMED: the message'],
  [
    'an unknown number',
    'check',
    Uint8Array.of(0x78, 1),
    'BODY_MALFORMED: workspace.v1.CheckRequest: ',
  ],
] as const)('%s is refused, and loads nothing', async (_what, method, body, wanted) => {
  await using fixture = await started();
  expect(await asked(fixture, method, body)).toMatch(new RegExp(`^${wanted}`));
  expect(fixture.source.loads).toBe(0);
});

test.each([
  ['short', `{${CHECK},"context":7}`],
  ['long', `{${CHECK},"context":{"a":"${'x'.repeat(20_000)}"},"nobody":1}`],
])('a shard that only refused requests ask for is forgotten: %s', async (_what, body) => {
  await using fixture = await startFixture({ workerCount: 1 });
  const { pool, source, transports } = fixture;
  const shards = Array.from({ length: 20 }, (_, i) => ({ projectId: 'p', tenantId: `t${i}` }));
  const requests = shards.map((shard) => askRaw(pool, scopeOf(shard, 0), 'check', body));
  for (const answer of await Promise.all(requests))
    expect(outcomeOf(answer)).toMatch(/^BODY_MALFORMED/);
  const held = scopeOf({ projectId: 'p', tenantId: 'held' }, 0, { isHeldOnly: true });
  expect(outcomeOf(await askRaw(pool, held, 'check', `{${CHECK}}`))).toMatch(/^SHARD_BEHIND/);
  shards.push({ projectId: 'p', tenantId: 'held' });
  const host = transports[0]?.host;
  const known = (): unknown[] => shards.filter((shard) => host?.actor(shard) !== undefined);
  await vi.waitFor(() => expect(known()).toEqual([]));
  expect(source.loads).toBe(0);
});

test('a message that runs past its end is refused before its scope is looked at', async () => {
  let mismatches = 0;
  await using fixture = await startFixture({
    onStats: (stats) => (mismatches += stats.scopeMismatches),
  });
  // Its context would take the fields behind it, of which one is the project.
  const body = Uint8Array.of(0x32, 2, 0x0a, 9, 0x3a, 1, 0x70, 0x42, 1, 0x74, 0x4a, 1, 0x78);
  const expected = { projectId: 'p', tenantId: 't', token: 'x' };
  const answer = await askRaw(fixture.pool, scopeOf(SHARD, 0), 'check', body, expected);
  expect(outcomeOf(answer)).toBe(
    'BODY_MALFORMED: the message cannot be decoded: no protobuf at byte 13',
  );
  expect(mismatches).toBe(0);
});

const OTHER = ['projectId', 'tenantId', 'token'] as const;

test.each(OTHER)('another %s than was expected is an internal error, and counted', async (what) => {
  let mismatches = 0;
  await using fixture = await startFixture({
    workerCount: 1,
    onStats: (stats) => (mismatches += stats.scopeMismatches),
  });
  fixture.source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  const expected = { projectId: '', tenantId: '', token: '', [what]: 'other' };
  const plain = `{${CHECK}}`;
  const odd = `{${CHECK.replace('"a"', '"\\u0061"')}}`;
  const scope = scopeOf(SHARD, 1);
  for (const body of [plain, odd]) {
    expect(await askRaw(fixture.pool, scope, 'check', body, expected)).toEqual({
      kind: 'error',
      error: { reason: 'INTERNAL', message: 'internal error', metadata: {} },
    });
  }
  await vi.waitFor(() => expect(mismatches).toBe(2));
  expect(fixture.events.filter(({ kind }) => kind === 'workerReport')).toHaveLength(2);
  expect(outcomeOf(await askRaw(fixture.pool, scope, 'check', odd))).toBe('allowed');
});

test('Checks in both formats say the same, with a userset too', async () => {
  await using fixture = await started();
  const object = { namespace: 'doc', objectId: 'a', relation: 'viewer' };
  for (const subject of [
    { subjectUserId: 'u' },
    { subjectUserId: 'ü' },
    { subjectSet: object },
    { subjectSet: { ...object, relation: '' } },
  ]) {
    const message = create(CheckRequestSchema, { ...object, ...subject, context: { a: [{}] } });
    const binary = await asked(fixture, 'check', toBinary(CheckRequestSchema, message));
    expect(await asked(fixture, 'check', toJsonString(CheckRequestSchema, message))).toBe(binary);
  }
});

/** A batch that no scanner takes: each of its items has a null. */
const LARGE_BATCH = `{"items":[${Array.from({ length: 10_000 }, () => `{${CHECK.replace('"u"', `"${'u'.repeat(100)}"`)},"object_id":null}`.replace('"object_id":"a",', '')).join(',')}]}`;

test('large ones are decoded beside others, whose Checks are answered between two slices', async () => {
  await using fixture = await started();
  const { pool } = fixture;
  const scope = scopeOf(SHARD, 0);
  expect(outcomeOf(await askRaw(pool, scope, 'check', `{${CHECK}}`))).toBe('allowed');
  let answered = 0;
  let isOver = false;
  const large = askRaw(pool, scope, 'batchCheck', LARGE_BATCH).then((answer) => {
    isOver = true;
    return answer;
  });
  while (!isOver) {
    await askRaw(pool, scope, 'check', `{${CHECK}}`);
    if (!isOver) answered += 1;
  }
  const answer = await large;
  expect(answer.kind).toBe('body');
  expect(answered).toBeGreaterThan(5);
});

test('what is decoded at a time is bounded, and its memory is there again for the next', async () => {
  await using fixture = await startFixture({ workerCount: 1, queueBytesMax: 200_000_000 });
  const { pool, source } = fixture;
  const tenants = ['a', 'b', 'c', 'd', 'e', 'f'].map((tenantId) => ({ projectId: 'p', tenantId }));
  for (const shard of tenants) source.commit(shard, [viewer('insert', 'a', 'u')]);
  const items = Array.from({ length: 10_000 }, () => ({ namespace: 'x'.repeat(800) }));
  const batch = create(BatchCheckRequestSchema, { items });
  const body = toBinary(BatchCheckRequestSchema, batch);
  expect(Math.floor((32 * 1024 * 1024) / body.length)).toBe(4);
  const isRefused = (outcome: string): boolean => outcome.startsWith('BODY_MEMORY_EXHAUSTED: ');
  const scope = { deadlineMs: Infinity };
  // They wait for their shards once they are decoded.
  const gate = Promise.withResolvers<void>();
  source.fault = () => gate.promise;
  const some = tenants.map((shard) =>
    askRaw(pool, scopeOf(shard, 1, scope), 'batchCheck', body).then(outcomeOf),
  );
  const first = await Promise.race(some);
  expect(isRefused(first)).toBe(true);
  gate.resolve();
  expect((await Promise.all(some)).filter(isRefused)).toHaveLength(2);
  // Callers that go make way, as answered ones do.
  const never = Promise.withResolvers<void>();
  const last = tenants[5] ?? SHARD;
  source.fault = (_what, shard) =>
    shard?.tenantId === last.tenantId ? Promise.resolve() : never.promise;
  const [loads, pages] = [source.loads, source.pages];
  const expected = { projectId: '', tenantId: '', token: '' };
  const going = tenants
    .slice(0, 4)
    .map((shard) =>
      pool.raw('batchCheck', 'proto', body, scopeOf(shard, 2, scope), expected, () => undefined),
    );
  const waiting = (): number => source.loads - loads + source.pages - pages;
  await vi.waitFor(() => expect(waiting()).toBe(4), { timeout: 10_000 });
  const ask = (): Promise<string> =>
    askRaw(pool, scopeOf(last, 1, scope), 'batchCheck', body).then(outcomeOf);
  expect(isRefused(await ask())).toBe(true);
  for (const one of going) one?.cancel();
  await vi.waitFor(async () => expect(isRefused(await ask())).toBe(false), { timeout: 10_000 });
  never.resolve();
});
