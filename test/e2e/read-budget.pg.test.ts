/* What an operator sees of read budgets: who was refused what, what projects use, and what would have been enough. */
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeAll, describe, expect, test } from 'vitest';
import type { BudgetJson, MeasuredJson } from '../../src/cli/operate/budget/budget-json.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { query, type QueryAnswer } from '../support/query-call.ts';

const { instance } = await instanceForFile({ GATEWAY_METRICS_PROJECTS: '2' });

/** Usersets from `g0` to the last one, each a member of the one before: about as many reads. */
const CHAIN = 150;
const BUDGET = 100;
const MEMBER = { namespace: 'group', relation: 'member' };
const DEEP = { ...MEMBER, object_id: 'g0', subject_user_id: 'nobody' };
const NEAR = { ...MEMBER, object_id: `g${CHAIN}`, subject_user_id: 'nobody' };

type Answer<T = Readonly<Record<string, unknown>>> = { readonly status: number; readonly body: T };

async function authz(method: string, body: object, id = '', base = instance.baseUrl) {
  const headers = id === '' ? {} : { 'x-request-id': id };
  return await post(`${base}/workspace.v1.${method}`, body, headers);
}

async function budgets<T = Readonly<Record<string, unknown>>>(
  method: string,
  body: object,
): Promise<Answer<T>> {
  return await post<T>(`${instance.baseUrl}/gatehouse.v1.BudgetService/${method}`, body, {});
}

async function post<T = Readonly<Record<string, unknown>>>(
  url: string,
  body: object,
  more: Readonly<Record<string, string>>,
): Promise<Answer<T>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': instance.adminSecret,
      ...more,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as T };
}

function logged(requestId: string): readonly object[] {
  return instance.logged
    .filter(({ event }) => event === 'budget_exhausted')
    .map(({ fields }) => fields)
    .filter((fields) => (fields as { request_id: string }).request_id === requestId);
}

async function chain(projectId: string, tenantId = ''): Promise<void> {
  const updates = Array.from({ length: CHAIN }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      ...MEMBER,
      object_id: `g${i}`,
      subject: { set: { ...MEMBER, object_id: `g${i + 1}` } },
    },
  }));
  const written = await authz('AuthzService/WriteRelationTuples', {
    project_id: projectId,
    tenant_id: tenantId,
    updates,
  });
  expect(written.status).toBe(200);
}

/** Each case has a project of its own: lines of one project come a second apart. */
async function newProject(id: string, tenantId?: string, budget = BUDGET): Promise<void> {
  const project = { id, name: id, max_check_reads: budget };
  expect((await authz('AdminService/CreateProject', project)).status).toBe(200);
  await chain(id, tenantId);
}

beforeAll(async () => {
  await newProject('small');
  await newProject('roomy', '', 0);
  await newProject('flooded');
  await newProject('measured');
  // The first projects that read have series of their own, and keep them for a minute, or as long as they read much.
  const small = { project_id: 'small' };
  for (let i = 0; i < 10; i++) await authz('AuthzService/Check', { ...small, ...DEEP });
  await authz('AuthzService/Check', { ...small, ...NEAR });
});

describe('the line of a refused question', () => {
  const expected = (project: string, rpc: string): object => ({
    project,
    tenant: 'acme',
    relation: 'group#member',
    rpc,
    limit: BUDGET,
    bound: 'evaluation',
    request_id: `request-${project}`,
    caller: 'service-token',
  });

  test.each([
    ['Check', 'Check', DEEP, 429],
    [
      'CheckSet',
      'Check',
      { ...MEMBER, object_id: 'g0', subject_set: { ...MEMBER, object_id: `g${CHAIN - 1}` } },
      429,
    ],
    ['BatchCheck', 'BatchCheck', { items: [NEAR, DEEP] }, 200],
  ])('%s', async (rpc, method, body, status) => {
    for (const [way, base] of [
      ['hot', instance.baseUrl],
      ['general', instance.generalUrl],
    ] as const) {
      const project = `${rpc}-${way}`.toLowerCase();
      await newProject(project, 'acme');
      const id = `request-${project}`;
      const asked = { project_id: project, tenant_id: 'acme', ...body };
      const answer = await authz(`AuthzService/${method}`, asked, id, base);
      expect(answer.status).toBe(status);
      await expect.poll(() => logged(id)).toEqual([expected(project, rpc)]);
    }
  });

  test('over gRPC', async () => {
    await newProject('over-grpc', 'acme');
    const transport = createGrpcTransport({
      baseUrl: instance.baseUrl,
      interceptors: [
        (next) => (request) => {
          request.header.set('authorization', `Bearer ${instance.token}`);
          request.header.set('x-request-id', 'request-over-grpc');
          return next(request);
        },
      ],
    });
    const client = createClient(AuthzService, transport);
    const { namespace, relation } = MEMBER;
    const question = { namespace, relation, objectId: 'g0', subjectUserId: 'nobody' };
    await expect(
      client.check({ projectId: 'over-grpc', tenantId: 'acme', ...question }),
    ).rejects.toThrow(/read budget of 100/);
    expect(logged('request-over-grpc')).toEqual([
      expect.objectContaining(expected('over-grpc', 'Check')),
    ]);
  });

  test('comes once a second, and says how many came without one', async () => {
    const body = { project_id: 'flooded', ...DEEP };
    for (let i = 0; i < 30; i++) await authz('AuthzService/Check', body, `flood-${i}`);
    const lines = (): readonly object[] =>
      instance.logged
        .filter(({ event }) => event === 'budget_exhausted')
        .map(({ fields }) => fields)
        .filter((fields) => (fields as { project: string }).project === 'flooded');
    expect(lines().length).toBeLessThan(10);
    await expect
      .poll(async () => {
        await authz('AuthzService/Check', body, 'flood-on');
        return lines();
      })
      .toContainEqual(expect.objectContaining({ suppressed: expect.any(Number) }));
  });
});

describe('BudgetService', () => {
  test('tells the budget in force beside that of the project', async () => {
    expect((await budgets('GetReadBudget', { project_id: 'small' })).body).toMatchObject({
      project_id: 'small',
      max_check_reads: BUDGET,
      effective_max_check_reads: BUDGET,
      source: 'READ_BUDGET_SOURCE_PROJECT',
      default_max_check_reads: 10_000,
      lowest_max_check_reads: 100,
    });
    const { body } = await budgets('GetReadBudget', { project_id: 'roomy' });
    expect(body).toMatchObject({
      max_check_reads: 0,
      effective_max_check_reads: 10_000,
      source: 'READ_BUDGET_SOURCE_DEFAULT',
    });
    const project = await authz('AdminService/GetProject', { id: 'roomy' });
    expect(project.body).toMatchObject({ project: { max_check_reads: 0 } });
  });

  test('an empty id is the default project, an unknown one is not found', async () => {
    expect((await budgets('GetReadBudget', {})).body).toMatchObject({ project_id: 'default' });
    expect((await budgets('GetReadBudget', { project_id: 'nowhere' })).status).toBe(404);
    expect((await budgets('GetReadBudget', { project_id: 'No' })).status).toBe(400);
    expect((await budgets('ListReadUsage', { limit: -1 })).status).toBe(400);
    expect((await budgets('MeasureRefusedQuestions', { ceiling: 10_000_001 })).status).toBe(400);
  });

  test('tells what evaluations took, and measures what was refused', async () => {
    for (let i = 0; i < 5; i++) {
      const body = { project_id: 'measured', ...NEAR };
      expect((await authz('AuthzService/Check', body)).body).toEqual({ allowed: false });
    }
    await authz('AuthzService/Check', { project_id: 'measured', ...DEEP }, 'refused-one');
    const usage = async (): Promise<BudgetJson> =>
      (await budgets<BudgetJson>('GetReadBudget', { project_id: 'measured' })).body;
    await expect
      .poll(async () => (await usage()).usage)
      .toMatchObject({ answered: '5', refused: '1', reads_max: '1' });
    const { refused_questions: refused } = await usage();
    expect(refused).toEqual([
      expect.objectContaining({
        rpc: 'Check',
        relation: 'group#member',
        object_id: 'g0',
        subject: 'user:nobody',
        limit: String(BUDGET),
        batch: false,
        request_id: 'refused-one',
      }),
    ]);
    const measured = await budgets<MeasuredJson>('MeasureRefusedQuestions', {
      project_id: 'measured',
    });
    expect(measured.body).toMatchObject({
      ceiling: 64 * BUDGET,
      questions: [{ exceeded: false, error: '' }],
    });
    const reads = Number(measured.body.questions[0]?.reads);
    expect(reads).toBeGreaterThan(BUDGET);
    // It is what it takes with nothing remembered: with as much it is answered, with less it is not.
    const set = (max: number): Promise<Answer> =>
      authz('AdminService/UpdateProject', { id: 'measured', max_check_reads: max });
    const asked = { project_id: 'measured', ...DEEP };
    // A query with a contextual tuple remembers nothing.
    const { subject_user_id: user_id, ...object } = DEEP;
    const question = { ...object, subject: { user_id } };
    const elsewhere = { ...question, object_id: 'elsewhere' };
    const scope = { project_id: 'measured', contextual_tuples: [elsewhere] };
    const cold = (): Promise<QueryAnswer> => query(instance, 'Check', { scope, question });
    await set(reads - 1);
    expect((await cold()).status).toBe(429);
    // What is remembered only lowers it: this one passes.
    expect((await authz('AuthzService/Check', asked)).status).toBe(200);
    await set(reads);
    expect((await cold()).status).toBe(200);
    const low = await budgets<MeasuredJson>('MeasureRefusedQuestions', {
      project_id: 'measured',
      ceiling: 120,
    });
    expect(low.body.questions[0]).toMatchObject({ reads: '121', exceeded: true });
  });

  test('without the operator secret it answers nobody', async () => {
    for (const method of ['GetReadBudget', 'ListReadUsage', 'MeasureRefusedQuestions']) {
      const response = await fetch(`${instance.baseUrl}/gatehouse.v1.BudgetService/${method}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${instance.token}` },
        body: '{}',
      });
      expect(response.status).toBe(403);
      await response.text();
    }
  });
});

test('series by project: a bounded number, and what they add up to', async () => {
  const series = async (name: string): Promise<ReadonlyMap<string, number>> => {
    const text = await instance.renderMetrics();
    const found = text.matchAll(new RegExp(`^${name}\\{project="([^"]+)"\\} (\\S+)$`, 'gm'));
    return new Map([...found].map(([, project = '', value]) => [project, Number(value)]));
  };
  const total = (counts: ReadonlyMap<string, number>): number =>
    [...counts.values()].reduce((sum, count) => sum + count, 0);
  const spec = async (): Promise<number> =>
    Number(
      /^authz_eval_backstop_total\{reason="budget"\} (\S+)$/m.exec(
        await instance.renderMetrics(),
      )?.[1],
    );
  // Reports are a quarter of a second apart.
  await expect
    .poll(async () => total(await series('gatehouse_project_budget_refusals_total')))
    .toBe(await spec());
  const refusals = await series('gatehouse_project_budget_refusals_total');
  expect(refusals.size).toBe(3);
  expect(refusals.get('small')).toBeGreaterThan(0);
  expect(refusals.has('other')).toBe(true);
  expect((await series('gatehouse_project_reads_total')).size).toBe(3);
  const text = await instance.renderMetrics();
  expect(text).toMatch(/^gatehouse_project_read_budget\{project="small"\} 100$/m);
  const shares = (le: string): number =>
    Number(
      new RegExp(
        `^gatehouse_project_budget_share_bucket\\{project="small",le="${le}"\\} (\\S+)$`,
        'm',
      ).exec(text)?.[1],
    );
  // Near ones take a read or two of a hundred; refused ones lie beyond the whole.
  expect(shares('0.02')).toBeGreaterThan(0);
  expect(shares('\\+Inf')).toBeGreaterThan(shares('1'));
});
