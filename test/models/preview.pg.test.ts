import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PreviewModelResponse } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { docModel, modelCall, modelClient } from '../support/model-calls.ts';
import { call } from '../support/service.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

const { instance } = await instanceForFile({ GATEWAY_RECORD_QUESTIONS_EVERY: '1' });
const client = modelClient(instance);

const PLAIN = docModel({ viewer: {}, editor: {}, banned: {} });
const EDITORS_VIEW = docModel({
  viewer: { union: [{ this: {} }, { computed: 'editor' }] },
  editor: {},
  banned: {},
});
const NOT_BANNED = docModel({
  viewer: { exclusion: { include: { this: {} }, exclude: { computed: 'banned' } } },
  editor: {},
  banned: {},
});

type Tuple = readonly [object: string, relation: string, user: string];

async function makeProject(id: string, modelJson: string, tuples: readonly Tuple[]): Promise<void> {
  const made = await call(instance, 'AdminService/CreateProject', {
    id,
    name: id,
    model_json: modelJson,
  });
  expect(made).toMatchObject({ status: 200 });
  const updates = tuples.map(([object_id, relation, user_id]) => ({
    op: 'OP_INSERT',
    tuple: { namespace: 'doc', object_id, relation, subject: { user_id } },
  }));
  const written = await call(instance, 'AuthzService/WriteRelationTuples', {
    project_id: id,
    updates,
  });
  expect(written).toMatchObject({ status: 200 });
}

const given = (...tuples: Tuple[]) =>
  tuples.map(([objectId, relation, subjectUserId]) => ({
    namespace: 'doc',
    objectId,
    relation,
    subjectUserId,
  }));

async function preview(
  projectId: string,
  json: string,
  questions: Record<string, unknown>,
  changesMax = 0,
): Promise<readonly PreviewModelResponse[]> {
  const model = { form: { case: 'json' as const, value: json } };
  const answers: PreviewModelResponse[] = [];
  for await (const answer of client.previewModel({ projectId, model, questions, changesMax })) {
    answers.push(answer);
  }
  return answers;
}

/** The changed answers as text, and the last message. */
async function changesOf(...of: Parameters<typeof preview>) {
  const answers = await preview(...of);
  const changes = answers
    .flatMap((answer) => answer.changes)
    .map(({ question, allowedBefore, allowedAfter }) => {
      const { objectId, relation, subjectUserId } = question ?? {
        objectId: '',
        relation: '',
        subjectUserId: '',
      };
      return `${objectId}#${relation}@${subjectUserId} ${allowedBefore}>${allowedAfter}`;
    });
  const last = answers.at(-1);
  if (last === undefined) throw new Error('a preview says something');
  return { changes, last };
}

describe('given questions', () => {
  test('those that change their answer are told, with counts, in their order', async () => {
    await makeProject('given', EDITORS_VIEW, [
      ['d', 'editor', 'eve'],
      ['d', 'viewer', 'vic'],
      ['d', 'banned', 'vic'],
    ]);
    const questions = {
      given: given(
        ['d', 'viewer', 'eve'],
        ['d', 'viewer', 'vic'],
        ['d', 'editor', 'eve'],
        ['d', 'banned', 'bo'],
      ),
    };
    const none = await changesOf('given', EDITORS_VIEW, questions);
    expect([none.changes, none.last.done]).toEqual([[], true]);
    const { changes, last } = await changesOf('given', NOT_BANNED, questions);
    expect(changes).toEqual(['d#viewer@eve true>false', 'd#viewer@vic true>false']);
    expect(last).toMatchObject({
      answered: 4,
      total: 4,
      newAllows: 0,
      newDenies: 2,
      failed: 0,
      done: true,
    });
  });

  test('what was previewed stays nowhere: the model in force decides as before', async () => {
    await makeProject('apart', PLAIN, [['d', 'editor', 'eve']]);
    const asked = {
      project_id: 'apart',
      namespace: 'doc',
      object_id: 'd',
      relation: 'viewer',
      subject_user_id: 'eve',
    };
    const allowed = async () => (await call(instance, 'AuthzService/Check', asked)).body['allowed'];
    expect(await allowed()).toBe(false);
    const strange = docModel({
      viewer: { computed: 'never-heard-of' },
      'never-heard-of': { computed: 'editor' },
      editor: {},
    });
    for (const model of [EDITORS_VIEW, strange]) {
      const { changes } = await changesOf('apart', model, { given: given(['d', 'viewer', 'eve']) });
      expect(changes).toEqual(['d#viewer@eve false>true']);
      expect(await allowed()).toBe(false);
    }
  });

  test('counts go on where changes are cut off, and the answer says so', async () => {
    await makeProject('cut', PLAIN, [['d', 'editor', 'eve']]);
    const questions = {
      given: given(...Array.from({ length: 700 }, () => ['d', 'viewer', 'eve'] as const)),
    };
    const answers = await preview('cut', EDITORS_VIEW, questions, 10);
    expect(answers.flatMap((answer) => answer.changes)).toHaveLength(10);
    expect(answers.at(-1)).toMatchObject({ newAllows: 700, truncated: true, done: true });
    // Progress on the way.
    expect(answers.length).toBeGreaterThan(2);
    expect(answers.map(({ answered }) => answered)).toEqual(
      answers.map(({ answered }) => answered).toSorted((a, b) => a - b),
    );
  });

  test('a question whose evaluation exceeds the budget has failed, and is neither allowed nor denied', async () => {
    await makeProject('budget', PLAIN, [['d', 'editor', 'eve']]);
    await call(instance, 'AdminService/UpdateProject', { id: 'budget', max_check_reads: 100 });
    const relations: Record<string, unknown> = { viewer: {}, editor: {} };
    for (let i = 0; i < 200; i++)
      relations[`r${i}`] = i === 199 ? {} : { union: [{}, { computed: `r${i + 1}` }] };
    relations['viewer'] = { union: [{}, { computed: 'r0' }] };
    const { last } = await changesOf('budget', docModel(relations), {
      given: given(['d', 'viewer', 'eve']),
    });
    expect(last).toMatchObject({ answered: 1, failed: 1, newAllows: 0, newDenies: 0 });
  });

  test.each([
    [{}, 'questions'],
    [{ given: [{ namespace: 'doc' }] }, 'questions.given[0].object_id'],
    [{ sampled: 100_001 }, 'questions.sampled'],
    [{ recorded: -1 }, 'questions.recorded'],
    [{ sampled: 1, tenantId: 'a b' }, 'questions.tenant_id'],
  ])('%j is refused, naming the field', async (questions, field) => {
    await expect(preview('default', PLAIN, questions)).rejects.toThrow(field);
  });
});

describe('sampled questions', () => {
  test('are drawn of stored objects and users, the same for the same seed', async () => {
    const tuples = Array.from({ length: 60 }, (_, i): Tuple => [
      `d${i % 7}`,
      i % 2 ? 'viewer' : 'editor',
      `u${i % 11}`,
    ]);
    await makeProject('sampled', PLAIN, tuples);
    const questions = { sampled: 1_200, seed: 42n };
    const one = await changesOf('sampled', EDITORS_VIEW, questions);
    expect(one.last).toMatchObject({ answered: 1_200, total: 1_200, seed: 42n, done: true });
    expect(one.last.newAllows).toBeGreaterThan(50);
    expect(one.last.newDenies).toBe(0);
    expect((await changesOf('sampled', EDITORS_VIEW, questions)).changes).toEqual(one.changes);
    const other = await changesOf('sampled', EDITORS_VIEW, { sampled: 1_200 });
    expect(other.last.seed).not.toBe(0n);
    expect(other.changes).not.toEqual(one.changes);
    const stored = new Set(tuples.map(([object, , user]) => `${object}@${user}`));
    for (const change of one.changes) expect(change).toMatch(/^d[0-6]#viewer@u\d+ false>true$/);
    expect(one.changes.some((text) => stored.has(text.replace(/#viewer| false>true/g, '')))).toBe(
      true,
    );
  });

  test('an empty shard has none', async () => {
    await makeProject('nothing', PLAIN, [['d', 'editor', 'eve']]);
    const { last } = await changesOf('nothing', PLAIN, { sampled: 10, tenantId: 'empty' });
    expect(last).toMatchObject({ answered: 0, total: 0, done: true });
  });
});

test('recorded questions are those that were asked, each once, with their context', async () => {
  await makeProject('recorded', PLAIN, [['d', 'editor', 'eve']]);
  const asked = {
    project_id: 'recorded',
    namespace: 'doc',
    object_id: 'd',
    relation: 'viewer',
    subject_user_id: 'eve',
  };
  for (let i = 0; i < 3; i++) await call(instance, 'AuthzService/Check', asked);
  await call(instance, 'AuthzService/Check', {
    ...asked,
    tenant_id: 'other',
    context: { ip: '10.0.0.1' },
  });
  const items = [{ namespace: 'doc', object_id: 'd', relation: 'editor', subject_user_id: 'eve' }];
  await call(instance, 'AuthzService/BatchCheck', { project_id: 'recorded', items });
  const set = {
    ...asked,
    subject_user_id: '',
    subject_set: { namespace: 'group', object_id: 'g', relation: 'member' },
  };
  await call(instance, 'AuthzService/Check', set);
  const { changes, last } = await changesOf('recorded', EDITORS_VIEW, { recorded: 100 });
  expect(last).toMatchObject({ answered: 3, total: 3, newAllows: 1 });
  expect(changes).toEqual(['d#viewer@eve false>true']);
  expect((await changesOf('recorded', EDITORS_VIEW, { recorded: 1 })).last.total).toBe(1);
  expect((await changesOf('apart', EDITORS_VIEW, { recorded: 1 })).last).toBeDefined();
});

describe('the guard of WriteModel', () => {
  const write = (projectId: string, json: string, guard: unknown) =>
    modelCall(instance, 'WriteModel', { project_id: projectId, model: { json }, guard });
  const viewers = [
    { namespace: 'doc', object_id: 'd', relation: 'viewer', subject_user_id: 'eve' },
  ];

  test('refuses a model by which a deny becomes an allow, and names the question', async () => {
    await makeProject('guarded', PLAIN, [['d', 'editor', 'eve']]);
    const guard = { questions: { given: viewers, sampled: 50 }, refuse_new_allows: true };
    const refused = await write('guarded', EDITORS_VIEW, guard);
    expect(refused).toMatchObject({
      status: 412,
      body: { details: [{ debug: { reason: 'MODEL_GUARD_REFUSED' } }] },
    });
    expect(refused.body['message']).toContain('doc:d#viewer@user:eve (deny becomes allow)');
    const { body } = await modelCall(instance, 'GetModel', { project_id: 'guarded' });
    expect(body).toMatchObject({ version: { version: '1' }, model_json: PLAIN });
    expect(await write('guarded', NOT_BANNED, guard)).toMatchObject({ status: 200 });
    // The other way round it is the other guard's.
    await modelCall(instance, 'WriteModel', {
      project_id: 'guarded',
      model: { json: EDITORS_VIEW },
    });
    expect(
      await write('guarded', PLAIN, {
        ...guard,
        refuse_new_allows: false,
        refuse_new_denies: true,
      }),
    ).toMatchObject({ status: 412 });
    expect(await write('guarded', PLAIN, guard)).toMatchObject({ status: 200 });
  });

  test('names three questions, however often each is asked', async () => {
    const users = ['ann', 'bea', 'cem', 'dov'];
    await makeProject(
      'often',
      PLAIN,
      users.map((user): Tuple => ['d', 'editor', user]),
    );
    const asked = (subject_user_id: string) => ({ ...viewers[0], subject_user_id });
    const textOf = (user: string) => `doc:d#viewer@user:${user} (deny becomes allow)`;
    const often = [...Array.from({ length: 40 }, () => asked('ann')), ...users.map(asked)];
    const guard = { questions: { given: often }, refuse_new_allows: true };
    const { body } = await write('often', EDITORS_VIEW, guard);
    const three = users.slice(0, 3).map(textOf).join('; ');
    expect(body['message']).toBe(`guard: 44 of 44 answers would become allows: ${three}`);
    const twice = { ...guard, questions: { given: [asked('bea'), asked('bea')] } };
    expect((await write('often', EDITORS_VIEW, twice)).body['message']).toBe(
      `guard: 2 of 2 answers would become allows: ${textOf('bea')}`,
    );
    // The same of another tenant is another question.
    const editor = { namespace: 'doc', object_id: 'd', relation: 'editor' };
    await call(instance, 'AuthzService/WriteRelationTuples', {
      project_id: 'often',
      tenant_id: 'west',
      updates: [{ op: 'OP_INSERT', tuple: { ...editor, subject: { user_id: 'bea' } } }],
    });
    const west = { ...asked('bea'), tenant_id: 'west' };
    const both = { ...guard, questions: { given: [asked('bea'), west, west] } };
    expect((await write('often', EDITORS_VIEW, both)).body['message']).toBe(
      `guard: 3 of 3 answers would become allows: ${textOf('bea')}; ` +
        'doc:d#viewer@user:bea of tenant "west" (deny becomes allow)',
    );
  });

  test('that refuses nothing, or asks nothing, is a mistake', async () => {
    expect(await write('guarded', PLAIN, { questions: { given: viewers } })).toMatchObject({
      status: 400,
    });
    expect(await write('guarded', PLAIN, { refuse_new_allows: true })).toMatchObject({
      status: 400,
    });
  });
});

const RELATIONS = ['viewer', 'editor', 'banned'] as const;
const OBJECTS = ['a', 'b'];
const USERS = ['u0', 'u1', 'u2'];
const rewrites = fc.oneof(
  fc.constant({}),
  fc.constantFrom({ computed: 'banned' }),
  fc.constantFrom({ union: [{ this: {} }, { computed: 'banned' }] }),
  fc.constantFrom({ exclusion: { include: { this: {} }, exclude: { computed: 'banned' } } }),
  fc.constantFrom({ intersection: [{ this: {} }, { computed: 'banned' }] }),
);
const models = fc
  .record({ viewer: rewrites, editor: rewrites })
  .map((relations) => docModel({ ...relations, banned: {} }));
const tuples = fc.uniqueArray(
  fc.tuple(fc.constantFrom(...OBJECTS), fc.constantFrom(...RELATIONS), fc.constantFrom(...USERS)),
  { minLength: 1, maxLength: 12, size: 'max', selector: (tuple) => tuple.join() },
);

test(`a preview is what Check says under each model (seed ${seed})`, async () => {
  let worlds = 0;
  await fc.assert(
    fc.asyncProperty(models, models, tuples, async (before, after, stored) => {
      const id = `p${seed}-${worlds++}`;
      await makeProject(id, before, stored);
      const all = OBJECTS.flatMap((object) =>
        RELATIONS.flatMap((relation) => USERS.map((user): Tuple => [object, relation, user])),
      );
      const { changes } = await changesOf(id, after, { given: given(...all) });
      const answers = async () => {
        const items = all.map(([object_id, relation, subject_user_id]) => ({
          namespace: 'doc',
          object_id,
          relation,
          subject_user_id,
        }));
        const { body } = await call(instance, 'AuthzService/BatchCheck', { project_id: id, items });
        return (body['results'] as { allowed: boolean }[]).map(({ allowed }) => allowed);
      };
      const was = await answers();
      expect(
        await modelCall(instance, 'WriteModel', { project_id: id, model: { json: after } }),
      ).toMatchObject({ status: 200 });
      const is = await answers();
      const expected = all.flatMap(([object, relation, user], i) =>
        was[i] === is[i] ? [] : [`${object}#${relation}@${user} ${was[i]}>${is[i]}`],
      );
      expect(changes).toEqual(expected);
    }),
    { numRuns: 25 * FUZZ_RUNS, seed },
  );
});
