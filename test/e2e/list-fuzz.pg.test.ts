import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  FilterObjectsRequestSchema,
  FilterObjectsResponseSchema,
  ListObjectsRequestSchema,
  ListObjectsResponseSchema,
  ListRelationsRequestSchema,
  ListRelationsResponseSchema,
  ListSubjectsRequestSchema,
  ListSubjectsResponseSchema,
  StreamObjectsRequestSchema,
  StreamObjectsResponseSchema,
  UsersetMode,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { awkwardValues, jsonPatches, patched } from '../support/json-patches.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';

/* Whatever a request for a list holds, no method answers 500, and nobody whom no tuple names is in a list. */
const { instance } = await instanceForFile();
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

const METHODS = ['ListSubjects', 'ListRelations', 'FilterObjects', 'ListObjects'] as const;
type Method = (typeof METHODS)[number];
const stored = ['plan', 'note', 'page'].map((object_id) => ({
  namespace: 'doc',
  object_id,
  relation: 'viewer',
  subject: { user_id: 'ann' },
}));
const updates = stored.map((tuple) => ({ op: 'OP_INSERT', tuple }));
expect((await call(instance, 'AuthzService/WriteRelationTuples', { updates })).status).toBe(200);
const pages = { namespace: 'doc', relation: 'viewer', subject: { user_id: 'ann' }, page_size: 1 };
const firstPage = await query(instance, 'ListObjects', pages);
const page_token = firstPage.body['next_page_token'];
expect(page_token).not.toBe('');

/** Values of every JSON type, of awkward texts and sizes; none of them names mallory or everybody. */
const awkward = awkwardValues([
  'doc',
  'seat',
  'group',
  'plan',
  'viewer',
  'member',
  'default',
  page_token,
]);
const FIELDS =
  'project_id tenant_id namespace object_id relation user_id set scope object_ids relations page_size page_token ' +
  'page_token userset_mode context unknown contextual_tuples condition_name constructor at_least_consistency_token';
const patches = jsonPatches(FIELDS.split(' '), awkward);

function bodyOf(method: Method): Record<string, unknown> {
  const guest = { ...stored[0], subject: { user_id: 'guest' } };
  const group = { set: { namespace: 'group', object_id: 'g', relation: 'member' } };
  const conditional = { ...stored[1], subject: group, condition_name: 'age_at_least' };
  const scope = {
    contextual_tuples: [guest, conditional],
    context: { age: 20 },
    userset_mode: 'USERSET_MODE_EXACT',
  };
  const object = { namespace: 'doc', object_id: 'plan', scope };
  const subject = { user_id: 'mallory' };
  if (method === 'ListSubjects') return { ...object, relation: 'viewer', page_size: 2 };
  if (method === 'ListRelations') return { ...object, subject, relations: ['viewer', 'editor'] };
  const objects = { namespace: 'doc', relation: 'viewer', subject, scope };
  if (method === 'FilterObjects') return { ...objects, object_ids: ['plan', 'none', 'note'] };
  return { ...objects, page_size: 2 };
}

/** What mallory, whom nothing names, got of an answer. */
function leaks(method: Method, body: Record<string, unknown>): boolean {
  if (method === 'ListSubjects') {
    return body['wildcard'] === true || JSON.stringify(body).includes('mallory');
  }
  const held = (body['relations'] ?? body['object_ids'] ?? []) as unknown[];
  return held.length > 0;
}

describe(`JSON (SEED=${seed})`, () => {
  test.each(METHODS)('%s', async (method) => {
    let answered = 0;
    const property = fc.asyncProperty(patches, async (list) => {
      const body = patched(bodyOf(method), list);
      const text = JSON.stringify(body);
      const answer = await query(instance, method, text);
      const shown = `${text} → ${answer.status} ${JSON.stringify(answer.body)}`;
      if (answer.status >= 500 && answer.status !== 503) throw new Error(shown);
      if (answer.status !== 200) return;
      answered++;
      // Somebody else, or a set, may have been asked about instead.
      const isMallory = JSON.stringify(body['subject'] ?? 'mallory').includes('mallory');
      if (isMallory && leaks(method, answer.body) && !text.includes('wildcard')) {
        throw new Error(shown);
      }
    });
    await fc.assert(property, params(byLength(30, 250)));
    expect(answered).toBeGreaterThan(0);
  });

  test('hostile sizes and depths', async () => {
    const long = 'x'.repeat(1_000_000);
    const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const ids = Array.from({ length: 200_000 }, () => '"i"').join();
    const names = Array.from({ length: 257 }, () => '"r"').join();
    const asked = JSON.stringify(bodyOf('FilterObjects')).slice(1, -1);
    const bodies = [
      '',
      'null',
      '[['.repeat(20_000),
      `{"scope":{"context":${deep}}}`,
      `{"namespace":"doc","relation":"viewer","subject":{"user_id":"mallory"},"object_ids":[${ids}]}`,
      `{"namespace":"doc","object_id":"d","subject":{"user_id":"mallory"},"relations":[${names}]}`,
      `{"namespace":"doc","object_id":"d","relation":"viewer","page_token":"${long}"}`,
      `{"namespace":"doc","relation":"viewer","subject":{"user_id":"m"},"page_token":"${long}"}`,
      `{"namespace":"doc","object_id":"${long}","relation":"viewer"}`,
      `{"namespace":"doc","relation":"viewer","subject":{"user_id":"${long}"}}`,
      `{${asked},"page_size":2147483647}`,
      `{${asked},"page_size":-2147483648}`,
    ];
    for (const method of METHODS) {
      for (const body of bodies) {
        const { status, body: answer } = await query(instance, method, body);
        expect(status, body.slice(0, 80)).toBeLessThan(500);
        expect(status, body.slice(0, 80)).not.toBe(200);
        expect(JSON.stringify(answer).length).toBeLessThan(10_000);
      }
    }
  });

  test('page tokens of any bytes give an error or a page of the same list', async () => {
    const bytes = Buffer.from(String(page_token), 'base64url');
    const property = fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(bytes.length + 4), fc.nat(255)), { maxLength: 3 }),
      fc.nat(bytes.length),
      async (changes, length) => {
        const other = Buffer.concat([bytes, Buffer.alloc(5)]).subarray(0, length + 5);
        for (const [at, value] of changes) other[at % other.length] = value;
        const forged = { ...pages, page_token: other.toString('base64url') };
        const { status, body } = await query(instance, 'ListObjects', forged);
        expect([200, 400]).toContain(status);
        if (status !== 200) return;
        const ids = body['object_ids'] as string[];
        for (const id of ids) expect(['note', 'page', 'plan']).toContain(id);
      },
    );
    await fc.assert(property, params(byLength(25, 150)));
  });
});

describe(`protobuf over Connect and gRPC (SEED=${seed})`, () => {
  const client = new grpc.Client(
    instance.baseUrl.replace('http://', ''),
    grpc.credentials.createInsecure(),
  );
  afterAll(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${instance.token}`);
  const subject = { kind: { case: 'userId' as const, value: '0123456789' } };
  const tuple = { namespace: 'doc', objectId: 'plan', relation: 'viewer', subject };
  const scope = {
    contextualTuples: [tuple],
    context: { age: 20 },
    usersetMode: UsersetMode.EXACT,
  };
  const objects = { namespace: 'doc', relation: 'viewer', subject, scope };
  const object = { namespace: 'doc', objectId: 'plan', scope };
  const valid = {
    ListSubjects: toBinary(
      ListSubjectsRequestSchema,
      create(ListSubjectsRequestSchema, { ...object, relation: 'viewer', pageSize: 3 }),
    ),
    ListRelations: toBinary(
      ListRelationsRequestSchema,
      create(ListRelationsRequestSchema, { ...object, subject, relations: ['viewer'] }),
    ),
    FilterObjects: toBinary(
      FilterObjectsRequestSchema,
      create(FilterObjectsRequestSchema, { ...objects, objectIds: ['plan', 'other'] }),
    ),
    ListObjects: toBinary(
      ListObjectsRequestSchema,
      create(ListObjectsRequestSchema, { ...objects, pageSize: 2 }),
    ),
    StreamObjects: toBinary(
      StreamObjectsRequestSchema,
      create(StreamObjectsRequestSchema, objects),
    ),
  };
  const responses = {
    ListSubjects: ListSubjectsResponseSchema,
    ListRelations: ListRelationsResponseSchema,
    FilterObjects: FilterObjectsResponseSchema,
    ListObjects: ListObjectsResponseSchema,
  };

  type Damage =
    | { readonly kind: 'flip'; readonly at: number; readonly bit: number }
    | { readonly kind: 'cut'; readonly at: number; readonly count: number }
    | { readonly kind: 'put'; readonly at: number; readonly bytes: Uint8Array };
  const damage: fc.Arbitrary<Damage[]> = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), bit: fc.nat(7) }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), count: fc.nat(8) }),
      fc.record({
        kind: fc.constant('put' as const),
        at: fc.nat(),
        bytes: fc.uint8Array({ maxLength: 6 }),
      }),
    ),
    { minLength: 1, maxLength: 4 },
  );
  function damaged(whole: Uint8Array, list: readonly Damage[]): Buffer {
    let bytes = Buffer.from(whole);
    for (const one of list) {
      const at = one.at % (bytes.length + 1);
      if (one.kind === 'flip') {
        if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << one.bit);
      } else if (one.kind === 'cut') {
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + one.count)]);
      } else bytes = Buffer.concat([bytes.subarray(0, at), one.bytes, bytes.subarray(at)]);
    }
    return bytes;
  }
  const wrong: readonly number[] = [grpc.status.INTERNAL, grpc.status.UNKNOWN];
  const OK: number = grpc.status.OK;

  test.each(METHODS)('%s', async (method) => {
    let answered = 0;
    const property = fc.asyncProperty(damage, async (list) => {
      const bytes = damaged(valid[method], list);
      const what = bytes.toString('hex');
      const path = `/gatehouse.v1.QueryService/${method}`;
      const posted = await fetch(`${instance.baseUrl}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/proto', authorization: `Bearer ${instance.token}` },
        body: bytes,
      });
      const body = new Uint8Array(await posted.arrayBuffer());
      if (posted.status >= 500) throw new Error(`${posted.status}: ${what}`);
      const [code, reply] = await new Promise<[number, Buffer | undefined]>((resolve) => {
        client.makeUnaryRequest(
          path,
          (value: Buffer) => value,
          (value: Buffer) => value,
          bytes,
          metadata,
          (error, value) => resolve([error?.code ?? grpc.status.OK, value]),
        );
      });
      if (wrong.includes(code)) throw new Error(`gRPC ${code}: ${what}`);
      if ((posted.status === 200) !== (code === OK)) {
        throw new Error(`${posted.status} and ${code}: ${what}`);
      }
      if (posted.status !== 200 || reply === undefined) return;
      answered++;
      // Both protocols say the same.
      const [one, other] = [body, reply].map((of) => fromBinary(responses[method] as never, of));
      expect(one).toEqual(other);
    });
    await fc.assert(property, params(byLength(60, 250)));
    expect(answered).toBeGreaterThan(0);
  });

  test('StreamObjects', async () => {
    let answered = 0;
    const property = fc.asyncProperty(damage, async (list) => {
      const bytes = damaged(valid.StreamObjects, list);
      const stream = client.makeServerStreamRequest(
        '/gatehouse.v1.QueryService/StreamObjects',
        (value: Buffer) => value,
        (value: Buffer) => fromBinary(StreamObjectsResponseSchema, value),
        bytes,
        metadata,
      );
      const code = await new Promise<number>((resolve) => {
        stream.on('data', () => undefined);
        stream.on('error', () => undefined);
        stream.on('status', (status: grpc.StatusObject) => resolve(status.code));
      });
      if (wrong.includes(code)) throw new Error(`gRPC ${code}: ${bytes.toString('hex')}`);
      if (code === OK) answered++;
    });
    await fc.assert(property, params(byLength(30, 200)));
    expect(answered).toBeGreaterThan(0);
  });
});
