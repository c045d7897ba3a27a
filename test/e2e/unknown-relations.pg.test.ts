import { type Client, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { AuthzService, TupleUpdate_Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* What a typed model does not have: denied and counted by workspace.v1, flagged or refused by gatehouse.v1, whatever carries it. */
const { instance } = await instanceForFile();
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const numRuns = 20 * Number(process.env['FUZZ_RUNS'] ?? 1);
const typed = { this: {}, subjects: ['user'] };
const TYPED = JSON.stringify({
  namespaces: { doc: { relations: { viewer: typed, owner: typed } } },
});
const PLAIN = JSON.stringify({ namespaces: { doc: { relations: { viewer: {}, owner: {} } } } });
for (const [id, model_json] of [
  ['typed', TYPED],
  ['plain', PLAIN],
] as const) {
  const made = await call(instance, 'AdminService/CreateProject', { id, name: id, model_json });
  expect(made.status).toBe(200);
  // As it was before there was the setting.
  expect(made.body['project']).not.toHaveProperty('refuse_unknown_relations');
}

const TRANSPORTS = ['connect json', 'connect proto', 'connect http2', 'grpc', 'grpc-web'] as const;

function transportOf(name: (typeof TRANSPORTS)[number], baseUrl: string): Transport {
  const options = {
    baseUrl,
    interceptors: [
      (
        next: Parameters<
          NonNullable<Parameters<typeof createGrpcTransport>[0]['interceptors']>[number]
        >[0],
      ) =>
        (request: Parameters<typeof next>[0]) => {
          request.header.set('authorization', `Bearer ${instance.token}`);
          return next(request);
        },
    ],
  };
  switch (name) {
    case 'connect json':
      return createConnectTransport({ ...options, httpVersion: '1.1', useBinaryFormat: false });
    case 'connect proto':
      return createConnectTransport({ ...options, httpVersion: '1.1', useBinaryFormat: true });
    case 'connect http2':
      return createConnectTransport({ ...options, httpVersion: '2' });
    case 'grpc':
      return createGrpcTransport(options);
    case 'grpc-web':
      return createGrpcWebTransport({ ...options, httpVersion: '1.1' });
  }
}

type Carrier = {
  readonly queries: Client<typeof QueryService>;
  readonly authz: Client<typeof AuthzService>;
};
const carriers: readonly (readonly [string, Carrier])[] = TRANSPORTS.flatMap((name) =>
  [instance.baseUrl, instance.generalUrl].map((url): [string, Carrier] => {
    const transport = transportOf(name, url);
    const authz = createClient(AuthzService, transport);
    return [`${name} ${url}`, { queries: createClient(QueryService, transport), authz }];
  }),
);

async function valueOf(series: string): Promise<number> {
  const text = await instance.renderMetrics();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? Number.NaN);
}

async function counted(): Promise<readonly number[]> {
  return await Promise.all(
    ['namespace', 'relation'].map((missing) =>
      valueOf(`gatehouse_unknown_relations_total{missing="${missing}"}`),
    ),
  );
}

test('the flag is set exactly where the typed model lacks a name, and all decisions are counted, on every carrier', async () => {
  const name = fc.constantFrom('doc', 'docs', 'seat', 'group', 'other');
  const relation = fc.constantFrom('viewer', 'viewr', 'owner', 'member', 'holder');
  const has = new Set(['doc viewer', 'doc owner', 'seat holder', 'group member']);
  const known = ['doc', 'seat', 'group', 'workspace'];
  const [before0 = 0, before1 = 0] = await counted();
  const wanted = [before0, before1];
  await fc.assert(
    fc.asyncProperty(
      fc.nat(carriers.length - 1),
      fc.constantFrom('typed', 'plain'),
      name,
      relation,
      async (position, projectId, namespace, relationName) => {
        const [at, { queries, authz }] = carriers[position] as (typeof carriers)[number];
        const isUnknown = projectId === 'typed' && !has.has(`${namespace} ${relationName}`);
        const missing = !isUnknown ? -1 : known.includes(namespace) ? 1 : 0;
        const question = { namespace, objectId: 'd', relation: relationName };
        const subject = { kind: { case: 'userId', value: 'u' } } as const;
        const scope = { projectId };
        const tuple = { namespace: 'doc', objectId: 'other', relation: 'owner', subject };
        const updates = [{ op: TupleUpdate_Op.INSERT, tuple }];
        const asked = { scope, question: { ...question, subject } };
        const filter = { scope, namespace, relation: relationName, subject, objectIds: ['d'] };
        const flags = [
          (await queries.check(asked)).unknownRelation,
          (await queries.batchCheck({ scope, items: [asked, asked] })).results[1]?.unknownRelation,
          (await queries.filterObjects(filter)).unknownRelation,
          (await queries.explain(asked)).unknownRelation,
          (await queries.whatIf({ scope, updates, questions: [asked.question] })).results[0]
            ?.unknownRelation,
        ];
        expect(flags, at).toEqual(flags.map(() => isUnknown));
        const subjectUserId = 'u';
        const check = { ...question, subjectUserId };
        expect((await authz.check({ ...check, projectId })).allowed).toBe(false);
        const batch = await authz.batchCheck({ projectId, items: [check, check, check] });
        expect(batch.results.map(({ allowed, error }) => [allowed, error])).toEqual(
          Array.from({ length: 3 }, () => [false, '']),
        );
        // Check, BatchCheck of two, FilterObjects of one object, and those of workspace.v1.
        if (missing >= 0) wanted[missing] = (wanted[missing] as number) + 1 + 2 + 1 + 1 + 3;
      },
    ),
    { numRuns, seed, endOnFailure: true },
  );
  await vi.waitFor(async () => expect(await counted()).toEqual(wanted), {
    timeout: 20_000,
    interval: 50,
  });
}, 120_000);

test('a line of the log says which name was likely meant, and nothing of a tenant', async () => {
  const slip = {
    project_id: 'typed',
    tenant_id: 'acme',
    namespace: 'doc',
    object_id: 'secret-plan',
  };
  for (let i = 0; i < 20; i++) {
    const body = { ...slip, relation: 'veiwer', subject_user_id: 'ann' };
    expect((await call(instance, 'AuthzService/Check', body)).body).toMatchObject({
      allowed: false,
    });
  }
  const lines = () =>
    instance.logged.filter(
      ({ event, fields }) =>
        event === 'unknown_relation' && Reflect.get(fields, 'relation') === 'veiwer',
    );
  await vi.waitFor(() => expect(lines()).toHaveLength(1), { timeout: 20_000, interval: 50 });
  const [line] = lines();
  expect(line).toEqual({
    level: 'warn',
    event: 'unknown_relation',
    fields: {
      project: 'typed',
      namespace: 'doc',
      relation: 'veiwer',
      missing: 'relation',
      did_you_mean: 'viewer',
    },
  });
});

test('a project may have such questions refused; workspace.v1 answers as ever', async () => {
  const id = 'strict';
  const refuse = { refuse_unknown_relations: true };
  const made = { id, name: id, model_json: TYPED, ...refuse };
  const created = await call(instance, 'AdminService/CreateProject', made);
  expect(created.body['project']).toMatchObject(refuse);
  const scope = { project_id: id };
  const question = {
    namespace: 'doc',
    object_id: 'd',
    relation: 'viewr',
    subject: { user_id: 'u' },
  };
  const asked = { scope, question };
  const answer = await query(instance, 'Check', asked);
  expect([answer.status, answer.body['code']]).toEqual([400, 'invalid_argument']);
  expect(answer.body['message']).toBe(
    'question.relation: the model has no relation "viewr" in the namespace "doc"; did you mean "viewer"?',
  );
  expect(JSON.stringify(answer.body['details'])).toContain('RELATION_UNKNOWN');
  expect((await query(instance, 'Explain', asked)).status).toBe(400);
  const known = { question: { ...question, relation: 'viewer' } };
  const batch = await query(instance, 'BatchCheck', { scope, items: [known, { question }] });
  expect(batch.status).toBe(200);
  expect(batch.body['results']).toMatchObject([
    { error: '', unknown_relation: false },
    { error: answer.body['message'], unknown_relation: true },
  ]);
  const list = { scope, namespace: 'team', relation: 'viewer', subject: { user_id: 'u' } };
  const listed = await query(instance, 'ListObjects', list);
  // `team` is no slip of `seat`.
  expect([listed.status, listed.body['message']]).toEqual([
    400,
    'namespace: the model has no namespace "team"',
  ]);
  const { subject: _subject, ...plain } = question;
  const check = { ...scope, ...plain, subject_user_id: 'u' };
  const denied = await call(instance, 'AuthzService/Check', check);
  expect([denied.status, denied.body['allowed']]).toEqual([200, false]);

  // Other settings leave it; false takes it back, here at once.
  const update = (change: object) =>
    call(instance, 'AdminService/UpdateProject', { id, ...change });
  expect((await update({ name: 'other' })).body['project']).toMatchObject(refuse);
  expect((await query(instance, 'Check', asked)).status).toBe(400);
  const freed = await update({ refuse_unknown_relations: false });
  expect(freed.body['project']).not.toHaveProperty('refuse_unknown_relations');
  const open = await query(instance, 'Check', asked);
  expect([open.status, open.body['unknown_relation']]).toEqual([200, true]);
  await update(refuse);
  const shown = await call(instance, 'AdminService/GetProject', { id });
  expect(shown.body['project']).toMatchObject(refuse);
  expect((await query(instance, 'Check', asked)).status).toBe(400);
});
