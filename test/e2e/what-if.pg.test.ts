import { beforeAll, describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* WhatIf: which questions change their answer if the updates were written. */
const { instance } = await instanceForFile({ GATEWAY_MAX_BATCH_ITEMS: '20' });

type Body = Readonly<Record<string, unknown>>;
const user = (user_id: string) => ({ user_id });
const tuple = (object_id: string, relation: string, subject: unknown): Body => ({
  namespace: 'doc',
  object_id,
  relation,
  subject,
});
const insert = (one: Body): Body => ({ op: 'OP_INSERT', tuple: one });
const remove = (one: Body): Body => ({ op: 'OP_DELETE', tuple: one });
const may = (object_id: string, who: string): Body => ({
  namespace: 'doc',
  object_id,
  relation: 'viewer',
  subject: user(who),
});
const staff = { set: { namespace: 'group', object_id: 'staff', relation: 'member' } };
const member = (who: string): Body => ({
  namespace: 'group',
  object_id: 'staff',
  relation: 'member',
  subject: user(who),
});

async function whatIf(updates: readonly Body[], questions: readonly Body[], scope: Body = {}) {
  const answer = await query(instance, 'WhatIf', { scope, updates, questions });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  const results = answer.body['results'] as {
    allowed_before: boolean;
    allowed_after: boolean;
    error: string;
  }[];
  const changed = results.filter((one) => one.allowed_before !== one.allowed_after).length;
  expect(answer.body['changed_count']).toBe(changed);
  return results.map((one) =>
    one.error === '' ? `${String(one.allowed_before)} → ${String(one.allowed_after)}` : one.error,
  );
}

let token = '';
beforeAll(async () => {
  const model_json = JSON.stringify({
    namespaces: {
      doc: {
        relations: {
          banned: {},
          viewer: { exclusion: { include: {}, exclude: { computed: 'banned' } } },
        },
      },
    },
  });
  const updated = await call(instance, 'AdminService/UpdateProject', { id: 'default', model_json });
  expect(updated.status).toBe(200);
  const updates = [
    insert(tuple('plan', 'viewer', user('ann'))),
    insert(tuple('plan', 'viewer', staff)),
    insert(member('bob')),
  ];
  const written = await call(instance, 'AuthzService/WriteRelationTuples', { updates });
  token = String(written.body['consistency_token']);
});

describe('updates', () => {
  const all = [may('plan', 'ann'), may('plan', 'bob'), may('plan', 'eve')];

  test('that grant, take away, ban, replace, or change nothing', async () => {
    expect(await whatIf([insert(member('eve'))], all)).toEqual([
      'true → true',
      'true → true',
      'false → true',
    ]);
    expect(await whatIf([remove(tuple('plan', 'viewer', staff))], all)).toEqual([
      'true → true',
      'true → false',
      'false → false',
    ]);
    expect(await whatIf([insert(tuple('plan', 'banned', user('ann')))], all)).toEqual([
      'true → false',
      'true → true',
      'false → false',
    ]);
    const expired = { ...member('bob'), expires_at: '2001-01-01T00:00:00Z' };
    expect(await whatIf([insert(expired)], all)).toEqual([
      'true → true',
      'true → false',
      'false → false',
    ]);
    const unheard = remove(tuple('unheard', 'of', user('nobody')));
    expect(await whatIf([unheard, insert(tuple('plan', 'viewer', user('ann')))], all)).toEqual([
      'true → true',
      'true → true',
      'false → false',
    ]);
  });

  test('of names that nothing stored mentions', async () => {
    const crew = { set: { namespace: 'crew', object_id: 'c', relation: 'aboard' } };
    const aboard = { namespace: 'crew', object_id: 'c', relation: 'aboard', subject: user('zoe') };
    const updates = [insert(tuple('new', 'viewer', crew)), insert(aboard)];
    const asked = [may('new', 'zoe'), { ...may('new', 'x'), subject: crew }];
    expect(await whatIf(updates, asked)).toEqual(['false → true', 'false → true']);
  });

  test('beside contextual tuples, which stand above what would be written', async () => {
    const scope = { contextual_tuples: [tuple('plan', 'viewer', user('eve'))] };
    const ban = insert(tuple('plan', 'banned', user('eve')));
    expect(await whatIf([ban], [may('plan', 'eve')], scope)).toEqual(['true → false']);
    const gone = remove(tuple('plan', 'viewer', user('eve')));
    expect(await whatIf([gone], [may('plan', 'eve')], scope)).toEqual(['true → true']);
  });

  test('with a context, by which conditions before and after are decided', async () => {
    const adult = {
      ...tuple('plan', 'viewer', user('kim')),
      condition_name: 'age_at_least',
      condition_params: { min_age: 18 },
    };
    const asked = [may('plan', 'kim')];
    expect(await whatIf([insert(adult)], asked, { context: { age: 20 } })).toEqual([
      'false → true',
    ]);
    expect(await whatIf([insert(adult)], asked, { context: { age: 2 } })).toEqual([
      'false → false',
    ]);
  });

  test('are what then comes true when they are written', async () => {
    const tenant_id = 'then';
    const scope = { tenant_id };
    const before = [insert(tuple('plan', 'viewer', user('ann')))];
    await call(instance, 'AuthzService/WriteRelationTuples', { tenant_id, updates: before });
    const updates = [
      insert(tuple('plan', 'viewer', staff)),
      insert(member('bob')),
      remove(tuple('plan', 'viewer', user('ann'))),
    ];
    const asked = [may('plan', 'ann'), may('plan', 'bob'), may('plan', 'eve')];
    const predicted = await whatIf(updates, asked, scope);
    await call(instance, 'AuthzService/WriteRelationTuples', { tenant_id, updates });
    const items = asked.map(({ subject: _subject, ...rest }, i) => ({
      ...rest,
      subject_user_id: ['ann', 'bob', 'eve'][i],
    }));
    const batch = await call(instance, 'AuthzService/BatchCheck', { tenant_id, items });
    const results = batch.body['results'] as { allowed: boolean }[];
    expect(results.map((one) => String(one.allowed))).toEqual(
      predicted.map((text) => text.split(' → ')[1]),
    );
  });
});

test('nothing is written, and the revision stays', async () => {
  const updates = [insert(member('eve')), remove(tuple('plan', 'viewer', user('ann')))];
  const questions = [may('plan', 'ann')];
  const answer = await query(instance, 'WhatIf', { updates, questions });
  expect(answer.body['consistency_token']).toBe(token);
  const stored = await call(instance, 'AuthzService/ReadRelationTuples', {});
  expect(stored.body['tuples']).toHaveLength(3);
  expect(await whatIf([insert(member('eve'))], [may('plan', 'ann')])).toEqual(['true → true']);
});

test('questions that are not valid fail alone; updates that are not fail the call', async () => {
  const questions = [{}, may('#', 'ann'), { ...may('plan', 'x'), subject: { wildcard: true } }];
  expect(await whatIf([insert(member('eve'))], [...questions, may('plan', 'ann')])).toEqual([
    expect.stringContaining('questions[0].namespace'),
    expect.stringContaining('questions[1].object_id'),
    'questions[2].subject: must be a user or a set',
    'true → true',
  ]);
  const asked = [may('plan', 'ann')];
  const refused = async (updates: unknown, message: string, status = 400): Promise<void> => {
    const answer = await query(instance, 'WhatIf', { updates, questions: asked });
    expect(answer.status).toBe(status);
    expect(String(answer.body['message'])).toContain(message);
  };
  await refused([], 'updates: is required');
  await refused([{ tuple: member('a') }], 'updates[0].op');
  await refused([{ op: 'OP_INSERT' }], 'updates[0].tuple');
  await refused([insert({ ...member('a'), namespace: 'seat' })], 'updates[0].tuple.namespace');
  await refused([insert(member('a')), remove(member('a'))], 'updates[1].tuple');
  const many = Array.from({ length: 1001 }, (_, i) => insert(member(`m${i}`)));
  await refused(many, 'updates: at most 1000', 429);
  expect(await whatIf(many.slice(1), [may('plan', 'm1000'), may('plan', 'm0')])).toEqual([
    'false → true',
    'false → false',
  ]);
  const tooMany = Array.from({ length: 21 }, () => may('plan', 'ann'));
  const answer = await query(instance, 'WhatIf', { updates: many.slice(1), questions: tooMany });
  expect(answer).toMatchObject({ status: 429, body: { code: 'resource_exhausted' } });
  expect(await whatIf([insert(member('eve'))], [])).toEqual([]);
});

test('counts calls, reads and failed questions under its own label', async () => {
  const questions = [may('plan', 'ann'), may('#', 'ann')];
  await query(instance, 'WhatIf', { updates: [insert(member('eve'))], questions });
  await query(instance, 'WhatIf', { updates: [], questions });
  await expect
    .poll(async () => readsOf(await instance.renderMetrics()), { timeout: 10_000 })
    .toBeGreaterThan(0);
  const text = await instance.renderMetrics();
  expect(text).toMatch(/authz_check_duration_seconds_count\{rpc="WhatIf"\} [1-9]/);
  expect(text).toMatch(
    /authz_decision_errors_total\{rpc="WhatIf",reason="invalid_argument"\} [1-9]/,
  );
});

function readsOf(text: string): number {
  return Number(/gatehouse_eval_reads_sum\{rpc="WhatIf"\} (\d+)/.exec(text)?.[1] ?? 0);
}
