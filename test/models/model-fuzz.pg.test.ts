import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  PreviewModelRequestSchema,
  PreviewModelResponseSchema,
  TestModelRequestSchema,
  WriteModelRequestSchema,
} from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { awkwardValues, jsonPatches, patched } from '../support/json-patches.ts';
import { docModel, modelCall, modelClient } from '../support/model-calls.ts';
import { call } from '../support/service.ts';
import { byLength, inShort } from '../support/test-length.ts';

/* Whatever a request holds, no method answers 500, and what decides is what somebody wrote. */
const { instance } = await instanceForFile();
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

const MODEL = docModel({ viewer: {}, editor: {} });
const OTHER = docModel({ viewer: { computed: 'editor' }, editor: {} });
const OK: number = grpc.status.OK;
const QUESTION = { namespace: 'doc', object_id: 'd', relation: 'viewer', subject_user_id: 'eve' };
const TESTS = 'tuples: [doc:d#editor@user:eve]\ntests: [{ allow: [doc:d#viewer@user:eve] }]\n';
const made = { id: 'fuzz', name: 'n', model_json: MODEL };
expect(await call(instance, 'AdminService/CreateProject', made)).toMatchObject({ status: 200 });

const BODIES = {
  GetModel: { project_id: 'fuzz', version: '1' },
  ListModelVersions: { project_id: 'fuzz', page_size: 1, page_token: '' },
  RollBackModel: { project_id: 'fuzz', version: '1', expected_version: '99', comment: 'c' },
  TestModel: { project_id: 'fuzz', model: { json: OTHER }, files: [{ name: 'f', text: TESTS }] },
  WriteModel: {
    project_id: 'fuzz',
    model: { json: OTHER },
    comment: 'c',
    dry_run: true,
    tests: [{ name: 'f', text: TESTS }],
    guard: { questions: { given: [QUESTION], sampled: 3, seed: '7' }, refuse_new_allows: true },
  },
} as const;

const awkward = awkwardValues([
  'fuzz',
  'doc',
  '9223372036854775807',
  '-9223372036854775808',
  '18446744073709551616',
  MODEL,
  { json: MODEL },
  { gate: 'namespace doc {\n}\n' },
  { json: '{' },
  'tests: [',
  'a: &a [*a]',
  '- - -',
  TESTS,
  `model_file: ../x\n${TESTS}`,
]);
const FIELDS = `project_id version expected_version comment model json gate force guard questions given sampled
  recorded seed tenant_id context files tests name text page_size page_token unknown constructor`;
const patches = jsonPatches(FIELDS.split(/\s+/), awkward);

test.each(Object.keys(BODIES) as (keyof typeof BODIES)[])(
  `JSON: %s (SEED=${seed})`,
  async (method) => {
    let answered = 0;
    const property = fc.asyncProperty(patches, async (list) => {
      const body = patched(BODIES[method], list);
      const { status, body: answer } = await modelCall(instance, method, body);
      if (status === 200) answered += 1;
      if (status >= 500)
        throw new Error(`${JSON.stringify(body)}: ${status} ${JSON.stringify(answer)}`);
    });
    await fc.assert(property, params(byLength(25, 200)));
    expect(answered).toBeGreaterThan(method === 'RollBackModel' ? -1 : 3);
  },
  60_000,
);

inShort(test)('hostile sizes and depths are refused', async () => {
  const deep = `${'{"union":['.repeat(3_000)}{}${']}'.repeat(3_000)}`;
  const json = `{"namespaces":{"doc":{"relations":{"viewer":${deep}}}}}`;
  const wide = JSON.stringify({
    namespaces: {
      doc: { relations: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`r${i}`, {}])) },
    },
  });
  const given = Array.from({ length: 10_001 }, () => QUESTION);
  const bodies: [string, unknown][] = [
    ['WriteModel', { model: { json } }],
    ['WriteModel', { model: { json: wide } }],
    ['WriteModel', { model: { gate: '('.repeat(100_000) } }],
    [
      'WriteModel',
      { model: { json: MODEL }, guard: { refuse_new_allows: true, questions: { given } } },
    ],
    ['TestModel', { files: [{ text: '['.repeat(500_000) }] }],
    ['TestModel', { files: [{ text: `tests: ${'{a: '.repeat(100_000)}` }] }],
    ['TestModel', { files: [{ text: `x: |\n ${'y'.repeat(2_000_000)}` }] }],
    ['ListModelVersions', { page_token: 'x'.repeat(1_000_000) }],
    ['GetModel', { project_id: 'x'.repeat(1_000_000) }],
  ];
  for (const [method, body] of bodies) {
    const { status } = await modelCall(instance, method, body);
    expect([method, JSON.stringify(body).slice(0, 60), status >= 400 && status < 500]).toEqual([
      method,
      JSON.stringify(body).slice(0, 60),
      true,
    ]);
  }
});

inShort(describe)('other protocols', () => {
  const address = instance.baseUrl.replace('http://', '');
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  afterAll(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${instance.token}`);
  metadata.set('x-admin-secret', instance.adminSecret);
  const model = { form: { case: 'json' as const, value: OTHER } };
  const request = create(PreviewModelRequestSchema, {
    projectId: 'fuzz',
    model,
    questions: {
      given: [{ namespace: 'doc', objectId: 'd', relation: 'viewer', subjectUserId: 'eve' }],
    },
  });

  function streamed(bytes: Uint8Array): Promise<[code: number, messages: readonly Buffer[]]> {
    return new Promise((resolve) => {
      const messages: Buffer[] = [];
      const stream = client.makeServerStreamRequest(
        '/gatehouse.v1.ModelService/PreviewModel',
        (value: Buffer) => value,
        (value: Buffer) => value,
        Buffer.from(bytes),
        metadata,
      );
      stream.on('data', (message: Buffer) => void messages.push(message));
      stream.on('error', (error: grpc.ServiceError) => resolve([error.code, messages]));
      stream.on('end', () => resolve([grpc.status.OK, messages]));
    });
  }

  test('PreviewModel streams over gRPC as over Connect, on HTTP/1.1 and HTTP/2', async () => {
    const tuple = {
      namespace: 'doc',
      object_id: 'd',
      relation: 'editor',
      subject: { user_id: 'eve' },
    };
    const write = { project_id: 'fuzz', updates: [{ op: 'OP_INSERT', tuple }] };
    await call(instance, 'AuthzService/WriteRelationTuples', write);
    const [code, messages] = await streamed(toBinary(PreviewModelRequestSchema, request));
    expect(code).toBe(grpc.status.OK);
    const overGrpc = messages.map((bytes) => fromBinary(PreviewModelResponseSchema, bytes));
    expect(overGrpc.at(-1)).toMatchObject({ answered: 1, newAllows: 1, done: true });
    for (const version of ['1.1', '2'] as const) {
      const answers: unknown[] = [];
      for await (const answer of modelClient(instance, version).previewModel(request)) {
        answers.push({ ...answer, seed: 0n });
      }
      expect(answers).toEqual(overGrpc.map((answer) => ({ ...answer, seed: 0n })));
    }
  });

  test('a caller that goes away ends its preview', async () => {
    const controller = new AbortController();
    const answers = modelClient(instance).previewModel(
      { projectId: 'fuzz', model, questions: { sampled: 100_000, seed: 1n } },
      { signal: controller.signal },
    );
    await expect(
      (async () => {
        for await (const { answered } of answers) if (answered > 0) controller.abort();
      })(),
    ).rejects.toThrow(/cancel|abort/i);
    // Its place is free again: two more run at once.
    for (let i = 0; i < 3; i++) {
      const run = () => streamed(toBinary(PreviewModelRequestSchema, request));
      const codes = await Promise.all([run(), run()]);
      if (codes.every(([code]) => code === OK)) return;
      await new Promise((done) => setTimeout(done, 200));
    }
    throw new Error('the place of a preview whose caller has gone stays taken');
  });

  test(`damaged messages are refused or answered, over gRPC (SEED=${seed})`, async () => {
    const valid = {
      PreviewModel: toBinary(PreviewModelRequestSchema, request),
      TestModel: toBinary(
        TestModelRequestSchema,
        create(TestModelRequestSchema, { model, files: [{ name: 'f', text: TESTS }] }),
      ),
      WriteModel: toBinary(
        WriteModelRequestSchema,
        create(WriteModelRequestSchema, { projectId: 'fuzz', model, dryRun: true }),
      ),
    };
    const flips = fc.array(fc.tuple(fc.nat(), fc.nat(7)), { minLength: 1, maxLength: 3 });
    const methods = fc.constantFrom(...(Object.keys(valid) as (keyof typeof valid)[]));
    await fc.assert(
      fc.asyncProperty(methods, flips, async (method, list) => {
        const bytes = Buffer.from(valid[method]);
        for (const [at, bit] of list) {
          const place = at % bytes.length;
          bytes[place] = (bytes[place] ?? 0) ^ (1 << bit);
        }
        const [code] =
          method === 'PreviewModel'
            ? await streamed(bytes)
            : await new Promise<[number]>((resolve) => {
                client.makeUnaryRequest(
                  `/gatehouse.v1.ModelService/${method}`,
                  (value: Buffer) => value,
                  (value: Buffer) => value,
                  bytes,
                  metadata,
                  (error) => resolve([error?.code ?? grpc.status.OK]),
                );
              });
        const wrong: readonly number[] = [grpc.status.INTERNAL, grpc.status.UNKNOWN];
        if (wrong.includes(code)) throw new Error(`${method} ${code}: ${bytes.toString('hex')}`);
      }),
      params(150),
    );
  }, 120_000);
});
