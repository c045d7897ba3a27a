import { create, fromBinary, type JsonObject, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  BatchCheckRequestSchema,
  BatchCheckResponseSchema,
  CheckRequestSchema,
  CheckResponseSchema,
  UsersetMode,
  WhatIfRequestSchema,
  WhatIfResponseSchema,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import type { RelationTuple } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { awkwardValues, jsonPatches, patched } from '../support/json-patches.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';

/* Whatever a request holds, no method answers 500, and nobody is let in whom no tuple names. */
const { instance } = await instanceForFile();
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const timeout = 60_000 * Math.max(1, FUZZ_RUNS);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

/** Of gRPC, as numbers. */
const OK: number = grpc.status.OK;
const METHODS = ['Check', 'BatchCheck', 'WhatIf'] as const;
const stored = {
  namespace: 'doc',
  object_id: 'plan',
  relation: 'viewer',
  subject: { user_id: 'ann' },
};
const updates = [{ op: 'OP_INSERT', tuple: stored }];
expect((await call(instance, 'AuthzService/WriteRelationTuples', { updates })).status).toBe(200);

/** Whom no tuple names: never let in, unless everybody is. */
const asked = { ...stored, subject: { user_id: 'mallory' } };

/** Values of every JSON type, of awkward texts and sizes; none of them lets everybody in. */
const awkward = awkwardValues([
  'doc',
  'seat',
  'group',
  'plan',
  'viewer',
  'member',
  'default',
  'ann',
  'OP_DELETE',
]);
const FIELDS = [
  'project_id',
  'tenant_id',
  'namespace',
  'object_id',
  'relation',
  'subject',
  'expires_at',
  'condition_name',
  'condition_params',
  'user_id',
  'set',
  'op',
  'tuple',
  'question',
  'context',
  'scope',
  'contextual_tuples',
  'userset_mode',
  'items',
  'updates',
  'questions',
  'unknown',
  'constructor',
  'at_least_consistency_token',
];
const patches = jsonPatches(FIELDS, awkward);

function bodyOf(method: (typeof METHODS)[number]): Record<string, unknown> {
  const scope = {
    contextual_tuples: [
      { ...stored, object_id: 'other' },
      {
        ...stored,
        subject: { set: { namespace: 'group', object_id: 'g', relation: 'member' } },
        condition_name: 'age_at_least',
        condition_params: { min_age: 18 },
      },
    ],
    context: { age: 20 },
    userset_mode: 'USERSET_MODE_EXACT',
  };
  const tuple = { ...stored, object_id: 'third' };
  const changes = [
    { op: 'OP_INSERT', tuple },
    { op: 'OP_DELETE', tuple: stored },
  ];
  if (method === 'Check') return { scope, question: asked };
  if (method === 'BatchCheck') return { scope, items: [{ question: asked }, { question: asked }] };
  return { scope, updates: changes, questions: [asked, asked] };
}

/** Whether anything of an answer allows. */
function allows(body: Record<string, unknown>): boolean {
  return /"allowed(_before|_after)?":true/.test(JSON.stringify(body));
}

describe(`JSON (SEED=${seed})`, { timeout }, () => {
  test.each(METHODS)('%s', async (method) => {
    let answered = 0;
    const property = fc.asyncProperty(patches, async (list) => {
      const body = patched(bodyOf(method), list);
      const text = JSON.stringify(body);
      const answer = await query(instance, method, text);
      const shown = `${text} → ${answer.status} ${JSON.stringify(answer.body)}`;
      if (answer.status >= 500 && answer.status !== 503) throw new Error(shown);
      // What is asked may have become the stored tuple's own subject, or everybody.
      const isHonest = /"ann"|wildcard|"viewer".*"viewer".*"set"|"set".*"viewer"/.test(
        JSON.stringify(body['question'] ?? body['items'] ?? body['questions'] ?? ''),
      );
      if (answer.status === 200) answered++;
      if (!isHonest && allows(answer.body) && !text.includes('wildcard')) throw new Error(shown);
    });
    await fc.assert(property, params(byLength(40, 120)));
    expect(answered).toBeGreaterThan(0);
  });

  test('hostile sizes and depths', async () => {
    const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const tuple = JSON.stringify(stored);
    const wide = Array.from({ length: 40_000 }, () => tuple).join();
    const long = 'x'.repeat(1_000_000);
    const conditional = JSON.stringify({
      ...stored,
      condition_name: 'age_at_least',
      condition_params: { min_age: 18, filler: 'y'.repeat(70_000) },
    });
    const bodies = [
      '',
      '{',
      'null',
      '[]',
      '[['.repeat(20_000),
      `{"scope":{"context":${deep}}}`,
      `{"scope":{"context":{"${long}":"${long}"}},"question":${JSON.stringify(asked)}}`,
      `{"scope":{"contextual_tuples":[${wide}]},"question":${JSON.stringify(asked)}}`,
      `{"scope":{"contextual_tuples":[${conditional}]},"question":${JSON.stringify(asked)}}`,
      `{"updates":[${wide}],"questions":[${wide}],"items":[${wide}]}`,
      `{"scope":{"tenant_id":"${long}"}}`,
      `{"scope":{"at_least_consistency_token":"${long}"},"question":${JSON.stringify(asked)}}`,
    ];
    for (const method of METHODS) {
      for (const body of bodies) {
        const { status, body: answer } = await query(instance, method, body);
        expect(status, body.slice(0, 80)).toBeLessThan(500);
        expect(allows(answer), body.slice(0, 80)).toBe(false);
      }
    }
  });
});

describe(`protobuf over Connect and gRPC (SEED=${seed})`, { timeout }, () => {
  const client = new grpc.Client(
    instance.baseUrl.replace('http://', ''),
    grpc.credentials.createInsecure(),
  );
  afterAll(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${instance.token}`);

  const protoTuple = (objectId: string) => ({
    namespace: 'doc',
    objectId,
    relation: 'viewer',
    subject: { kind: { case: 'userId' as const, value: '0123456789' } },
    conditionName: 'scope_in',
    conditionParams: { scopes: ['a'] } as JsonObject,
  });
  const question = {
    namespace: 'doc',
    objectId: 'plan',
    relation: 'viewer',
    subject: { kind: { case: 'userId' as const, value: 'mallory' } },
  };
  const scope = {
    contextualTuples: [protoTuple('plan')],
    context: { scope: 'a' },
    usersetMode: UsersetMode.EXACT,
  };
  const valid = {
    Check: toBinary(CheckRequestSchema, create(CheckRequestSchema, { scope, question })),
    BatchCheck: toBinary(
      BatchCheckRequestSchema,
      create(BatchCheckRequestSchema, { scope, items: [{ question }, { question }] }),
    ),
    WhatIf: toBinary(
      WhatIfRequestSchema,
      create(WhatIfRequestSchema, {
        scope,
        updates: [{ op: 1, tuple: protoTuple('other') }],
        questions: [question],
      }),
    ),
  };

  /** Everybody is let in by a wildcard, and a changed question may be about a set or about who is named. */
  function mayAllow(method: (typeof METHODS)[number], bytes: Uint8Array): boolean {
    const schema = { Check: CheckRequestSchema, BatchCheck: BatchCheckRequestSchema } as const;
    const message =
      method === 'WhatIf'
        ? fromBinary(WhatIfRequestSchema, bytes)
        : fromBinary(schema[method] as typeof CheckRequestSchema, bytes);
    const tuples: (RelationTuple | undefined)[] = [
      ...(message.scope?.contextualTuples ?? []),
      ...('updates' in message ? message.updates.map((one) => one.tuple) : []),
    ];
    const kinds = tuples.map((tuple) => tuple?.subject?.kind.case);
    if (kinds.includes('wildcard')) return true;
    return !Buffer.from(bytes).includes('mallory');
  }

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
    { minLength: 1, maxLength: 4 },
  );

  test.each(METHODS)('%s', async (method) => {
    const responses = {
      Check: (bytes: Uint8Array) => [fromBinary(CheckResponseSchema, bytes).allowed],
      BatchCheck: (bytes: Uint8Array) =>
        fromBinary(BatchCheckResponseSchema, bytes).results.map((one) => one.allowed),
      WhatIf: (bytes: Uint8Array) =>
        fromBinary(WhatIfResponseSchema, bytes).results.flatMap((one) => [
          one.allowedBefore,
          one.allowedAfter,
        ]),
    };
    let answered = 0;
    const property = fc.asyncProperty(damage, async (list) => {
      let bytes = Buffer.from(valid[method]);
      for (const one of list) {
        const at = one.at % (bytes.length + 1);
        if (one.kind === 'flip') {
          if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << one.bit);
        } else if (one.kind === 'cut') {
          bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + one.count)]);
        } else bytes = Buffer.concat([bytes.subarray(0, at), one.bytes, bytes.subarray(at)]);
      }
      const what = bytes.toString('hex');
      const path = `/gatehouse.v1.QueryService/${method}`;
      const posted = await fetch(`${instance.baseUrl}${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/proto',
          authorization: `Bearer ${instance.token}`,
        },
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
          (error, value) => resolve([error?.code ?? OK, value]),
        );
      });
      const wrong: readonly number[] = [grpc.status.INTERNAL, grpc.status.UNKNOWN];
      if (wrong.includes(code)) throw new Error(`gRPC ${code}: ${what}`);
      if ((posted.status === 200) !== (code === OK)) {
        throw new Error(`${posted.status} and ${code}: ${what}`);
      }
      if (posted.status !== 200 || reply === undefined) return;
      answered++;
      const allowed = [...responses[method](body), ...responses[method](reply)];
      if (allowed.includes(true) && !mayAllow(method, bytes)) throw new Error(`allowed: ${what}`);
    });
    await fc.assert(property, params(byLength(40, 120)));
    expect(answered).toBeGreaterThan(0);
  });
});
