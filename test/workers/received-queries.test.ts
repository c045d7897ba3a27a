/* Questions of gatehouse.v1 as their worker decodes, evaluates and answers them, with the revision of each answer. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect, test, vi } from 'vitest';
import type { Revision } from '../../src/protocol/queries.ts';
import type { RawAnswer, RawMethod, ReadScope } from '../../src/protocol/shard-client.ts';
import { fillTokenSpace } from '../../src/protocol/token-space.ts';
import { QUERY_METHODS } from '../../src/requests/query-methods.ts';
import {
  askRaw,
  checkViewer,
  type Fixture,
  scopeOf,
  startFixture,
  viewer,
} from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: '' };
const OF_ANN = '"namespace":"doc","object_id":"a","relation":"viewer","subject":{"user_id":"ann"}';
const QUESTION = `"question":{${OF_ANN}}`;
const TOKEN = 't'.repeat(40);

async function started(options: Parameters<typeof startFixture>[0] = {}): Promise<Fixture> {
  const fixture = await startFixture({ workerCount: 1, queueBytesMax: 200_000_000, ...options });
  fixture.source.commit(SHARD, [viewer('insert', 'a', 'ann')]);
  return fixture;
}

/** The text of an answer with its token, and the revision that it names; of an error its reason and message. */
async function asked(
  { pool }: Fixture,
  method: RawMethod,
  body: string,
  scope: ReadScope = scopeOf(SHARD, 1),
): Promise<{ readonly text: string; readonly revision?: Revision | undefined }> {
  return await new Promise((resolve) => {
    const expected = { projectId: '', tenantId: '', token: '' };
    pool.raw(method, 'json', Buffer.from(body), scope, expected, (answer) => {
      if (answer.kind === 'error') {
        resolve({ text: `${answer.error.reason}: ${answer.error.message}` });
        return;
      }
      if (answer.kind !== 'body') throw new Error('a question is answered by a message');
      let revision: Revision | undefined;
      const filled = fillTokenSpace(answer.body, (named) => {
        revision = named;
        return TOKEN;
      });
      resolve({ text: Buffer.from(filled).toString(), revision });
    });
  });
}

const said = (allowed: boolean): string =>
  `{"allowed":${allowed},"undecided":false,"consistency_token":"${TOKEN}","unknown_relation":false}`;
const GUEST =
  '"scope":{"contextual_tuples":[{"namespace":"doc","object_id":"b","relation":"viewer","subject":{"user_id":"ann"}}]}';

test.each([
  ['queryCheck', `{${QUESTION}}`, said(true)],
  ['queryCheck', `{${QUESTION.replace('ann', 'bob')}}`, said(false)],
  ['queryCheck', `{${GUEST},${QUESTION.replace('"a"', '"b"')}}`, said(true)],
  [
    'queryBatchCheck',
    `{"items":[{${QUESTION}},{},{${QUESTION.replace('"a"', '"b"')}}]}`,
    '{"results":[{"allowed":true,"undecided":false,"error":"","unknown_relation":false,"error_reason":""},' +
      '{"allowed":false,"undecided":false,"error":"items[1].question: is required","unknown_relation":false,"error_reason":"FIELD_REQUIRED"},' +
      '{"allowed":false,"undecided":false,"error":"","unknown_relation":false,"error_reason":""}],' +
      `"consistency_token":"${TOKEN}"}`,
  ],
  [
    'listRelations',
    '{"namespace":"doc","object_id":"a","subject":{"user_id":"ann"}}',
    `{"relations":["viewer"],"undecided_relations":[],"consistency_token":"${TOKEN}"}`,
  ],
  [
    'filterObjects',
    '{"namespace":"doc","relation":"viewer","subject":{"user_id":"ann"},"object_ids":["b","a","\\u0061"]}',
    `{"object_ids":["a","a"],"consistency_token":"${TOKEN}","unknown_relation":false,"undecided_object_ids":[]}`,
  ],
] as const)('%s of %s', async (method, body, wanted) => {
  await using fixture = await started();
  expect(await asked(fixture, method, body)).toEqual({
    text: wanted,
    revision: { epoch: scopeOf(SHARD, 1).epoch, revision: 1 },
  });
});

test('an answer names the revision that it was computed at', async () => {
  await using fixture = await started();
  for (let seq = 2; seq <= 5; seq++) {
    fixture.source.commit(SHARD, [viewer(seq % 2 === 0 ? 'delete' : 'insert', 'a', 'ann')]);
    const { text, revision } = await asked(
      fixture,
      'queryCheck',
      `{${QUESTION}}`,
      scopeOf(SHARD, seq),
    );
    expect([text, revision?.revision]).toEqual([said(seq % 2 === 1), seq]);
  }
});

test('an explanation is one of the shard that was asked', async () => {
  await using fixture = await started();
  const { text } = await asked(fixture, 'explain', `{${QUESTION}}`);
  expect(JSON.parse(text)).toMatchObject({
    allowed: true,
    derivation: {
      nodes: [{ object_id: 'a', tuple: { project_id: 'p', subject: { user_id: 'ann' } } }],
    },
    consistency_token: TOKEN,
  });
});

test.each([
  ['no JSON', '{', 'BODY_MALFORMED'],
  ['a field that there is not', `{${QUESTION},"nobody":1}`, 'BODY_MALFORMED: '],
  ['no question', '{}', 'FIELD_REQUIRED: question: '],
  [
    'a wildcard',
    `{${QUESTION.replace('"user_id":"ann"', '"wildcard":true')}}`,
    'FIELD_INVALID: question.subject: ',
  ],
  [
    'a mode that there is not',
    `{${QUESTION},"scope":{"userset_mode":7}}`,
    'FIELD_INVALID: scope.userset_mode',
  ],
  [
    'a contextual tuple of another tenant',
    `{${QUESTION},${GUEST.replace('"object_id"', '"tenant_id":"x","object_id"')}}`,
    'FIELD_INVALID: scope.contextual_tuples\\[0\\].tenant_id: ',
  ],
  [
    'too many contextual tuples',
    `{${QUESTION},"scope":{"contextual_tuples":[${'{},'.repeat(100)}{}]}}`,
    'BATCH_TOO_LARGE: scope.contextual_tuples: at most 100',
  ],
])('%s is refused, and loads nothing', async (_what, body, wanted) => {
  await using fixture = await started();
  expect((await asked(fixture, 'queryCheck', body)).text).toMatch(new RegExp(`^${wanted}`));
  expect(fixture.source.loads).toBe(0);
});

test('a version of the model that the gateway has not read is an internal error, and counted', async () => {
  let mismatches = 0;
  await using fixture = await started({
    onStats: (stats) => (mismatches += stats.scopeMismatches),
  });
  const { text } = await asked(fixture, 'queryCheck', `{${QUESTION},"scope":{"model_version":1}}`);
  expect(text).toBe('INTERNAL: internal error');
  const other = await asked(fixture, 'queryCheck', `{${QUESTION},"scope":{"tenant_id":"x"}}`);
  expect(other.text).toBe('INTERNAL: internal error');
  await vi.waitFor(() => expect(mismatches).toBe(2));
});

test('what is asked is counted as the general path counts it', async () => {
  const errors: [string, string, number][] = [];
  const decisions = new Map<string, number>();
  await using fixture = await started({
    onStats: (stats) => {
      for (const { rpc, reason, count } of stats.errors) errors.push([rpc, reason, count]);
      for (const { outcome, count } of stats.decisions) {
        decisions.set(outcome, (decisions.get(outcome) ?? 0) + count);
      }
    },
  });
  const bad = QUESTION.replace('"a"', '""');
  await asked(fixture, 'queryBatchCheck', `{"items":[{${QUESTION}},{},{${bad}},{${QUESTION}}]}`);
  await asked(fixture, 'queryCheck', `{${QUESTION.replace('ann', 'bob')}}`);
  await vi.waitFor(() => expect(decisions.get('denied')).toBe(1));
  expect(errors).toEqual([['QueryBatchCheck', 'FIELD_REQUIRED', 2]]);
  expect(decisions.get('allowed')).toBe(2);
});

test('a long batch of questions is answered in parts of its time, beside others, in a buffer of its own', async () => {
  await using fixture = await started({ sliceMs: 1 });
  const { pool } = fixture;
  const other = { projectId: 'p', tenantId: 'other' };
  await checkViewer(pool, scopeOf(other, 0), 'a', 'u');
  const desc = QUERY_METHODS.queryBatchCheck;
  const question = {
    namespace: 'doc',
    objectId: 'a',
    relation: 'viewer',
    subject: { kind: { case: 'userId' as const, value: 'ann' } },
  };
  const items = Array.from({ length: 10_000 }, () => ({ question }));
  const body = toBinary(desc.request, create(desc.request, { items }));
  let isDone = false;
  const scope = scopeOf(SHARD, 1, { readBudget: 10_000_000 });
  const batch = askRaw(pool, scope, 'queryBatchCheck', body).then((answer) => {
    isDone = true;
    return answer;
  });
  let answered = 0;
  while (!isDone) {
    await checkViewer(pool, scopeOf(other, 0), 'a', 'u');
    if (!isDone) answered += 1;
  }
  expect(answered).toBeGreaterThan(5);
  const answer = await batch;
  if (answer.kind !== 'body') throw new Error('it was refused');
  const message = fromBinary(
    desc.answer,
    fillTokenSpace(answer.body, () => TOKEN),
  );
  expect(message.results.filter(({ allowed }) => allowed)).toHaveLength(10_000);
  expect(message.consistencyToken).toBe(TOKEN);
});

test('a caller that goes gets nothing, and the next one is answered', async () => {
  await using fixture = await started();
  const gate = Promise.withResolvers<void>();
  fixture.source.fault = () => gate.promise;
  const onAnswer = vi.fn<(answer: RawAnswer) => void>();
  const expected = { projectId: '', tenantId: '', token: '' };
  const body = Buffer.from(`{${QUESTION}}`);
  fixture.pool.raw('queryCheck', 'json', body, scopeOf(SHARD, 1), expected, onAnswer)?.cancel();
  gate.resolve();
  expect((await asked(fixture, 'queryCheck', `{${QUESTION}}`)).text).toBe(said(true));
  expect(onAnswer).not.toHaveBeenCalled();
});
