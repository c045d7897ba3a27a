import { expect, test } from 'vitest';
import type { StartRequest } from '../../../src/runner/model/ports.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { createBench } from '../support/scheduler-bench.ts';
import { ScriptedExecutor } from '../support/scripted-executor.ts';

const identity = {
  repository: 'Acme/tool',
  serverUrl: 'https://code.example',
  apiUrl: 'https://code.example/api',
  graphqlUrl: 'https://code.example/graphql',
  token: '',
};
const WORKFLOWS = {
  'w.yml':
    'on: [issues, push, schedule, workflow_dispatch]\njobs: { a: { runs-on: x, steps: [{ run: ok }] } }\n',
};
/** Sixteen digits: more than any id of the host, and exact in every script. */
const MADE_UP = /^1\d{15}$/;

/** `github` of a run of each of these requests. */
async function contextsOf(
  requests: readonly Omit<StartRequest, 'workflow'>[],
  repository = identity.repository,
): Promise<readonly JsonObject[]> {
  const executor = new ScriptedExecutor();
  await using bench = await createBench({
    executor,
    workflows: WORKFLOWS,
    overrides: { identity: { ...identity, repository } },
  });
  for (const request of requests) {
    const { run } = await bench.service.start({ workflow: 'w', isForced: true, ...request });
    await bench.events.completed(run.id);
  }
  return executor.requests.map(({ contexts }) => contexts.github);
}

function idsOf(github: JsonObject | undefined): readonly unknown[] {
  return [github?.['repository_id'], github?.['repository_owner_id'], github?.['actor_id']];
}

test('ids are those of the event, as texts, if they are of this repository and account', async () => {
  const repository = { id: 41, full_name: 'acme/Tool', owner: { login: 'acme', id: 42 } };
  const sender = { login: 'octo', id: 43 };
  const found = await contextsOf([
    { event: 'issues', payload: { repository, sender } },
    { event: 'issues', payload: { repository: { id: 7, owner: { id: 8 } }, sender: { id: 9 } } },
    { event: 'push', isSelected: true, payload: { repository, sender }, actor: 'octo' },
    { payload: { inputs: {}, repository, sender } },
  ]);
  expect(found.map(idsOf)).toEqual([
    ['41', '42', '43'],
    ['7', '8', '9'],
    ['41', '42', '43'],
    ['41', '42', '43'],
  ]);
});

test('an event that names none, or another, leaves numbers that are made of the names', async () => {
  const other = { id: 41, full_name: 'acme/other', owner: { login: 'acme', id: 42 } };
  const [made, byDispatch, ofOther, ofTexts, mine] = await contextsOf([
    { event: 'schedule', isSelected: true, payload: { schedule: '* * * * *' }, actor: 'octo' },
    { actor: 'octo' },
    {
      event: 'issues',
      isSelected: true,
      payload: { repository: other, sender: { login: 'x', id: 1 } },
      actor: 'octo',
    },
    {
      event: 'issues',
      isSelected: true,
      payload: { repository: { id: '41' }, sender: { id: -1 } },
      actor: 'octo',
    },
    { event: 'push', actor: 'acme' },
  ]);
  const ids = idsOf(made);
  for (const id of ids) expect(id).toMatch(MADE_UP);
  expect(new Set(ids).size).toBe(3);
  for (const found of [byDispatch, ofOther, ofTexts]) expect(idsOf(found)).toEqual(ids);
  // The actor is the owner, whose name has another case.
  expect(idsOf(mine)).toEqual([ids[0], ids[1], ids[1]]);
  // What the event says is the same.
  for (const found of [byDispatch, mine]) {
    const [repository, owner, actor] = idsOf(found).map(Number);
    expect(found?.['event']).toMatchObject({
      repository: { id: repository, owner: { id: owner } },
      sender: { id: actor },
    });
  }
  // The same in every clone, another one for another repository.
  const [clone] = await contextsOf([{ actor: 'octo' }], 'acme/TOOL');
  expect(idsOf(clone)).toEqual(ids);
  const [fork] = await contextsOf([{ actor: 'octo' }], 'you/tool');
  expect(idsOf(fork)[0]).not.toBe(ids[0]);
  expect(idsOf(fork)[2]).toBe(ids[2]);
});
