import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { call } from '../support/service.ts';
import { sharedInstance } from '../support/shared-instance.ts';
import { byLength } from '../support/test-length.ts';

/*
 * Cases of test/conformance/spicedb.json over HTTP, each in a project with its own model: one of four in short, where
 * test/engine/conformance.test.ts has all of them.
 */
type Check = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject_user_id?: string;
  readonly subject_set?: object;
  readonly want: boolean;
};
type List = {
  readonly namespace: string;
  readonly relation: string;
  readonly subject_user_id: string;
  readonly want: readonly string[];
};
type Case = {
  readonly name: string;
  readonly model_json: object;
  readonly tuples: readonly object[];
  readonly checks: readonly Check[];
  readonly lists: readonly List[];
};

const CASES = JSON.parse(
  readFileSync(new URL('../conformance/spicedb.json', import.meta.url), 'utf8'),
) as readonly Case[];
const WRITES_AT_ONCE = 1000;
const CALLS_AT_ONCE = 16;

const instance = await sharedInstance();

test('there are cases', () => {
  expect(CASES.length).toBeGreaterThan(70);
});

const SOME = CASES.filter((_, index) => index % byLength(4, 1) === 0);

test.each(SOME.map((one, index) => [one.name, one, `${instance.projectId}-${index}`] as const))(
  '%s',
  async (_name, one, projectId) => {
    const scope = await prepare(one, projectId);
    const questions = one.checks.map(({ want, ...question }) => ({
      question: pick(question),
      want,
    }));
    await inParallel(questions, async ({ question, want }) => {
      const answer = await call(instance, 'AuthzService/Check', { ...question, ...scope });
      expect(answer.body, JSON.stringify(question)).toEqual({ allowed: want });
    });
    const users = questions.filter(({ question }) => question['subject_user_id'] !== undefined);
    const items = users.map(({ question }) => question);
    const batch = await call(instance, 'AuthzService/BatchCheck', { items, ...scope });
    const wanted = users.map(({ want }) => ({ allowed: want, error: '' }));
    expect(batch.body['results']).toEqual(wanted);
    await inParallel(one.lists, async ({ namespace, relation, subject_user_id, want }) => {
      const question = { namespace, relation, subject_user_id };
      const answer = await call(instance, 'AuthzService/ListObjects', { ...question, ...scope });
      expect(answer.body, JSON.stringify(question)).toEqual({ object_ids: want });
    });
  },
  60_000,
);

async function prepare(one: Case, projectId: string): Promise<object> {
  const model_json = JSON.stringify(one.model_json);
  const project = { id: projectId, name: one.name, model_json };
  expect((await call(instance, 'AdminService/CreateProject', project)).status).toBe(200);
  let token = '';
  for (let at = 0; at < one.tuples.length; at += WRITES_AT_ONCE) {
    const slice = one.tuples.slice(at, at + WRITES_AT_ONCE);
    const updates = slice.map((tuple) => ({ op: 'OP_INSERT', tuple }));
    const body = { updates, project_id: projectId };
    const written = await call(instance, 'AuthzService/WriteRelationTuples', body);
    expect(written.status, JSON.stringify(written.body)).toBe(200);
    token = String(written.body['consistency_token']);
  }
  return { project_id: projectId, at_least_consistency_token: token };
}

/** Without the notes that the file keeps beside a question. */
function pick(question: Omit<Check, 'want'>): Record<string, unknown> {
  const { namespace, object_id, relation, subject_user_id, subject_set } = question;
  const subject = subject_set === undefined ? { subject_user_id } : { subject_set };
  return { namespace, object_id, relation, ...subject };
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, lane));
}
