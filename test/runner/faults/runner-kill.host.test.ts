import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Artifact, WorkflowRun } from '../../../src/runner/model/run.ts';
import { EventClient, type ClientEvent } from '../../support/event-client.ts';
import { startProcess } from '../../support/runner-process.ts';
import { makeWorkspace, runEnded } from '../../support/runner.ts';
import { byLength } from '../../support/test-length.ts';
import { processesOf, randomFrom } from '../support/kill-tools.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const KILLS = Number(process.env['KILLS'] ?? byLength(1, 3));
/** After the runs were asked for, at most so long until the kill. */
const KILL_WITHIN_MS = 2_500;
const SECRET = 'pl4nted-by-the-kill-test';

const FILES = {
  'sub/data.txt': 'some data\n'.repeat(1_000),
  '.github/workflows/long.yml': `on: workflow_dispatch
jobs:
  nap:
    runs-on: x
    steps:
      - run: 'setsid sleep 300 & for i in $(seq 3000); do echo tick $i; sleep 0.01; done'
      - { if: always(), run: echo end }
`,
  '.github/workflows/chatty.yml': `on: workflow_dispatch
jobs: { talk: { runs-on: x, steps: [{ run: seq 20000 }, { run: seq 20000 }] } }
`,
  '.github/workflows/grouped.yml': `on: workflow_dispatch
concurrency: { group: g, queue: max }
jobs: { g: { runs-on: x, steps: [{ run: 'echo begin; sleep 0.2; echo end' }] } }
`,
  '.github/workflows/ship.yml': `on: workflow_dispatch
jobs:
  ship:
    runs-on: x
    environment: production
    strategy: { matrix: { n: [1, 2] } }
    steps:
      - { uses: actions/upload-artifact@v4, with: { name: 'data-\${{ matrix.n }}', path: sub } }
      - { run: 'test "$S" = ${SECRET} && test "$V" = v', env: { S: '\${{ secrets.S }}', V: '\${{ vars.V }}' } }
`,
};
/** What is asked for in each round, in this order. */
const STARTS = [
  'ship',
  'long',
  'chatty',
  'grouped',
  'grouped',
  'ship',
  'grouped',
  'chatty',
  'long',
  'ship',
  'grouped',
];
/** The long ones end by a cancel. */
const isLong = (run: WorkflowRun): boolean => run.fileName === 'long.yml';

type Known = { readonly ids: Set<string>; readonly keys: Map<string, string> };

async function call(url: string, method: string, path: string, body?: unknown, key?: string) {
  return fetch(url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function json<T>(url: string, path: string): Promise<T> {
  const response = await fetch(url + path);
  expect(response.status, path).toBe(200);
  return (await response.json()) as T;
}

/** Starts runs until the process is gone; an answer that came counts, whatever happens next. */
async function startAll(url: string, round: number, known: Known): Promise<void> {
  for (const [index, workflow] of STARTS.entries()) {
    const key = `k-${round}-${index}`;
    try {
      const response = await call(url, 'POST', '/api/runs', { workflow }, key);
      expect(response.status).toBe(201);
      const { id } = (await response.json()) as WorkflowRun;
      known.ids.add(id);
      known.keys.set(key, `${workflow} ${id}`);
    } catch (error) {
      if (error instanceof TypeError || error instanceof SyntaxError) return;
      throw error;
    }
  }
}

/** Everything that was told before the kill is there after it. */
async function expectTold(url: string, told: readonly ClientEvent[]): Promise<number> {
  const lines = new Map<string, string[]>();
  const shortened = new Set<unknown>();
  for (const { event, data } of told) {
    if (event === 'gap') shortened.add(data['runId']);
    if (event === 'run.completed') {
      const { status, conclusion, attempt } = data['run'] as WorkflowRun;
      const path = `/api/runs/${String(data['runId'])}`;
      expect(await json(url, path)).toMatchObject({ status, conclusion, attempt });
    }
    if (event !== 'step.log') continue;
    const key = `${String(data['runId'])}/logs?job=${encodeURIComponent(String(data['jobId']))}&step=${String(data['stepNumber'])}`;
    const ofStep = lines.get(key) ?? [];
    ofStep.push(String(data['line']));
    lines.set(key, ofStep);
  }
  let compared = 0;
  for (const [key, announced] of lines) {
    if (shortened.has(key.split('/')[0])) continue;
    const text = await (await fetch(`${url}/api/runs/${key}`)).text();
    const kept = text.split('\n').slice(2, 2 + announced.length);
    expect(kept.join('\n')).toBe(announced.join('\n'));
    compared += announced.length;
  }
  return compared;
}

async function expectArtifacts(url: string, run: WorkflowRun): Promise<void> {
  for (const artifact of await json<Artifact[]>(url, `/api/runs/${run.id}/artifacts`)) {
    const response = await fetch(`${url}/api/runs/${run.id}/artifacts/${artifact.name}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.byteLength).toBe(artifact.size);
    const digest = createHash('sha256').update(bytes).digest('hex');
    expect(response.headers.get('etag')).toBe(`"${digest}"`);
  }
}

/** The audit is one chain, the ledger has nothing open, secrets and variables are all there. */
async function expectStores(url: string): Promise<void> {
  expect(await json(url, '/api/secrets?env=production')).toEqual(['S']);
  expect(await json(url, '/api/variables')).toMatchObject([{ name: 'V', value: 'v' }]);
  type Linked = { readonly hash: string; readonly prevHash: string };
  const audit = await json<Linked[]>(url, '/api/audit/secrets?limit=1000');
  for (const [index, record] of audit.entries()) {
    const older = audit[index + 1];
    if (older !== undefined) expect(record.prevHash).toBe(older.hash);
  }
  const open = (await json<{ status: string }[]>(url, '/api/deployments')).filter(({ status }) =>
    ['pending', 'in_progress'].includes(status),
  );
  expect(open).toEqual([]);
}

/** All runs, ended: those that wait go on by themselves, the long ones are cancelled. */
async function untilEnded(url: string): Promise<readonly WorkflowRun[]> {
  const runs = await json<WorkflowRun[]>(url, '/api/runs?limit=1000');
  for (const run of runs) {
    if (run.conclusion === undefined && isLong(run))
      await call(url, 'POST', `/api/runs/${run.id}/cancel`);
  }
  for (const run of runs) await runEnded(url, run.id);
  return json<WorkflowRun[]>(url, '/api/runs?limit=1000');
}

function expectNothingLeft(workspace: string, sandboxes: string): void {
  expect(readdirSync(join(workspace, '.runner', 'jobs'))).toEqual([]);
  expect(readdirSync(sandboxes)).toEqual([]);
  const worktrees = execFileSync('git', ['worktree', 'list', '--porcelain'], { cwd: workspace });
  expect(worktrees.toString().match(/^worktree /gm)).toHaveLength(1);
  expect(readdirSync(join(workspace, '.git', 'refs'))).not.toContain('runner');
}

describe(`kill -9 of the whole service (SEED=${SEED})`, () => {
  test(
    'nothing is lost, nothing stays in progress, nothing is left behind',
    async () => {
      const random = randomFrom(SEED);
      const workspace = makeWorkspace(FILES, true);
      const sandboxes = mkdtempSync(join(tmpdir(), 'gatehouse-sandboxes-'));
      const env = {
        RUNNER_MAX_CONCURRENT_RUNS: '3',
        RUNNER_SANDBOX_DIR: sandboxes,
        XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'gatehouse-config-')),
      };
      const known: Known = { ids: new Set(), keys: new Map() };
      let compared = 0;
      let interrupted = 0;
      for (let round = 0; round < KILLS; round += 1) {
        const first = await startProcess(workspace, env);
        const secret = { value: SECRET, environment: 'production' };
        await call(first.url, 'PUT', '/api/secrets/S', secret);
        await call(first.url, 'PUT', '/api/variables/V', { value: 'v' });
        const client = await EventClient.open(`${first.url}/api/events`);
        const starting = startAll(first.url, round, known);
        await client.untilType('step.log');
        const { promise, resolve } = Promise.withResolvers<void>();
        setTimeout(resolve, random() * KILL_WITHIN_MS);
        await promise;
        first.child.kill('SIGKILL');
        await Promise.all([first.ended, client.until(() => false), starting]);

        const second = await startProcess(workspace, env);
        const begun = new Set(
          client.events
            .filter(({ event }) => event === 'run.started')
            .map(({ data }) => data['runId']),
        );
        const ended = new Set(
          client.events
            .filter(({ event }) => event === 'run.completed')
            .map(({ data }) => data['runId']),
        );
        const now = await json<WorkflowRun[]>(second.url, '/api/runs?limit=1000');
        for (const id of known.ids) expect(now.map((run) => run.id)).toContain(id);
        for (const run of now.filter(({ id }) => begun.has(id) && !ended.has(id))) {
          expect(run.completedAt, `${run.fileName} ${run.id}`).toBeDefined();
          if (run.conclusion === 'cancelled') interrupted += 1;
        }
        compared += await expectTold(second.url, client.events);
        for (const [key, told] of known.keys) {
          const [workflow = '', id] = told.split(' ');
          const again = await call(second.url, 'POST', '/api/runs', { workflow }, key);
          expect(await again.json()).toMatchObject({ id });
        }
        const runs = await untilEnded(second.url);
        for (const run of runs) {
          expect(run.jobs.every((job) => job.status === 'completed')).toBe(true);
          expect(run.conclusion, run.id).toMatch(/^(success|cancelled)$/);
          await expectArtifacts(second.url, run);
        }
        await expectStores(second.url);
        second.child.kill('SIGTERM');
        expect(await second.ended, second.log()).toBe(0);
        expectNothingLeft(workspace, sandboxes);
        expect(await processesOf(workspace)).toEqual([]);
        expect(first.log() + second.log()).not.toContain(SECRET);
      }
      // The kills met something.
      expect(interrupted).toBeGreaterThan(0);
      expect(compared).toBeGreaterThan(0);
    },
    Math.max(KILLS, 2) * 60_000,
  );
});
