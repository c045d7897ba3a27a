import { expect, test } from 'vitest';
import { EventClient, type ClientEvent } from '../../support/event-client.ts';
import { makeWorkspace, runEnded, startRun, startRunner } from '../../support/runner.ts';
import { runCli } from '../cli/cli-process.ts';

const PORTS = `on: workflow_dispatch
run-name: Run \${{ github.run_id }}
concurrency: one-\${{ github.run_id }}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: |
          echo "port $(( 20000 + GITHUB_RUN_ID % 1000 )) $(( \${{ github.repository_id }} % 10 + GITHUB_REPOSITORY_OWNER_ID % 10 + GITHUB_ACTOR_ID % 10 ))"
          echo "$GITHUB_RUN_ID" > mine
      - uses: actions/upload-artifact@v4
        with: { name: mine, path: mine }
      - uses: actions/download-artifact@v4
        with: { name: mine, path: got, run-id: '\${{ github.run_id }}' }
      - run: echo "mine $(cat got/mine)"
`;
const FETCH = `on: { workflow_dispatch: { inputs: { of: { required: true } } } }
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/download-artifact@v4
        with: { name: mine, path: got, run-id: '\${{ inputs.of }}' }
      - run: echo "theirs $(cat got/mine)"
`;
const FILES = { '.github/workflows/ports.yml': PORTS, '.github/workflows/fetch.yml': FETCH };

type Shown = { readonly id: string; readonly numericId: number; readonly name: string };

async function numbered(url: string, workflow: string, of?: string): Promise<Shown> {
  const id = await startRun(url, workflow, of === undefined ? undefined : { of });
  const run = await runEnded(url, id);
  expect(run.conclusion, await textAt(url, `${id}/logs`)).toBe('success');
  return run as unknown as Shown;
}

async function textAt(url: string, path: string): Promise<string> {
  return (await fetch(`${url}/api/runs/${path}`)).text();
}

async function post(url: string, path: string): Promise<Response> {
  return fetch(`${url}/api/runs/${path}`, { method: 'POST' });
}

test('a step calculates with the number; artifacts are found by it, of this run and of another', async () => {
  const { url } = await startRunner(makeWorkspace(FILES, true));
  const run = await numbered(url, 'ports');
  const log = await textAt(url, `${run.id}/logs`);
  expect(log).toMatch(new RegExp(`^port ${20_000 + (run.numericId % 1000)} \\d+$`, 'm'));
  expect(log).toContain(`\nmine ${run.numericId}\n`);
  expect(run.name).toBe(`Run ${run.numericId}`);
  for (const of of [run.id, String(run.numericId)]) {
    const other = await numbered(url, 'fetch', of);
    expect(await textAt(url, `${other.id}/logs`)).toContain(`\ntheirs ${run.numericId}\n`);
  }
});

test('each route finds a run by its number as by its id, and says its id', async () => {
  const { url } = await startRunner(makeWorkspace(FILES, true));
  const { id, numericId } = await numbered(url, 'ports');
  for (const path of [
    '',
    '/logs',
    '/logs?follow=1',
    '/logs/lines?job=a&step=1',
    '/logs/search?job=a&step=1&text=port',
    '/annotations',
    '/summary',
    '/artifacts',
    '/artifacts/mine',
  ]) {
    const [byId, byNumber] = [
      await fetch(`${url}/api/runs/${id}${path}`),
      await fetch(`${url}/api/runs/${numericId}${path}`),
    ];
    expect(byNumber.status, path).toBe(200);
    expect(await byNumber.text(), path).toBe(await byId.text());
  }
  const page = await fetch(`${url}/runs/${numericId}`);
  expect([page.status, (await page.text()).includes(`/api/runs/${id}/artifacts/mine`)]).toEqual([
    200,
    true,
  ]);
  const second = await numbered(url, 'ports');
  const list = await (await fetch(`${url}/api/runs?before=${second.numericId}`)).json();
  expect((list as readonly Shown[]).map((run) => run.id)).toEqual([id]);

  const events = await EventClient.open(`${url}/api/events?runId=${numericId}&types=run.completed`);
  expect(await (await post(url, `${numericId}/cancel`)).json()).toMatchObject({
    error: { code: 'run_not_cancellable' },
  });
  const again = await post(url, `${numericId}/rerun`);
  expect([again.status, again.headers.get('location')]).toEqual([201, `/api/runs/${id}`]);
  expect(await again.json()).toMatchObject({ id, numericId, attempt: 2 });
  const isEnd = ({ event }: ClientEvent): boolean => event === 'run.completed';
  const seen = await events.until((all) => all.some(isEnd));
  expect(seen.find(isEnd)).toMatchObject({ data: { runId: id, run: { numericId, attempt: 2 } } });
  await runEnded(url, id);
  expect(await textAt(url, `${id}/logs`)).toContain(`\nmine ${numericId}\n`);
  const removed = await fetch(`${url}/api/runs/${numericId}`, { method: 'DELETE' });
  expect(removed.status).toBe(204);
  for (const name of [id, numericId]) {
    expect((await fetch(`${url}/api/runs/${name}`)).status).toBe(404);
  }
});

test('the command and the service count on with one another, whoever has the project', async () => {
  const workspace = makeWorkspace(FILES, true);
  const numbers: number[] = [];
  const byCommand = async (...args: readonly string[]): Promise<void> => {
    const { code, stdout } = await runCli(workspace, [...args, '--json']);
    expect(code, stdout).toBe(0);
    const runs = await runCli(workspace, ['runs', '--json', '--limit', '1']);
    numbers.push((JSON.parse(runs.stdout) as Shown).numericId);
  };
  await byCommand('run', 'ports');
  const { url, runner } = await startRunner(workspace);
  numbers.push((await numbered(url, 'ports')).numericId);
  await byCommand('run', 'ports');
  const last = String(numbers[2]);
  expect((await fetch(`${url}/api/runs/${last}`, { method: 'DELETE' })).status).toBe(204);
  await runner.stop();
  await byCommand('run', 'ports');
  // A rerun is no other run.
  await byCommand('rerun', String(numbers[3]));
  const [first = 0] = numbers;
  expect(numbers).toEqual([first, first + 1, first + 2, first + 3, first + 3]);
  const logs = await runCli(workspace, ['logs', String(first + 1)]);
  expect(logs.stdout).toContain(`\nmine ${first + 1}\n`);
  expect((await runCli(workspace, ['logs', last])).stderr).toContain(`there is no run ${last}`);
}, 120_000);
