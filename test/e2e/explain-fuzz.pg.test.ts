import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  CheckResponseSchema,
  ExplainRequestSchema,
  ExplainResponseSchema,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { awkwardValues, jsonPatches, patched } from '../support/json-patches.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';

/* Whatever a request of Explain holds, it is no 500, and the answer is that of Check. */
const { instance } = await instanceForFile();
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.3, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

const stored = {
  namespace: 'doc',
  object_id: 'plan',
  relation: 'viewer',
  subject: { user_id: 'ann' },
};
const ban = { ...stored, relation: 'banned', subject: { user_id: 'mallory' } };
const model_json = JSON.stringify({
  namespaces: {
    doc: {
      relations: {
        banned: {},
        viewer: { exclusion: { include: {}, exclude: { computed: 'banned' } } },
        both: { intersection: [{ computed: 'viewer' }, {}] },
      },
    },
  },
});
const settings = { id: 'default', model_json };
expect((await call(instance, 'AdminService/UpdateProject', settings)).status).toBe(200);
const updates = [stored, ban].map((tuple) => ({ op: 'OP_INSERT', tuple }));
expect((await call(instance, 'AuthzService/WriteRelationTuples', { updates })).status).toBe(200);

const awkward = awkwardValues([
  'doc',
  'seat',
  'group',
  'plan',
  'viewer',
  'both',
  'default',
  'ann',
  'mallory',
  { user_id: 'ann' },
  { wildcard: true },
  { wildcard_of: 'doc' },
  { set: { namespace: 'doc', object_id: 'plan' } },
]);
const FIELDS =
  'project_id tenant_id namespace object_id relation subject expires_at condition_name condition_params ' +
  'user_id set question context scope contextual_tuples remedies_max unknown constructor ' +
  'at_least_consistency_token';
const patches = jsonPatches(FIELDS.split(' '), awkward);

const asked = { ...stored, subject: { user_id: 'mallory' } };
const conditional = {
  ...stored,
  subject: { set: { namespace: 'group', object_id: 'g', relation: 'member' } },
  condition_name: 'age_at_least',
  condition_params: { min_age: 18 },
};
const member = { namespace: 'group', object_id: 'g', relation: 'member', subject: asked.subject };

test(`JSON (SEED=${seed})`, async () => {
  let answered = 0;
  const property = fc.asyncProperty(patches, fc.nat(2), async (list, kind) => {
    const scope = { contextual_tuples: [conditional, member], context: { age: 20 } };
    const relation = ['viewer', 'both', 'banned'][kind];
    const body: Record<string, unknown> = patched(
      { scope, question: { ...asked, relation }, remedies_max: 5 },
      list,
    );
    const text = JSON.stringify(body);
    const answer = await query(instance, 'Explain', text);
    const shown = `${text} → ${answer.status} ${JSON.stringify(answer.body)}`;
    if (answer.status >= 500) throw new Error(shown);
    if (answer.status !== 200) return;
    answered++;
    const { remedies_max: _, ...same } = body;
    const checked = await query(instance, 'Check', same);
    const { allowed, undecided } = checked.body;
    if (answer.body['allowed'] !== allowed || answer.body['undecided'] !== undecided) {
      throw new Error(`${shown}, but Check ${JSON.stringify(checked.body)}`);
    }
    const obstacles = answer.body['obstacles'] as unknown[];
    const hasReason = allowed === true ? 'derivation' in answer.body : obstacles.length > 0;
    if (!hasReason) throw new Error(`without a reason: ${shown}`);
  });
  await fc.assert(property, params(300));
  expect(answered).toBeGreaterThan(10);
});

test('hostile sizes and depths', async () => {
  const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  const question = JSON.stringify(asked);
  const wide = Array.from({ length: 40_000 }, () => JSON.stringify(stored)).join();
  const long = 'x'.repeat(1_000_000);
  const bodies = [
    '',
    '{',
    'null',
    '[]',
    '[['.repeat(20_000),
    `{"scope":{"context":${deep}},"question":${question}}`,
    `{"scope":{"context":{"${long}":"${long}"}},"question":${question}}`,
    `{"scope":{"contextual_tuples":[${wide}]},"question":${question}}`,
    `{"question":${question},"remedies_max":2147483648}`,
    `{"question":${question},"remedies_max":"${long}"}`,
    `{"question":{"namespace":"doc","object_id":"${long}","relation":"viewer"}}`,
  ];
  for (const body of bodies) {
    const { status, body: answer } = await query(instance, 'Explain', body);
    expect(status, body.slice(0, 80)).toBeLessThan(500);
    expect(answer['allowed'] ?? false, body.slice(0, 80)).toBe(false);
  }
});

describe(`protobuf over Connect and gRPC (SEED=${seed})`, () => {
  const address = instance.baseUrl.replace('http://', '');
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  afterAll(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${instance.token}`);
  const request = create(ExplainRequestSchema, {
    scope: {
      contextualTuples: [
        {
          namespace: 'doc',
          objectId: 'plan',
          relation: 'viewer',
          subject: { kind: { case: 'userId', value: 'mallory' } },
          conditionName: 'scope_in',
          conditionParams: { scopes: ['a'] },
        },
      ],
      context: { scope: 'a' },
    },
    question: {
      namespace: 'doc',
      objectId: 'plan',
      relation: 'viewer',
      subject: { kind: { case: 'userId', value: 'mallory' } },
    },
  });
  const valid = toBinary(ExplainRequestSchema, request);

  const damage = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), bit: fc.nat(7) }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), count: fc.nat(8) }),
      fc.record({
        kind: fc.constant('put' as const),
        at: fc.nat(),
        bytes: fc.uint8Array({ maxLength: 6 }),
      }),
    ),
    { maxLength: 4 },
  );

  async function post(method: string, body: Uint8Array): Promise<[number, Uint8Array]> {
    const response = await fetch(`${instance.baseUrl}/gatehouse.v1.QueryService/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/proto', authorization: `Bearer ${instance.token}` },
      body: Buffer.from(body),
    });
    return [response.status, new Uint8Array(await response.arrayBuffer())];
  }

  test('Explain', async () => {
    let answered = 0;
    const property = fc.asyncProperty(damage, async (list) => {
      let bytes = Buffer.from(valid);
      for (const one of list) {
        const at = one.at % (bytes.length + 1);
        if (one.kind === 'flip') {
          if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << one.bit);
        } else if (one.kind === 'cut') {
          bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + one.count)]);
        } else bytes = Buffer.concat([bytes.subarray(0, at), one.bytes, bytes.subarray(at)]);
      }
      const what = bytes.toString('hex');
      const [status, body] = await post('Explain', bytes);
      if (status >= 500) throw new Error(`${status}: ${what}`);
      const [code, reply] = await new Promise<[number, Buffer | undefined]>((resolve) => {
        client.makeUnaryRequest(
          '/gatehouse.v1.QueryService/Explain',
          (value: Buffer) => value,
          (value: Buffer) => value,
          bytes,
          metadata,
          (error, value) => resolve([error?.code ?? grpc.status.OK, value]),
        );
      });
      const wrong: readonly number[] = [grpc.status.INTERNAL, grpc.status.UNKNOWN];
      if (wrong.includes(code)) throw new Error(`gRPC ${code}: ${what}`);
      const ok: number = grpc.status.OK;
      if ((status === 200) !== (code === ok)) throw new Error(`${status} ${code}: ${what}`);
      if (status !== 200 || reply === undefined) return;
      answered++;
      // Scope and question have the same places in a request of Check.
      const message = fromBinary(ExplainRequestSchema, bytes);
      message.remediesMax = 0;
      const [ofCheck, checked] = await post('Check', toBinary(ExplainRequestSchema, message));
      const wanted = ofCheck === 200 && fromBinary(CheckResponseSchema, checked).allowed;
      for (const answer of [body, reply]) {
        const { allowed } = fromBinary(ExplainResponseSchema, answer);
        if (allowed !== wanted) throw new Error(`${allowed}, but Check ${wanted}: ${what}`);
      }
    });
    await fc.assert(property, params(250));
    expect(answered).toBeGreaterThan(0);
  });
});
