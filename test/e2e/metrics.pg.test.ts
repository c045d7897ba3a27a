import { beforeAll, expect, test, vi } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { call } from '../support/service.ts';

/* What /metrics says of decisions, whichever path they took. */
const { instance } = await instanceForFile();

beforeAll(async () => {
  await call(instance, 'AdminService/CreateProject', { id: 'p', name: 'p', max_check_reads: 100 });
  const updates = Array.from({ length: 400 }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'group',
      object_id: `g${i}`,
      relation: 'member',
      subject: { set: { namespace: 'group', object_id: `g${i + 1}`, relation: 'member' } },
    },
  }));
  await call(instance, 'AuthzService/WriteRelationTuples', { updates, project_id: 'p' });
});

async function valueOf(series: string): Promise<number> {
  const text = await instance.renderMetrics();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? Number.NaN);
}

/** Worker figures arrive with their next report. */
async function expectValue(series: string, value: number): Promise<void> {
  await vi.waitFor(async () => expect(await valueOf(series), series).toBe(value), {
    timeout: 10_000,
    interval: 50,
  });
}

test('decisions, sizes, errors and backstops are counted once', async () => {
  const question = { project_id: 'p', namespace: 'group', object_id: 'g0', relation: 'member' };
  const alice = { ...question, subject_user_id: 'alice' };
  // Both times the same, by the general and by the hot path.
  for (const baseUrl of [instance.generalUrl, instance.baseUrl]) {
    const via = { ...instance, baseUrl };
    expect((await call(via, 'AuthzService/Check', { ...alice, object_id: 'g399' })).status).toBe(
      200,
    );
    expect((await call(via, 'AuthzService/Check', { ...alice, object_id: '#' })).status).toBe(400);
    const spent = await call(via, 'AuthzService/Check', alice);
    expect([spent.status, spent.body['code']]).toEqual([429, 'resource_exhausted']);
    expect(String(spent.body['message'])).toContain('100');
    const { project_id, ...item } = alice;
    const items = [{ ...item, object_id: 'g399' }, item, { ...item, object_id: 'g398' }];
    const batch = await call(via, 'AuthzService/BatchCheck', { project_id, items });
    const results = batch.body['results'] as { error: string }[];
    expect(results.map((result) => result.error)).toEqual(['', spent.body['message'], '']);
  }
  const { project_id: _scope, ...member } = question;
  const set = { ...question, object_id: 'g399', subject_set: member };
  await call(instance, 'AuthzService/Check', '{"namespace":7}');
  await call(instance, 'AuthzService/Check', set);
  await expectValue('authz_batchcheck_items_count', 2);
  await expectValue('authz_batchcheck_items_sum', 6);
  await expectValue('authz_decision_errors_total{rpc="Check",reason="invalid_argument"}', 3);
  await expectValue('authz_decision_errors_total{rpc="Check",reason="resource_exhausted"}', 2);
  await expectValue('authz_decision_errors_total{rpc="BatchCheck",reason="resource_exhausted"}', 2);
  // The members of g0 are as far away as alice.
  await expectValue('authz_decision_errors_total{rpc="CheckSet",reason="resource_exhausted"}', 1);
  await expectValue('authz_eval_backstop_total{reason="budget"}', 5);
  // Not counted: what cannot be decoded, and what fails validation. The rest ran into the budget of 100.
  await expectValue('gatehouse_eval_reads_count{rpc="Check"}', 4);
  await expectValue('gatehouse_eval_reads_bucket{rpc="Check",le="64"}', 2);
  await expectValue('gatehouse_eval_reads_bucket{rpc="Check",le="128"}', 4);
  await expectValue('gatehouse_eval_reads_count{rpc="BatchCheck"}', 6);
  await expectValue('gatehouse_eval_reads_count{rpc="CheckSet"}', 1);
  await expectValue('authz_check_duration_seconds_count{rpc="Check"}', 7);
  await expectValue('authz_check_duration_seconds_count{rpc="CheckSet"}', 1);
  await expectValue('authz_check_duration_seconds_count{rpc="BatchCheck"}', 2);
});

test('items of a batch that are not valid are counted as errors, those of a batch that fails are not', async () => {
  const item = {
    namespace: 'group',
    object_id: 'g399',
    relation: 'member',
    subject_user_id: 'alice',
  };
  const invalid = [
    { ...item, object_id: '#' },
    { ...item, subject_user_id: '' },
    { ...item, namespace: 'No' },
  ];
  const ask = (baseUrl: string, items: readonly object[], project_id = 'p') =>
    call({ ...instance, baseUrl }, 'AuthzService/BatchCheck', { project_id, items });
  const series = 'authz_decision_errors_total{rpc="BatchCheck",reason="invalid_argument"}';
  const before = await valueOf(series);
  let count = 0;
  for (const baseUrl of [instance.generalUrl, instance.baseUrl]) {
    for (const items of [[item, ...invalid, item], invalid]) {
      const { status, body } = await ask(baseUrl, items);
      expect(status).toBe(200);
      const results = body['results'] as { error: string }[];
      expect(results.filter(({ error }) => error !== '')).toHaveLength(3);
      count += 3;
      await expectValue(series, before + count);
    }
    expect((await ask(baseUrl, invalid, 'nobody-has-it')).status).toBe(404);
  }
  await expectValue('authz_decision_errors_total{rpc="BatchCheck",reason="not_found"}', 2);
  expect(await valueOf(series)).toBe(before + count);
});
