/** Pull requests and pushes by webhook: which commit, which workflow file, which rights. The runner is real. */
import { createHmac } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Runner } from '../../../src/runner/runner.ts';
import { afterLastTest, runEnded, startRunner, type WhenDone } from '../../support/runner.ts';
import { inLong, inShort } from '../../support/test-length.ts';
import { callCli } from '../cli/cli-process.ts';
import { commitAll, git, put } from '../support/git-project.ts';

const HOOK_SECRET = 'webhook-secret';
const PLANTED = 'pl4nted-s3cret-value';
let base = '';
let project = '';
let hosted = '';
let url = '';
let delivery = 0;
let running: Runner | undefined;
/** What the project is at, which no event names. */
let local = '';

const SHOW = `
    permissions: { contents: read }
    steps:
      - run: |
          echo "file=$(cat which) sha=\${{ github.sha }} ref=\${{ github.ref }} name=\${{ github.ref_name }}"
          echo "base=\${{ github.base_ref }} head=\${{ github.head_ref }} at=$(git rev-parse HEAD)"
          echo "secret=[$S] token=[$T] var=[\${{ vars.V }}]"
        env: { S: '\${{ secrets.S }}', T: '\${{ github.token }}\${{ secrets.GITHUB_TOKEN }}' }
`;
function workflow(name: string, on: string): string {
  return `name: ${name}\non: ${on}\njobs:\n  show:\n    runs-on: ubuntu-latest${SHOW}`;
}

/** Made once with two dozen calls of git; each test works in a copy. */
const template = realpathSync(mkdtempSync(join(tmpdir(), 'pulls-')));
/**
 * `hosted`: the repository on the host, with a branch `main`, a pull request from a branch (1) and one
 * from a fork (2), both of which change the workflow. `project`: an older clone with commits of its own.
 */
beforeAll(() => {
  [hosted, project] = [join(template, 'host', 'octo', 'app.git'), join(template, 'project')];
  const work = join(template, 'work');
  git(template, 'init', '-q', '--bare', '-b', 'main', hosted);
  git(template, 'clone', '-q', hosted, work);
  git(work, 'switch', '-q', '-c', 'main');
  put(work, {
    which: 'base\n',
    'other.txt': 'one\n',
    '.gitignore': '.runner\n',
    '.github/workflows/pr.yml': workflow('of the base', 'pull_request'),
    '.github/workflows/target.yml': workflow('of the base', 'pull_request_target'),
    '.github/workflows/push.yml': workflow('of the base', 'push'),
    '.github/workflows/review.yml': workflow('of the base', 'pull_request_review'),
    '.github/workflows/after.yml': workflow('of the base', 'workflow_run'),
  });
  commitAll(work, 'base');
  git(work, 'push', '-q', 'origin', 'main');
  git(template, 'clone', '-q', hosted, project);
  for (const [branch, text] of [
    ['change', 'branch'],
    ['evil', 'fork'],
  ] as const) {
    git(work, 'switch', '-q', '-c', branch, 'main');
    put(work, {
      which: `${text}\n`,
      '.github/workflows/pr.yml': workflow(`of the ${text}`, 'pull_request'),
      '.github/workflows/target.yml': workflow(`of the ${text}`, 'pull_request_target'),
    });
    commitAll(work, text);
  }
  git(work, 'push', '-q', 'origin', 'change', 'change:refs/pull/1/head', 'evil:refs/pull/2/head');
  git(work, 'switch', '-q', 'main');
  put(work, { 'other.txt': 'two\n' });
  commitAll(work, 'main goes on');
  git(work, 'push', '-q', 'origin', 'main');
  put(project, {
    which: 'project\n',
    '.github/workflows/pr.yml': workflow('of the project', 'pull_request'),
    '.github/workflows/target.yml': workflow('of the project', 'pull_request_target'),
  });
  local = commitAll(project, 'not pushed');
});
afterAll(() => rmSync(template, { recursive: true, force: true }));

/** A copy for the test, or for all that call `startShared`. */
function copyTemplate(copyDone: WhenDone): void {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pulls-')));
  const own = base;
  copyDone(() => rmSync(own, { recursive: true, force: true }));
  cpSync(template, base, { recursive: true });
  [hosted, project] = [join(base, 'host', 'octo', 'app.git'), join(base, 'project')];
  for (const clone of ['project', 'work']) {
    const config = join(base, clone, '.git', 'config');
    writeFileSync(config, readFileSync(config, 'utf8').replaceAll(template, base));
  }
}
beforeEach(() => copyTemplate(onTestFinished));

async function start(
  env: Readonly<Record<string, string>> = {},
  runnerDone?: WhenDone,
): Promise<void> {
  const settings = {
    RUNNER_WEBHOOK_SECRET: HOOK_SECRET,
    RUNNER_HOST_GIT_URL: `file://${join(base, 'host')}`,
    RUNNER_HOST_TOKEN: 'host-token',
    RUNNER_SECRETS_KEY: 'a key that outlives a restart',
    ...env,
  };
  const started = await startRunner(project, settings, undefined, {}, runnerDone);
  ({ url } = started);
  running = started.runner;
  await call('PUT', '/api/sync/config', { host: { owner: 'octo', repo: 'app' } });
  await call('PUT', '/api/secrets/S', { value: PLANTED });
  await call('PUT', '/api/variables/V', { value: 'v' });
}

const whenDone = afterLastTest();
let shared: readonly [base: string, hosted: string, project: string, url: string] | undefined;

/** One runner for all tests that change neither it nor the repositories. */
async function startShared(): Promise<void> {
  if (shared === undefined) {
    copyTemplate(whenDone);
    await start({}, whenDone);
    shared = [base, hosted, project, url];
  }
  [base, hosted, project, url] = shared;
}

/** The runner ends, and another one begins with what is on disk. */
async function restart(): Promise<void> {
  await running?.stop();
  await start();
}

async function call(method: string, path: string, body: unknown = {}): Promise<Response> {
  const token = readFileSync(join(project, '.runner', 'api-token'), 'utf8').trim();
  return fetch(url + path, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  });
}

type Delivered = {
  readonly runs: readonly string[];
  readonly problems?: readonly { readonly workflow: string; readonly code: string }[];
};

async function deliver(event: string, payload: unknown): Promise<Delivered> {
  delivery += 1;
  // One that is the same as another is a replay.
  const body = JSON.stringify({ ...(payload as object), delivery });
  const response = await fetch(`${url}/api/sync/inbox`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-host-signature-256': `sha256=${createHmac('sha256', HOOK_SECRET).update(body).digest('hex')}`,
      'x-host-event': event,
      'x-host-delivery': `pr-${delivery}`,
    },
    body,
  });
  expect(response.status).toBe(202);
  return (await response.json()) as Delivered;
}

function pull(number: 1 | 2, more: object = {}): Record<string, unknown> {
  const own = { id: 1, full_name: 'octo/app' };
  const isFork = number === 2;
  return {
    action: 'synchronize',
    number,
    sender: { login: 'someone' },
    pull_request: {
      number,
      user: { id: 77, login: 'someone' },
      author_association: 'NONE',
      merge_commit_sha: null,
      base: { ref: 'main', sha: git(hosted, 'rev-parse', 'main'), repo: own },
      head: {
        ref: isFork ? 'evil' : 'change',
        sha: git(hosted, 'rev-parse', `refs/pull/${number}/head`),
        repo: isFork ? { id: 2, full_name: 'someone/app' } : own,
      },
      ...more,
    },
  };
}

type Run = Awaited<ReturnType<typeof runEnded>> & {
  readonly workflow: string;
  readonly trigger: { readonly ref: string; readonly sha: string };
  readonly waitingFor?: string;
};

async function ended(id = ''): Promise<{ readonly run: Run; readonly log: string }> {
  const run = (await runEnded(url, id)) as Run;
  const log = await (await fetch(`${url}/api/runs/${id}/logs`)).text();
  const notes = await (await fetch(`${url}/api/runs/${id}/annotations`)).text();
  return { run, log: log + notes };
}

async function get(id: string): Promise<Run> {
  return (await (await fetch(`${url}/api/runs/${id}`)).json()) as Run;
}

describe('a pull request from a branch', () => {
  inShort(test)(
    'runs the merge of base and head, with the workflow file that the merge has',
    async () => {
      await start();
      // Which repository this is, and with that the token, is known from then on.
      await restart();
      const { runs } = await deliver('pull_request', pull(1));
      expect(runs).toHaveLength(1);
      const { run, log } = await ended(runs[0]);
      expect(run.conclusion, log).toBe('success');
      const { sha } = run.trigger;
      expect(run).toMatchObject({
        workflow: 'of the branch',
        trigger: { ref: 'refs/pull/1/merge' },
      });
      expect(log).toContain(`file=branch sha=${sha} ref=refs/pull/1/merge name=1/merge`);
      expect(log).toContain(`base=main head=change at=${sha}`);
      expect(log).toContain('secret=[***] token=[***] var=[v]');
      expect(log).not.toContain(PLANTED);
      // Nothing of it is in the project.
      expect(() => git(project, 'cat-file', '-e', sha)).toThrow('failed');
      expect(git(project, 'for-each-ref', 'refs/runner')).toBe('');
      expect(git(project, 'rev-parse', 'HEAD')).toBe(local);
    },
  );

  inLong(test)('can be run again, also after a restart', async () => {
    await start();
    const { runs } = await deliver('pull_request', pull(1));
    const [id = ''] = runs;
    await ended(id);
    await restart();
    expect((await call('POST', `/api/runs/${id}/rerun`)).status).toBe(201);
    const { run, log } = await ended(id);
    expect(run, log).toMatchObject({ conclusion: 'success', attempt: 2 });
    expect(existsSync(join(project, '.runner', 'run-commits', id))).toBe(true);
    await call('DELETE', `/api/runs/${id}`);
    expect(existsSync(join(project, '.runner', 'run-commits', id))).toBe(false);
  });

  inLong(test)('runs the merge of the host where that is here, and of these two', async () => {
    const [base1, head] = [git(hosted, 'rev-parse', 'main'), git(hosted, 'rev-parse', 'change')];
    git(project, 'fetch', '-q', 'origin');
    const tree = git(project, 'merge-tree', '--write-tree', base1, head);
    const made = git(project, 'commit-tree', '-p', base1, '-p', head, '-m', 'by the host', tree);
    const stale = git(
      project,
      'commit-tree',
      '-p',
      local,
      '-p',
      head,
      '-m',
      'of another base',
      tree,
    );
    await start();
    const first = await deliver('pull_request', pull(1, { merge_commit_sha: made }));
    expect((await ended(first.runs[0])).run.trigger.sha).toBe(made);
    const second = await deliver('pull_request', pull(1, { merge_commit_sha: stale }));
    expect((await ended(second.runs[0])).run.trigger.sha).not.toBe(stale);
  });

  inShort(test)('that conflicts starts nothing and says so', async () => {
    put(join(base, 'work'), { which: 'conflict\n' });
    commitAll(join(base, 'work'), 'conflict');
    git(join(base, 'work'), 'push', '-q', 'origin', 'main');
    await start();
    const { runs, problems } = await deliver('pull_request', pull(1));
    expect(runs).toEqual([]);
    expect(problems).toMatchObject([{ workflow: '', code: 'merge_conflict' }]);
    expect(await (await fetch(`${url}/api/runs`)).json()).toEqual([]);
    const audit = await (await fetch(`${url}/api/sync/audit`)).text();
    expect(audit).toContain('merge_conflict');
  });

  inShort(test)('whose head or base cannot be had is refused', async () => {
    await startShared();
    for (const side of ['head', 'base']) {
      const payload = pull(1) as { pull_request: Record<string, { sha: string }> };
      payload.pull_request[side] = { ...payload.pull_request[side], sha: '1'.repeat(40) };
      const { runs, problems } = await deliver('pull_request', payload);
      expect(runs, side).toEqual([]);
      expect(problems, side).toMatchObject([{ code: 'invalid_ref' }]);
    }
  });

  inLong(test)(
    'and a review of it get their commits from the remote of the project where nothing is configured',
    async () => {
      await start();
      await call('PUT', '/api/sync/config', {});
      const { runs } = await deliver('pull_request', pull(1));
      expect((await ended(runs[0])).run.workflow).toBe('of the branch');
      const review = await deliver('pull_request_review', pull(1));
      expect((await ended(review.runs[0])).run.trigger.ref).toBe('refs/pull/1/merge');
    },
  );
});

inShort(test)(
  'pull_request_target runs the base and its workflow file, with secrets, also for a fork',
  async () => {
    await startShared();
    const { runs } = await deliver('pull_request_target', pull(2));
    expect(runs).toHaveLength(1);
    const { run, log } = await ended(runs[0]);
    const sha = git(hosted, 'rev-parse', 'main');
    expect(run, log).toMatchObject({
      conclusion: 'success',
      workflow: 'of the base',
      trigger: { ref: 'refs/heads/main', sha },
    });
    expect(log).toContain(`file=base sha=${sha} ref=refs/heads/main name=main`);
    expect(log).toContain('secret=[***]');
  },
);

describe('a push', () => {
  inShort(test)(
    'runs the commit that was pushed, fetched if need be, with its workflow file',
    async () => {
      await startShared();
      const after = git(hosted, 'rev-parse', 'change');
      const { runs } = await deliver('push', { ref: 'refs/heads/change', after, commits: [] });
      const { run, log } = await ended(runs[0]);
      expect(run.conclusion, log).toBe('success');
      expect(log).toContain(`file=branch sha=${after} ref=refs/heads/change`);
      expect(() => git(project, 'cat-file', '-e', after)).toThrow('failed');
    },
  );

  inLong(test)(
    'of a tag runs its commit; of one that cannot be had starts nothing, and never HEAD',
    async () => {
      git(join(base, 'work'), 'tag', '-a', 'v1', '-m', 'v1', 'change');
      git(join(base, 'work'), 'push', '-q', 'origin', 'v1');
      await start();
      const after = git(hosted, 'rev-parse', 'refs/tags/v1');
      const { runs } = await deliver('push', { ref: 'refs/tags/v1', after, commits: [] });
      const { log } = await ended(runs[0]);
      expect(log).toContain(`sha=${git(hosted, 'rev-parse', 'change')} ref=refs/tags/v1`);
      const lost = { ref: 'refs/heads/main', after: '1'.repeat(40), commits: [] };
      const refused = await deliver('push', lost);
      expect(refused.runs).toEqual([]);
      expect(refused.problems).toMatchObject([{ code: 'invalid_ref' }]);
    },
  );
});

inShort(test)('a workflow_run never runs the head that it tells of', async () => {
  await startShared();
  const { runs } = await deliver('workflow_run', {
    action: 'completed',
    workflow: { name: 'x' },
    workflow_run: { head_branch: 'evil', head_sha: git(hosted, 'rev-parse', 'refs/pull/2/head') },
  });
  const { log } = await ended(runs[0]);
  expect(log).toContain('file=project');
});

describe('a pull request from a fork', () => {
  inShort(test)('waits for approval, then runs without secrets and token', async () => {
    await start();
    await restart();
    const { runs } = await deliver('pull_request', pull(2));
    const [id = ''] = runs;
    expect(await get(id)).toMatchObject({ status: 'queued', waitingFor: 'approval' });
    expect(await (await fetch(`${url}/runs/${id}`)).text()).toContain('data-action="approve"');
    const approved = await callCli(project, ['approve', id]);
    expect(approved).toMatchObject({ code: 0, stdout: `Approved ${id}\n` });
    const { run, log } = await ended(id);
    expect(run.conclusion, log).toBe('success');
    expect(run.waitingFor).toBeUndefined();
    expect(log).toContain('file=fork');
    expect(log).toContain('secret=[] token=[]');
    expect(log).not.toContain(PLANTED);
    const again = await call('POST', `/api/runs/${id}/approve`);
    expect([
      again.status,
      ((await again.json()) as { error: { code: string } }).error.code,
    ]).toEqual([409, 'run_not_waiting']);
  });

  inLong(test)('that was approved once may be run again', async () => {
    await startShared();
    const { runs } = await deliver('pull_request', pull(2));
    const [id = ''] = runs;
    await call('POST', `/api/runs/${id}/approve`);
    await ended(id);
    await call('POST', `/api/runs/${id}/rerun`);
    expect((await ended(id)).run).toMatchObject({ attempt: 2, conclusion: 'success' });
  });

  inShort(test)(
    'is what comes from no repository, or from one with another id or name',
    async () => {
      await startShared();
      for (const head of [
        // As when the fork was deleted.
        { repo: null },
        { repo: { id: 3, full_name: 'octo/app' } },
        { repo: { id: 1, full_name: 'someone/app' } },
      ]) {
        const payload = pull(1) as { pull_request: { head: object } };
        payload.pull_request.head = { ...payload.pull_request.head, ...head };
        const { runs } = await deliver('pull_request', payload);
        expect(await get(runs[0] ?? ''), JSON.stringify(head)).toMatchObject({
          waitingFor: 'approval',
        });
      }
    },
  );

  inLong(test)(
    'waits across a restart, and can be cancelled; a rerun of it waits again',
    async () => {
      await start();
      const { runs } = await deliver('pull_request', pull(2));
      const [id = ''] = runs;
      await restart();
      expect(await get(id)).toMatchObject({ status: 'queued', waitingFor: 'approval' });
      const second = await call('POST', `/api/runs/${id}/cancel`);
      expect(second.status).toBe(202);
      expect((await ended(id)).run).toMatchObject({ conclusion: 'cancelled' });
      expect((await get(id)).waitingFor).toBeUndefined();
      await call('POST', `/api/runs/${id}/rerun`);
      expect(await get(id)).toMatchObject({ status: 'queued', waitingFor: 'approval' });
    },
  );

  inShort(test)('is refused where that is set, and its target is not', async () => {
    await start({ RUNNER_FORK_APPROVAL: 'refuse' });
    const { runs, problems } = await deliver('pull_request', pull(2));
    expect({ runs, problems }).toMatchObject({ runs: [], problems: [{ code: 'forks_refused' }] });
    expect((await deliver('pull_request_target', pull(2))).runs).toHaveLength(1);
  });

  inLong(test)(
    'first-time: waits until one of the author was approved, or the host knows the author',
    async () => {
      await start({ RUNNER_FORK_APPROVAL: 'first-time' });
      const known = await deliver('pull_request', pull(2, { author_association: 'CONTRIBUTOR' }));
      expect((await get(known.runs[0] ?? '')).waitingFor).toBeUndefined();
      const first = await deliver('pull_request', pull(2));
      expect((await get(first.runs[0] ?? '')).waitingFor).toBe('approval');
      await ended(known.runs[0]);
      await call('POST', `/api/runs/${first.runs[0]}/approve`);
      await ended(first.runs[0]);
      const next = await deliver('pull_request', pull(2));
      expect((await get(next.runs[0] ?? '')).waitingFor).toBeUndefined();
      const other = await deliver('pull_request', pull(2, { user: { id: 78 } }));
      expect((await get(other.runs[0] ?? '')).waitingFor).toBe('approval');
      expect(readFileSync(join(project, '.runner', 'approved-authors'), 'utf8')).toBe('77\n');
    },
  );

  inLong(test)('those that wait take no place of others in the queue', async () => {
    await start({ RUNNER_MAX_QUEUED_RUNS: '2' });
    for (let count = 0; count < 2; count += 1) await deliver('pull_request', pull(2));
    const body = JSON.stringify(pull(2));
    const response = await fetch(`${url}/api/sync/inbox`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-host-signature-256': `sha256=${createHmac('sha256', HOOK_SECRET).update(body).digest('hex')}`,
        'x-host-event': 'pull_request',
        'x-host-delivery': 'one-more',
      },
      body,
    });
    expect(response.status).toBe(429);
    expect((await deliver('pull_request', pull(1))).runs).toHaveLength(1);
  });
});
