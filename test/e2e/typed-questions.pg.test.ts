import { expect, test } from 'vitest';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';
import { newProject, sharedInstance } from '../support/shared-instance.ts';

/* Tuples of a request must fit a model that says who may be a subject, as those that are written must. */
const instance = await sharedInstance();
const model_json = JSON.stringify({
  namespaces: {
    doc: {
      relations: {
        banned: { subjects: ['user'] },
        viewer: {
          exclusion: { include: {}, exclude: { computed: 'banned' } },
          subjects: ['user', { type: 'group#member', expires: true }],
        },
      },
    },
  },
});
const project_id = await newProject(instance, { model_json });

const asked = {
  namespace: 'doc',
  object_id: 'plan',
  relation: 'viewer',
  subject: { user_id: 'ann' },
};
const group = { set: { namespace: 'group', object_id: 'g', relation: 'member' } };

test.each([
  ['fits', asked, ''],
  ['fits with its expiry', { ...asked, subject: group, expires_at: '2999-01-01T00:00:00Z' }, ''],
  ['lacks its expiry', { ...asked, subject: group }, 'expires_at'],
  ['is of another type', { ...asked, subject: { wildcard: true } }, 'subject'],
  ['has a condition', { ...asked, condition_name: 'not_after' }, 'condition_name'],
  ['is on a relation with a typing error', { ...asked, relation: 'baned' }, 'relation'],
  ['is on another namespace', { ...asked, namespace: 'other', relation: 'any' }, ''],
])('a tuple that %s', async (_name, tuple, field) => {
  const updates = [{ op: 'OP_INSERT', tuple }];
  const scope = { project_id, contextual_tuples: [tuple] };
  const plain = { project_id };
  const answers = {
    check: await query(instance, 'Check', { scope, question: asked }),
    batch: await query(instance, 'BatchCheck', { scope, items: [{ question: asked }] }),
    whatIf: await query(instance, 'WhatIf', { scope: plain, updates, questions: [asked] }),
    write: await call(instance, 'AuthzService/WriteRelationTuples', {
      project_id,
      tenant_id: 'written',
      updates,
    }),
  };
  for (const [name, { status, body }] of Object.entries(answers)) {
    expect(status, `${name} ${JSON.stringify(body)}`).toBe(field === '' ? 200 : 400);
    if (field === '') continue;
    const at =
      name === 'check' || name === 'batch' ? 'scope.contextual_tuples[0]' : 'updates[0].tuple';
    expect(String(body['message'])).toContain(`${at}.${field}: `);
  }
  // What is refused beside a tuple that is not written is what the write itself says.
  const text = (answer: { body: Record<string, unknown> }): string =>
    String(answer.body['message']).replace(/^[^:]*: /, '');
  expect(text(answers.check)).toBe(text(answers.write));
});

test('a delete of what no longer fits is admitted, as in a write', async () => {
  const tuple = { ...asked, relation: 'baned' };
  const updates = [{ op: 'OP_DELETE', tuple }];
  const body = { scope: { project_id }, updates, questions: [asked] };
  expect(await query(instance, 'WhatIf', body)).toMatchObject({ status: 200 });
});

test('conditions that the model declares decide contextual tuples, too', async () => {
  const expression = 'network in allowed && now < until';
  const parameters = {
    network: 'string',
    allowed: 'list<string>',
    now: 'timestamp',
    until: 'timestamp',
  };
  const declared = JSON.stringify({
    conditions: { from_network: { parameters, expression } },
    namespaces: { doc: { relations: { viewer: {} } } },
  });
  const id = await newProject(instance, { model_json: declared });
  const tuple = {
    ...asked,
    condition_name: 'from_network',
    condition_params: { allowed: ['office', 'home'], until: '2030-01-01T00:00:00Z' },
  };
  const decide = async (context: object): Promise<unknown[]> => {
    const scope = { project_id: id, contextual_tuples: [tuple], context };
    const { status, body } = await query(instance, 'Check', { scope, question: asked });
    const what = {
      scope: { project_id: id, context },
      updates: [{ op: 'OP_INSERT', tuple }],
      questions: [asked],
    };
    const foretold = await query(instance, 'WhatIf', what);
    expect(foretold.body['changed_count']).toBe(body['allowed'] === true ? 1 : 0);
    return [status, body['allowed'], body['undecided']];
  };
  const now = '2029-01-01T00:00:00Z';
  expect(await decide({ network: 'home', now })).toEqual([200, true, false]);
  expect(await decide({ network: 'cafe', now })).toEqual([200, false, false]);
  expect(await decide({ network: 'home', now: '2031-01-01T00:00:00Z' })).toEqual([
    200,
    false,
    false,
  ]);
  expect(await decide({ network: 'home' })).toEqual([200, false, true]);
  expect(await decide({})).toEqual([200, false, true]);
  for (const wrong of [
    { ...tuple, condition_name: 'from_netwrk' },
    { ...tuple, condition_params: { allowed: 'office' } },
  ]) {
    const scope = { project_id: id, contextual_tuples: [wrong] };
    const answer = await query(instance, 'Check', { scope, question: asked });
    expect(answer.status, JSON.stringify(answer.body)).toBe(400);
    expect(String(answer.body['message'])).toContain('scope.contextual_tuples[0].condition_');
  }
});
