import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  afterLastTest,
  makeWorkspace,
  runEnded,
  startRunner,
  type TestRunner,
  type WhenDone,
} from '../../support/runner.ts';
import { byLength, inShort } from '../../support/test-length.ts';

const SHOW = `name: Show
on:
  push: { branches: [main, 'release/**', '!release/old'], tags: ['v*'], paths: ['src/**', '!src/docs/**'] }
  pull_request: { branches-ignore: [legacy], types: [opened, closed], paths-ignore: ['**.md'] }
  pull_request_target:
  release: { types: [published] }
  workflow_run: { workflows: [Build], types: [completed] }
  repository_dispatch: { types: [deploy] }
  schedule: [{ cron: '30 5 * * 1-5', timezone: Europe/Paris }, { cron: '0 0 1 1 *' }]
  workflow_dispatch: { inputs: { level: { type: choice, options: [low, high] } } }
jobs:
  show:
    runs-on: ubuntu-latest
    steps:
      - env:
          SEEN: \${{ github.event_name }}|\${{ github.ref }}|\${{ github.ref_name }}|\${{ github.ref_type }}|\${{ github.base_ref }}|\${{ github.head_ref }}|\${{ github.event.action }}|\${{ github.event.schedule }}|\${{ github.actor }}
        run: |
          echo "seen $SEEN"
          echo "env $GITHUB_EVENT_NAME|$GITHUB_REF|$GITHUB_BASE_REF|$GITHUB_HEAD_REF"
          echo "file $(tr -d ' \\n' < "$GITHUB_EVENT_PATH")"
      - { if: "github.event_name == 'pull_request' && github.event.pull_request.draft == false", run: echo is-pr }
  main-only: { if: "github.ref == 'refs/heads/main'", runs-on: ubuntu-latest, steps: [{ run: echo main-only }] }
`;
/** With the triggers of the above, and does nothing. */
const IDLE = SHOW.replace('name: Show', 'name: Idle').replace('runs-on', 'if: false\n    runs-on');
/** Never does anything: its triggers alone count. */
const quick = (on: string): string =>
  `on: ${on}\njobs: { none: { if: false, runs-on: ubuntu-latest, steps: [{ run: exit 1 }] } }\n`;

type Answer = {
  readonly status: number;
  readonly warning: string | null;
  readonly body: {
    readonly id: string;
    readonly trigger: { readonly event: string; readonly ref: string };
    readonly error: {
      readonly code: string;
      readonly message: string;
      readonly details: Readonly<Record<string, string>>;
    };
  };
};

async function post(url: string, body: object): Promise<Answer> {
  const response = await fetch(`${url}/api/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const warning = response.headers.get('x-runner-warning');
  return { status: response.status, warning, body: (await response.json()) as Answer['body'] };
}

async function newestOf(url: string): Promise<string | undefined> {
  const runs = await (await fetch(`${url}/api/runs?limit=1`)).json();
  return (runs as readonly { readonly id: string }[])[0]?.id;
}

async function logOf({ url }: TestRunner, body: object): Promise<string> {
  const { status, body: run } = await post(url, body);
  expect([status, run.error]).toEqual([201, undefined]);
  const { conclusion } = await runEnded(url, run.id);
  expect(conclusion).toBe('success');
  return (await fetch(`${url}/api/runs/${run.id}/logs`)).text();
}

const start = (
  files: Readonly<Record<string, string>>,
  whenDone?: WhenDone,
): Promise<TestRunner> => {
  const named = Object.entries(files).map(([name, text]) => [`.github/workflows/${name}`, text]);
  const all = { 'src/a.js': '1', ...Object.fromEntries(named) };
  return startRunner(makeWorkspace(all, true, whenDone), {}, undefined, {}, whenDone);
};

/** A runner for the rows of all tables. */
let shared: TestRunner;
const whenDone = afterLastTest();
beforeAll(async () => {
  shared = await start({ 'show.yml': SHOW, 'idle.yml': IDLE }, whenDone);
});

describe('an event of POST /api/runs', { timeout: 180_000 }, () => {
  inShort(test)(
    'is what contexts, variables, the file of the event and conditions see',
    async () => {
      const runner = shared;
      const push = await logOf(runner, { workflow: 'show', event: 'push' });
      expect(push).toContain('seen push|refs/heads/main|main|branch|||||local\n');
      expect(push).toContain('env push|refs/heads/main||\n');
      expect(push).toMatch(/"before":"0{40}","after":"[0-9a-f]{40}"/);
      expect(push).toContain('"head_commit":{"id":"');
      expect(push).toContain('\nmain-only\n');
      expect(push).not.toContain('\nis-pr\n');
      const tag = { ref: 'refs/tags/v1', sender: { login: 'ann' } };
      expect(await logOf(runner, { workflow: 'show', event: 'push', payload: tag })).toContain(
        'seen push|refs/tags/v1|v1|tag|||||ann\n',
      );
      const payload = {
        action: 'closed',
        pull_request: { number: 7, base: { ref: 'main' }, head: { ref: 'topic' } },
      };
      const pull = await logOf(runner, {
        workflow: 'show',
        event: 'pull_request',
        payload,
        force: true,
      });
      expect(pull).toContain(
        'seen pull_request|refs/pull/7/merge|7/merge|branch|main|topic|closed||local\n',
      );
      expect(pull).toContain('env pull_request|refs/pull/7/merge|main|topic\n');
      expect(pull).toContain('"number":7');
      expect(pull).toContain('\nis-pr\n');
      expect(pull).not.toContain('\nmain-only\n');
      const release = { release: { tag_name: 'v2' } };
      expect(
        await logOf(runner, { workflow: 'show', event: 'release', payload: release }),
      ).toContain('seen release|refs/tags/v2|v2|tag|');
      const cron = { schedule: '0 0 1 1 *' };
      expect(await logOf(runner, { workflow: 'show', event: 'schedule', payload: cron })).toContain(
        '|0 0 1 1 *|local\n',
      );
      expect(await logOf(runner, { workflow: 'show', event: 'schedule' })).toContain(
        '|30 5 * * 1-5|',
      );
    },
  );

  inShort(test)(
    'without one a run is of workflow_dispatch, with the inputs of the payload',
    async () => {
      const runner = shared;
      expect((await post(runner.url, { workflow: 'show' })).body.trigger.event).toBe(
        'workflow_dispatch',
      );
      const payload = { inputs: { level: 'high' }, ref: 'refs/heads/other' };
      const log = await logOf(runner, { workflow: 'show', payload });
      expect(log).toContain('seen workflow_dispatch|refs/heads/other|other|branch|');
      expect(log).toContain('"inputs":{"level":"high"}');
      const wrong = await post(runner.url, {
        workflow: 'show',
        payload: { inputs: { level: 'x' } },
      });
      expect([wrong.status, wrong.body.error.code]).toEqual([422, 'invalid_inputs']);
      const both = {
        workflow: 'show',
        payload: { inputs: { level: 'x' } },
        inputs: { level: 'low' },
      };
      expect((await post(runner.url, both)).status).toBe(201);
      const pull = await post(runner.url, { workflow: 'show', payload: { pull_request: {} } });
      expect(pull.warning).toContain('the run is one of workflow_dispatch');
    },
  );

  const filters: readonly (readonly [string | undefined, string, object])[] = [
    ['branches', 'push', { ref: 'refs/heads/topic' }],
    ['branches', 'push', { ref: 'refs/heads/release/old' }],
    ['tags', 'push', { ref: 'refs/tags/x1' }],
    [
      'paths',
      'push',
      { commits: [{ added: ['README.md'], modified: ['src/docs/x'], removed: [] }] },
    ],
    ['branches', 'pull_request', { pull_request: { base: { ref: 'legacy' } } }],
    ['types', 'pull_request', { action: 'labeled' }],
    ['types', 'pull_request_target', { action: 'closed' }],
    ['types', 'release', { action: 'edited', release: { tag_name: 'v1' } }],
    ['workflows', 'workflow_run', { workflow: { name: 'Other' } }],
    ['types', 'repository_dispatch', { action: 'build' }],
    ['cron', 'schedule', { schedule: '0 0 * * *' }],
    [undefined, 'issues', {}],
  ];
  test.each(filters.filter((_, index) => (index % 3 === 1) === byLength(false, true)))(
    'a filter %s that %s does not pass is 422, unless it is forced',
    async (filter, event, payload) => {
      const { url } = shared;
      const before = await newestOf(url);
      const { status, body } = await post(url, { workflow: 'idle', event, payload });
      expect([status, body.error.code]).toEqual([422, 'event_not_matched']);
      expect([body.error.details['event'], body.error.details['filter']]).toEqual([event, filter]);
      expect(await newestOf(url)).toBe(before);
      const forced = await post(url, { workflow: 'idle', event, payload, force: true });
      expect([forced.status, forced.body.trigger.event]).toEqual([201, event]);
      expect(forced.warning).toContain('all the same');
    },
  );

  const passing: readonly (readonly [string, object])[] = [
    ['push', { ref: 'refs/heads/release/1' }],
    ['push', { ref: 'refs/tags/v1' }],
    ['push', { commits: [{ added: ['README.md'], modified: ['src/a.js'], removed: [] }] }],
    ['pull_request', { action: 'closed', pull_request: { base: { ref: 'other' } } }],
    ['release', { action: 'published', release: { tag_name: 'v1' } }],
    ['workflow_run', { action: 'completed', workflow: { name: 'Build' } }],
    ['repository_dispatch', { action: 'deploy' }],
  ];
  test.each(passing.filter((_, index) => (index % 2 === 0) === byLength(false, true)))(
    'one that %s passes is none: %j',
    async (event, payload) => {
      const { url } = shared;
      const { status, warning } = await post(url, { workflow: 'idle', event, payload });
      expect([status, warning]).toEqual([201, null]);
    },
  );

  inShort(test)('paths are those that git knows where the payload says none', async () => {
    const files = {
      'src.yml': quick("{ push: { paths: ['src/**'] }, pull_request: { paths: ['src/**'] } }"),
      'docs.yml': quick("{ push: { paths-ignore: ['src/**'] } }"),
    };
    const { url, workspace } = await start(files);
    const git = (...args: readonly string[]): string =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
        cwd: workspace,
        encoding: 'utf8',
      });
    const statuses = async (body: object): Promise<readonly number[]> => [
      (await post(url, { workflow: 'src', event: 'push', ...body })).status,
      (await post(url, { workflow: 'docs', event: 'push', ...body })).status,
    ];
    // The first commit made all files.
    expect(await statuses({})).toEqual([201, 201]);
    const first = git('rev-parse', 'HEAD').trim();
    git('checkout', '-qb', 'topic');
    mkdirSync(join(workspace, 'docs'));
    writeFileSync(join(workspace, 'docs/ü.txt'), 'x');
    git('add', '-A');
    git('commit', '-qm', 'second');
    expect(await statuses({})).toEqual([422, 201]);
    expect(await statuses({ payload: { before: first } })).toEqual([422, 201]);
    const pull = { workflow: 'src', event: 'pull_request' };
    expect((await post(url, pull)).status).toBe(422);
    // What is not committed yet runs too, unless a commit was asked for.
    writeFileSync(join(workspace, 'src/new.js'), 'x');
    expect(await statuses({})).toEqual([201, 201]);
    expect(await statuses({ sandbox: { ref: 'HEAD' } })).toEqual([422, 201]);
    git('add', '-A');
    git('commit', '-qm', 'third');
    expect(await statuses({})).toEqual([201, 422]);
    expect((await post(url, pull)).status).toBe(201);
    expect(await statuses({ sandbox: { ref: 'topic~1' } })).toEqual([422, 201]);
  });

  inShort(test).each([
    [{ event: 'pushed' }, 'event'],
    [{ event: 'workflow_call' }, 'event'],
    [{ event: 7 }, 'event'],
    [{ event: 'push', payload: [] }, 'payload'],
    [{ event: 'push', payload: 'x' }, 'payload'],
    [{ event: 'push', payload: { ref: 'refs/heads/a..b' } }, 'payload'],
    [{ event: 'push', payload: { ref: 'refs/heads/a\nb' } }, 'payload'],
    [{ payload: { ref: 'refs/heads/a b' } }, 'payload'],
    [{ event: 'release', payload: { release: { tag_name: '--x y' } } }, 'payload'],
    [{ force: 'yes' }, 'force'],
    [{ jobs: ['nope'] }, 'jobs'],
    [{ jobs: 'show' }, 'jobs'],
    [{ jobs: [] }, 'jobs'],
    [{ matrix: { node: '18' } }, 'matrix.node'],
    [{ secrets: { A: 1 } }, 'secrets.A'],
  ])('%j is 400 that names the field', async (fields, field) => {
    const { url } = shared;
    const { status, body } = await post(url, { workflow: 'show', ...fields });
    expect([status, body.error.code]).toEqual([400, 'invalid_request']);
    expect(body.error.details['field']).toBe(field);
  });

  inShort(test)('schedules are listed with their next time', async () => {
    const { url } = await start({ 'show.yml': SHOW, 'none.yml': quick('push') });
    type Listed = {
      fileName: string;
      schedules?: { cron: string; timezone?: string; nextAt: string }[];
    };
    const listed = (await (await fetch(`${url}/api/workflows`)).json()) as Listed[];
    expect(listed[0]?.schedules).toBeUndefined();
    const [weekdays, yearly] = listed[1]?.schedules ?? [];
    expect(weekdays).toMatchObject({ cron: '30 5 * * 1-5', timezone: 'Europe/Paris' });
    const next = new Date(weekdays?.nextAt ?? 0);
    expect(next.getTime()).toBeGreaterThan(Date.now());
    const inParis = next.toLocaleTimeString('en-GB', { timeZone: 'Europe/Paris' });
    expect([inParis, next.getTime() - Date.now() < 4 * 86_400_000]).toEqual(['05:30:00', true]);
    expect(yearly?.nextAt).toMatch(/^\d{4}-01-01T00:00:00.000Z$/);
    const one = (await (await fetch(`${url}/api/workflows/show`)).json()) as { info: Listed };
    expect(one.info.schedules).toHaveLength(2);
  });
});

const PARTS = `on: workflow_dispatch
jobs:
  build: { runs-on: ubuntu-latest, steps: [{ run: echo build }] }
  test:
    needs: build
    runs-on: ubuntu-latest
    strategy: { matrix: { node: [18, 20], os: [linux, mac] } }
    steps:
      - env: { K: '\${{ secrets.KEY }}', T: '\${{ secrets.GITHUB_TOKEN }}', G: '\${{ github.token }}' }
        run: echo "leg \${{ matrix.node }} \${{ matrix.os }} \${{ vars.PLACE }} $K \${#K} \${#T} \${#G}"
  lone: { runs-on: ubuntu-latest, steps: [{ run: echo lone }] }
`;

inShort(describe)('what a start chooses', { timeout: 180_000 }, () => {
  test('jobs with their needs, legs, secrets and variables of this run alone, also when it runs again', async () => {
    const { url, runner, workspace } = await start({ 'parts.yml': PARTS });
    const own = { KEY: 'kept-secret', PLACE: 'kept-place' };
    await runner.parts.secrets.put({ name: 'KEY', value: own.KEY });
    await runner.parts.secrets.putVariable({ name: 'PLACE', value: own.PLACE });
    const { body: run } = await post(url, {
      workflow: 'parts',
      jobs: ['test'],
      matrix: { Node: ['20'], os: ['linux'] },
      secrets: { key: 'given-of-this-run', GITHUB_TOKEN: 'a-token' },
      variables: { PLACE: 'there' },
    });
    const idsOf = (ended: Readonly<Record<string, unknown>>): readonly string[] =>
      (ended['jobs'] as readonly { readonly id: string }[]).map(({ id }) => id);
    const line = 'leg 20 linux there *** 17 7 7\n';
    expect(idsOf(await runEnded(url, run.id))).toEqual(['build', 'test:1']);
    const logs = async (): Promise<string> =>
      (await fetch(`${url}/api/runs/${run.id}/logs`)).text();
    expect(await logs()).toContain(line);
    await fetch(`${url}/api/runs/${run.id}/rerun`, { method: 'POST' });
    expect(idsOf(await runEnded(url, run.id))).toEqual(['build', 'test:1']);
    expect(await logs()).toContain(line);
    const dir = join(workspace, '.runner');
    for (const path of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
      if (!/\.(jsonl?|log)$/.test(path)) continue;
      expect([
        path,
        /given-of-this-run|a-token/.test(readFileSync(join(dir, path), 'utf8')),
      ]).toEqual([path, false]);
    }
    const { body: whole } = await post(url, { workflow: 'parts' });
    expect(idsOf(await runEnded(url, whole.id))).toHaveLength(6);
    const log = await (await fetch(`${url}/api/runs/${whole.id}/logs`)).text();
    expect(log).toContain('leg 18 mac kept-place *** 11 0 0\n');
  });

  test('legs that nobody has and names that are none are refused', async () => {
    const { url } = await start({ 'parts.yml': PARTS });
    for (const [matrix, message] of [
      [{ node: ['22'] }, "'node' is never '22'; it is 18, 20"],
      [{ nod: ['20'] }, "no matrix of parts.yml has the key 'nod'; there are node (18, 20), os"],
    ] as const) {
      const { status, body } = await post(url, { workflow: 'parts', jobs: ['test'], matrix });
      expect([status, body.error.code, body.error.details]).toEqual([
        400,
        'invalid_request',
        { field: 'matrix' },
      ]);
      expect(body.error.message).toContain(message);
    }
    // The job with the matrix is none of those chosen.
    const lone = { workflow: 'parts', jobs: ['lone'], matrix: { node: ['20'] } };
    expect((await post(url, lone)).body.error.message).toContain('has no matrix');
    for (const secrets of [{ 'A-B': 'x' }, { GITHUB_REF: 'x' }, { RUNNER_X: 'x' }]) {
      const { status, body } = await post(url, { workflow: 'parts', secrets });
      expect([status, body.error.code]).toEqual([422, 'invalid_name']);
    }
  });
});
