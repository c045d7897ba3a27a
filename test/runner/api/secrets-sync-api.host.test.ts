import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { makeWorkspace, runEnded, startRun, startRunner } from '../../support/runner.ts';
import { NO_TIMES, TIMES } from '../../support/times.ts';

const SECRET = 'webhook-secret';
const PLANTED = 'pl4nted-s3cret-value';
const USES = `on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    environment: production
    steps:
      - run: echo "token=$TOKEN end"; echo "$TOKEN" | base64; echo "::warning::saw $TOKEN"
        env: { TOKEN: '\${{ secrets.TOKEN }}', REGION: '\${{ vars.REGION }}' }
      - run: test "$REGION" = eu
        env: { REGION: '\${{ vars.REGION }}' }
`;
const PUSHED = `name: Pushed
on:
  push:
    branches: [main, 'release/**']
    paths: ['src/**']
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'echo \${{ github.event.after }} \${{ github.event_name }} \${{ github.actor }}' }] } }
`;
const PULLED = `on: { pull_request: { types: [opened], branches: [main] } }
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'echo pr' }] } }
`;
const DISPATCHED = `on: { repository_dispatch: { types: [deploy] } }
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'echo \${{ github.event.client_payload.what }}' }] } }
`;
const AFTER = `on: { workflow_run: { workflows: [Pushed], types: [completed], branches: [main] } }
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'echo after' }] } }
`;
const FILES = {
  '.github/workflows/after.yml': AFTER,
  '.github/workflows/uses.yml': USES,
  '.github/workflows/pushed.yml': PUSHED,
  '.github/workflows/pulled.yml': PULLED,
  '.github/workflows/dispatched.yml': DISPATCHED,
  '.github/workflows/broken.yml': 'on: push\njobs: {}\n',
};
const JSON_HEADER = { 'content-type': 'application/json' };

let url = '';
let workspace = '';
let logLines: () => readonly Record<string, unknown>[] = () => [];

beforeEach(async () => {
  workspace = makeWorkspace(FILES, true);
  const started = await startRunner(workspace, { RUNNER_WEBHOOK_SECRET: SECRET });
  ({ url, logLines } = started);
});

async function call(method: string, path: string, body?: unknown): Promise<Response> {
  if (body === undefined) return fetch(url + path, { method });
  return fetch(url + path, { method, headers: JSON_HEADER, body: JSON.stringify(body) });
}

async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { code: string } };
  return `${response.status} ${error.code}`;
}

async function json(path: string): Promise<unknown> {
  const response = await fetch(url + path);
  expect(response.status).toBe(200);
  return response.json();
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}

describe('secrets and variables', () => {
  test('are put, listed by name, removed', async () => {
    const created = await call('PUT', '/api/secrets/token', {
      value: PLANTED,
      environment: 'production',
    });
    expect(created.status).toBe(201);
    expect(await created.json()).toMatchObject({
      name: 'TOKEN',
      environment: 'production',
      backend: 'local',
    });
    expect(
      (await call('PUT', '/api/secrets/TOKEN', { value: 'other', env: 'production' })).status,
    ).toBe(200);
    expect((await call('PUT', '/api/secrets/BASE', { value: 'x' })).status).toBe(201);
    expect(await json('/api/secrets?env=production')).toEqual(['TOKEN']);
    expect(await json('/api/secrets')).toEqual(['BASE', 'TOKEN']);
    expect(await json('/api/secrets?detail=1&environment=production')).toMatchObject([
      { name: 'TOKEN', backend: 'local' },
    ]);
    expect(await codeOf(await call('DELETE', '/api/secrets/TOKEN'))).toBe('404 secret_not_found');
    expect((await call('DELETE', '/api/secrets/TOKEN?env=production')).status).toBe(204);
    expect((await call('DELETE', '/api/secrets/BASE', { environment: 'default' })).status).toBe(
      204,
    );
    expect(await json('/api/secrets')).toEqual([]);
    expect((await call('PUT', '/api/variables/REGION', { value: 'eu' })).status).toBe(201);
    expect(await json('/api/variables')).toMatchObject([
      { name: 'REGION', value: 'eu', environment: 'default' },
    ]);
    expect((await call('DELETE', '/api/variables/REGION')).status).toBe(204);
    expect(await codeOf(await call('DELETE', '/api/variables/REGION'))).toBe(
      '404 variable_not_found',
    );
  });

  test('are listed by the backend that has them', async () => {
    for (const [name, backend] of [
      ['HERE', 'local'],
      ['THERE', 'vault'],
    ] as const) {
      const body = { value: 'x', environment: 'e', backend };
      expect((await call('PUT', `/api/secrets/${name}`, body)).status).toBe(201);
    }
    expect(await json('/api/secrets?backend=vault')).toEqual(['THERE']);
    expect(await json('/api/secrets?backend=local&env=e')).toEqual(['HERE']);
    expect(await json('/api/secrets?backend=vault&env=default')).toEqual([]);
    expect(await json('/api/secrets?backend=vault&detail=1')).toMatchObject([
      { name: 'THERE', environment: 'e', backend: 'vault' },
    ]);
    expect(await codeOf(await call('GET', '/api/secrets?backend=safe'))).toBe('422 invalid_value');
  });

  test.each([
    ['PUT', '/api/secrets/1BAD', { value: 'x' }, '422 invalid_name'],
    ['PUT', '/api/secrets/GITHUB_X', { value: 'x' }, '422 invalid_name'],
    ['PUT', '/api/secrets/A%2FB', { value: 'x' }, '422 invalid_name'],
    ['PUT', '/api/secrets/A', { value: '' }, '422 invalid_value'],
    ['PUT', '/api/secrets/A', {}, '400 invalid_request'],
    ['PUT', '/api/secrets/A', { value: 1 }, '400 invalid_request'],
    ['PUT', '/api/secrets/A', { value: 'x', extra: 1 }, '400 invalid_request'],
    ['PUT', '/api/secrets/A', { value: 'x', backend: 'cloud' }, '422 invalid_value'],
    ['PUT', '/api/secrets/A', { value: 'x', backend: 'env' }, '409 backend_read_only'],
    ['PUT', '/api/secrets/A', { value: 'x', environment: 'a\nb' }, '422 invalid_name'],
    ['PUT', '/api/secrets/A', { value: 'x'.repeat(48 * 1024 + 1) }, '422 invalid_value'],
    ['PUT', '/api/variables/A', { value: 'x', backend: 'local' }, '400 invalid_request'],
    ['POST', '/api/secrets/import', { environment: 'x' }, '400 invalid_request'],
    ['POST', '/api/secrets/import', { content: 'A=1', type: 'thing' }, '400 invalid_request'],
  ])('%s %s %j: %s', async (method, path, body, expected) => {
    expect(await codeOf(await call(method, path, body))).toBe(expected);
  });

  test('an import takes what it can and says what not, or nothing at all when strict', async () => {
    const content = '# c\nexport A="1 2"\n1BAD=x\n\nB=two # note\n';
    const strict = await call('POST', '/api/secrets/import?strict=1', { content });
    expect(strict.status).toBe(422);
    expect(await json('/api/secrets')).toEqual([]);
    const response = await call('POST', '/api/secrets/import', { content, environment: 'staging' });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      imported: ['A', 'B'],
      updated: [],
      skipped: [{ line: 3 }],
      type: 'secret',
      environment: 'staging',
    });
    const variables = await call('POST', '/api/secrets/import', {
      content: 'V=1',
      type: 'variable',
    });
    expect(await variables.json()).toMatchObject({ imported: ['V'], type: 'variable' });
    expect(await json('/api/variables')).toMatchObject([{ name: 'V', value: '1' }]);
  });

  test('sync, status and audit answer', async () => {
    await call('PUT', '/api/secrets/A', { value: PLANTED });
    const sync = await call('POST', '/api/secrets/sync');
    expect(sync.status).toBe(200);
    expect(await sync.json()).toMatchObject({
      backends: expect.any(Array) as unknown[],
      mirror: {},
    });
    expect(await json('/api/secrets/status')).toMatchObject({
      encryption: { algorithm: 'AES-256-GCM' },
    });
    const audit = (await json('/api/audit/secrets?limit=10&name=A')) as Record<string, unknown>[];
    expect(audit[0]).toMatchObject({ action: 'set', name: 'A', actor: { ip: '127.0.0.1' } });
    expect(await codeOf(await call('GET', '/api/audit/secrets?limit=0'))).toBe(
      '400 invalid_request',
    );
    const since = (text: string) =>
      call('GET', `/api/audit/secrets?limit=10&name=A&since=${encodeURIComponent(text)}`);
    for (const text of ['yesterday', ...NO_TIMES.filter((one) => !/^[\d-]{10}$/.test(one))]) {
      expect([text, await codeOf(await since(text))]).toEqual([text, '400 invalid_request']);
    }
    for (const [text, seconds] of [
      ...TIMES,
      ['2096-02-29', Infinity],
      ['2000-02-29', 0],
    ] as const) {
      const found = (await (await since(text)).json()) as unknown[];
      expect([text, found.length > 0]).toEqual([text, seconds * 1000 < Date.now()]);
    }
    expect(await codeOf(await since('2099-02-29'))).toBe('400 invalid_request');
  });

  test('a planted secret appears in no answer, event, file, log line or audit', async () => {
    const events = await fetch(`${url}/api/events`);
    let stream = '';
    const reading = (async () => {
      for await (const chunk of events.body ?? []) {
        stream += Buffer.from(chunk).toString();
        if (stream.includes('run.completed')) return;
      }
    })();
    await call('PUT', '/api/secrets/TOKEN', { value: PLANTED, environment: 'production' });
    await call('PUT', '/api/variables/REGION', { value: 'eu' });
    const id = await startRun(url, 'uses');
    expect((await runEnded(url, id)).conclusion).toBe('success');
    await reading;
    const forms = [
      PLANTED,
      Buffer.from(PLANTED).toString('base64').slice(0, 20),
      Buffer.from(`${PLANTED}\n`).toString('base64'),
    ];
    const seen = [stream, JSON.stringify(logLines())];
    for (const path of ['', '/logs', '/annotations', '/summary']) {
      seen.push(await (await fetch(`${url}/api/runs/${id}${path}`)).text());
    }
    for (const path of [
      '/api/secrets',
      '/api/secrets?detail=1',
      '/api/audit/secrets',
      '/api/secrets/status',
      '/api/deployments',
    ]) {
      seen.push(await (await fetch(url + path)).text());
    }
    expect(seen[2]).toContain('token=*** end');
    const files = filesBelow(join(workspace, '.runner'));
    for (const path of files) seen.push(path, readFileSync(path, 'latin1'));
    for (const text of seen) for (const form of forms) expect(text.includes(form)).toBe(false);
    expect(await json('/api/deployments')).toMatchObject([
      { runId: id, environment: 'production', status: 'success', jobId: 'a' },
    ]);
    expect(await json('/api/deployments?environment=none')).toEqual([]);
    const audit = (await json('/api/audit/secrets')) as Record<string, unknown>[];
    expect(audit.some((record) => record['action'] === 'read' && record['runId'] === id)).toBe(
      true,
    );
  });
});

describe('synchronisation', () => {
  test('the configuration is read and replaced; its secret is never shown', async () => {
    expect(await json('/api/sync/config')).toMatchObject({
      enabled: false,
      host: { pollIntervalMs: 60_000 },
      deploymentLog: { enabled: true, issueNumber: 0, environments: [] },
    });
    const config = { enabled: false, host: { owner: 'o', repo: 'r', webhookSecret: PLANTED } };
    const put = await call('PUT', '/api/sync/config', config);
    expect(put.status).toBe(200);
    expect(JSON.stringify(await put.json())).not.toContain(PLANTED);
    expect(await json('/api/sync/config')).toMatchObject({
      host: { owner: 'o', webhookSecret: '********' },
    });
    expect((await call('PUT', '/api/sync/config', { host: { pollIntervalMs: 10 } })).status).toBe(
      422,
    );
    expect(await codeOf(await call('PUT', '/api/sync/config'))).toBe('415 unsupported_media_type');
  });

  test('caches are empty lists before the first pull, which is refused while sync is off', async () => {
    for (const kind of ['issues', 'discussions', 'wiki', 'releases']) {
      const response = await fetch(`${url}/api/sync/${kind}`);
      expect(await response.json()).toEqual([]);
      expect(response.headers.get('x-synced-at')).toBeNull();
    }
    expect(await json('/api/sync/audit')).toEqual([]);
    expect(await json('/api/sync/audit?kind=pull')).toEqual([]);
    expect(await codeOf(await fetch(`${url}/api/sync/audit?kind=x`))).toBe('400 invalid_request');
    expect(await json('/api/sync/status')).toMatchObject({ enabled: false });
    expect(await json('/api/deployments')).toEqual([]);
    expect(await codeOf(await call('POST', '/api/sync/github'))).toBe('412 sync_disabled');
    expect(await codeOf(await call('POST', '/api/sync/github', { only: ['x'] }))).toBe(
      '400 invalid_request',
    );
    expect(await codeOf(await call('POST', '/api/sync/pr', { nope: 1 }))).toBe(
      '400 invalid_request',
    );
    expect(await codeOf(await call('POST', '/api/sync/pr', {}))).toBe('412 remote_missing');
    expect(await codeOf(await fetch(`${url}/api/deployments?status=x`))).toBe(
      '400 invalid_request',
    );
    expect(await codeOf(await fetch(`${url}/api/sync/issues?limit=x`))).toBe('400 invalid_request');
  });
});

describe('the inbox', () => {
  let delivery = 0;

  async function deliver(
    event: string,
    payload: unknown,
    more: Record<string, string> = {},
  ): Promise<Response> {
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const signature = createHmac('sha256', SECRET).update(body).digest('hex');
    delivery += 1;
    return fetch(`${url}/api/sync/inbox`, {
      method: 'POST',
      headers: {
        ...JSON_HEADER,
        'x-host-signature-256': `sha256=${signature}`,
        'x-host-event': event,
        'x-host-delivery': `delivery-${delivery}`,
        ...more,
      },
      body,
    });
  }

  const PUSH = {
    ref: 'refs/heads/main',
    /** The commit that the workspace is at. */
    get after(): string {
      return execFileSync('git', ['rev-parse', 'HEAD'], { cwd: workspace }).toString().trim();
    },
    sender: { login: 'octo' },
    commits: [{ added: ['src/a.ts'], modified: [], removed: [] }],
  };

  test('a push starts the workflows whose branch and path filters match', async () => {
    const response = await deliver('push', PUSH);
    expect(response.status).toBe(202);
    const body = (await response.json()) as { runs: string[] };
    expect(body).toMatchObject({
      accepted: true,
      event: 'push',
      runs: [expect.any(String) as string],
    });
    const run = await runEnded(url, body.runs[0] ?? '');
    expect(run).toMatchObject({
      fileName: 'pushed.yml',
      conclusion: 'success',
      trigger: { event: 'push', ref: 'refs/heads/main' },
    });
    const log = await (await fetch(`${url}/api/runs/${body.runs[0]}/logs`)).text();
    expect(log).toContain(`${PUSH.after} push octo`);
  });

  test.each([
    ['push', { ref: 'refs/heads/feature' }],
    ['push', { commits: [{ added: ['docs/a.md'] }] }],
    ['push', { deleted: true, after: '0'.repeat(40) }],
    ['push', { ref: 'refs/tags/v1' }],
    ['pull_request', { action: 'closed', pull_request: { base: { ref: 'main' } } }],
    ['pull_request', { action: 'opened', pull_request: { base: { ref: 'other' } } }],
    ['repository_dispatch', { action: 'test' }],
    ['issues', { action: 'opened' }],
    [
      'workflow_run',
      { action: 'completed', workflow: { name: 'Other' }, workflow_run: { head_branch: 'main' } },
    ],
    [
      'workflow_run',
      { action: 'completed', workflow: { name: 'Pushed' }, workflow_run: { head_branch: 'x' } },
    ],
    [
      'workflow_run',
      { action: 'requested', workflow: { name: 'Pushed' }, workflow_run: { head_branch: 'main' } },
    ],
  ])('%s %j starts nothing', async (event, given) => {
    const payload = event === 'push' ? { ...PUSH, ...given } : given;
    const response = await deliver(event, payload);
    expect(response.status).toBe(202);
    expect(await response.json()).toMatchObject({ accepted: true, runs: [] });
  });

  test('pull requests and dispatches start theirs; a form body counts as well', async () => {
    const opened = await deliver('pull_request', {
      action: 'opened',
      pull_request: {
        number: 1,
        base: { ref: 'main', sha: PUSH.after, repo: { full_name: 'o/r' } },
        head: { sha: PUSH.after, repo: { full_name: 'o/r' } },
      },
    });
    expect(((await opened.json()) as { runs: string[] }).runs).toHaveLength(1);
    const form = `payload=${encodeURIComponent(JSON.stringify({ action: 'deploy', client_payload: { what: 'this' } }))}`;
    const dispatched = await deliver('repository_dispatch', form, {
      'content-type': 'application/x-www-form-urlencoded',
    });
    const { runs } = (await dispatched.json()) as { runs: string[] };
    await runEnded(url, runs[0] ?? '');
    expect(await (await fetch(`${url}/api/runs/${runs[0]}/logs`)).text()).toContain('this');
  });

  test('the end of a workflow starts those that wait for it by name', async () => {
    const payload = {
      action: 'completed',
      workflow: { name: 'Pushed' },
      workflow_run: { head_branch: 'main', head_sha: 'e'.repeat(40) },
    };
    const response = await deliver('workflow_run', payload);
    expect(((await response.json()) as { runs: string[] }).runs).toHaveLength(1);
  });

  test('what is unsigned, wrongly signed or seen before starts nothing', async () => {
    expect(await codeOf(await deliver('push', PUSH, { 'x-host-signature-256': '' }))).toBe(
      '401 invalid_signature',
    );
    expect(
      await codeOf(
        await deliver('push', PUSH, { 'x-host-signature-256': `sha256=${'0'.repeat(64)}` }),
      ),
    ).toBe('401 invalid_signature');
    expect(await codeOf(await deliver('push', '{"a":'))).toBe('400 invalid_json');
    expect((await deliver('ping', { zen: 'x' })).status).toBe(200);
    expect((await deliver('push', PUSH, { 'x-host-delivery': 'same' })).status).toBe(202);
    expect(await (await deliver('push', PUSH, { 'x-host-delivery': 'same' })).json()).toMatchObject(
      { duplicate: true },
    );
    // The delivery id is not signed: the signature gives a replay away.
    expect(
      await (await deliver('push', PUSH, { 'x-host-delivery': 'other' })).json(),
    ).toMatchObject({ duplicate: true });
    expect((await json('/api/runs')) as unknown[]).toHaveLength(1);
    const audit = (await json('/api/sync/audit')) as { kind: string }[];
    expect(audit.every(({ kind }) => kind === 'webhook')).toBe(true);
  });
});

test('state lies in a folder that git ignores but for the vault', () => {
  expect(readFileSync(join(workspace, '.runner/.gitignore'), 'utf8')).toBe(
    '*\n!vault.json\n!actions.lock\n',
  );
  expect(statSync(join(workspace, '.runner')).mode & 0o777).toBe(0o700);
  for (const path of filesBelow(join(workspace, '.runner'))) {
    if (!path.endsWith('.gitignore')) expect(statSync(path).mode & 0o077).toBe(0);
  }
  expect(existsSync(join(workspace, '.runner/idempotency.jsonl'))).toBe(true);
});
