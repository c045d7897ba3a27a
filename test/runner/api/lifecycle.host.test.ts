import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EventClient } from '../../support/event-client.ts';
import { startProcess } from '../../support/runner-process.ts';
import {
  makeWorkspace,
  rawRequest,
  runEnded,
  startRun,
  startRunner,
} from '../../support/runner.ts';

const SLEEP = `on: workflow_dispatch
concurrency: one
jobs:
  nap:
    runs-on: ubuntu-latest
    steps: [{ run: 'echo started; for i in $(seq 600); do sleep 0.1; done' }]
`;
const QUICK =
  'on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo hi }] } }\n';
const FILES = { '.github/workflows/sleep.yml': SLEEP, '.github/workflows/quick.yml': QUICK };

test('SIGTERM cancels runs, tells streams, exits with 0; queued runs go on after the next start', async () => {
  const workspace = makeWorkspace(FILES);
  const first = await startProcess(workspace, { RUNNER_MAX_CONCURRENT_RUNS: '1' });
  const client = await EventClient.open(`${first.url}/api/events`);
  const running = await startRun(first.url, 'sleep');
  await client.untilType('step.log');
  const queued = await startRun(first.url, 'quick');
  first.child.kill('SIGTERM');
  await client.untilType('run.completed');
  await client.until(() => false);
  const last = client.events.findLast(({ event }) => event === 'run.completed');
  expect(last?.data).toMatchObject({ runId: running, run: { conclusion: 'cancelled' } });
  expect(await first.ended).toBe(0);

  const second = await startProcess(workspace);
  expect(await runEnded(second.url, queued)).toMatchObject({
    status: 'completed',
    conclusion: 'success',
  });
  expect(await runEnded(second.url, running)).toMatchObject({ status: 'cancelled' });
  const annotations = await fetch(`${second.url}/api/runs/${running}/annotations`);
  expect(JSON.stringify(await annotations.json())).toContain('runner stopped');
  second.child.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('while it stops, health is 503 and nothing new begins', async () => {
  const workspace = makeWorkspace({
    '.github/workflows/stubborn.yml': SLEEP.replace('echo started;', "trap '' INT; echo started;"),
    ...FILES,
  });
  const { url, runner } = await startRunner(workspace);
  const client = await EventClient.open(`${url}/api/events`);
  await startRun(url, 'stubborn');
  await client.untilType('step.log');
  const stopping = runner.stop();
  const health = await fetch(`${url}/health`);
  expect(health.status).toBe(503);
  expect(await health.json()).toEqual({ status: 'shutting_down' });
  const refused = await fetch(`${url}/api/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"workflow":"quick"}',
  });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({ error: { code: 'shutting_down' } });
  await stopping;
  await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed');
});

test('a clone that has only the vault has its secrets at once, and the audit says how', async () => {
  const workspace = makeWorkspace(FILES);
  const env = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'gatehouse-config-')) };
  const first = await startRunner(workspace, {}, undefined, env);
  const put = await fetch(`${first.url}/api/secrets/DEEP`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ value: 'v4ulted', backend: 'vault' }),
  });
  expect(put.status).toBe(201);
  await first.runner.stop();
  for (const name of readdirSync(join(workspace, '.runner'))) {
    if (name !== 'vault.json') rmSync(join(workspace, '.runner', name), { recursive: true });
  }
  const second = await startRunner(workspace, {}, undefined, env);
  expect(await (await fetch(`${second.url}/api/secrets`)).json()).toEqual(['DEEP']);
  expect(await (await fetch(`${second.url}/api/audit/secrets`)).json()).toMatchObject([
    { action: 'sync', name: 'DEEP', backend: 'vault', result: 'pulled' },
  ]);
});

test('a second runner on the same workspace is refused', async () => {
  const workspace = makeWorkspace(FILES);
  await startRunner(workspace);
  await expect(startRunner(workspace)).rejects.toThrow('.runner');
});

test('wrong settings end the process with code 2 and every problem', async () => {
  const failing = startProcess(makeWorkspace(FILES), {
    RUNNER_MAX_QUEUED_RUNS: 'many',
    RUNNER_TYPO: '1',
  });
  await expect(failing).rejects.toThrow('RUNNER_TYPO: no such setting');
  await expect(startProcess('/no/such/folder')).rejects.toThrow('is not a folder');
});

test('metrics count runs, jobs and lines on their own port, and nothing by default', async () => {
  const workspace = makeWorkspace(FILES);
  const { url, runner } = await startRunner(workspace, { RUNNER_METRICS_PORT: '0' });
  expect((await fetch(`${url}/metrics`)).status).toBe(404);
  await runEnded(url, await startRun(url, 'quick'));
  const response = await fetch(`http://127.0.0.1:${runner.metricsPort}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4');
  const text = await response.text();
  expect(text).toContain('runner_runs_total{conclusion="success"} 1\n');
  expect(text).toContain('runner_runs_total{conclusion="failure"} 0\n');
  expect(text).toContain('runner_jobs_total{conclusion="success"} 1\n');
  expect(text).toMatch(/^runner_log_lines_total 1$/m);
  expect(text).toMatch(/^runner_active_runs 0$/m);
  expect(text).toMatch(/^runner_run_duration_seconds_count 1$/m);
  const rebound = `GET /metrics HTTP/1.1\r\nHost: rebound.example:${runner.metricsPort}\r\n\r\n`;
  expect(await rawRequest(runner.metricsPort ?? 0, rebound)).toMatch(/^HTTP\/1.1 403 /);
});
