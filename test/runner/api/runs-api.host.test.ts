import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  afterLastTest,
  makeWorkspace,
  runEnded,
  startRun,
  startRunner,
  type TestRunner,
} from '../../support/runner.ts';

const CI = `name: Build it
on:
  push:
  workflow_dispatch:
    inputs:
      who: { type: string, default: world, description: Whom to greet }
      loud: { type: boolean }
      level: { type: choice, options: [low, high] }
jobs:
  build:
    runs-on: ubuntu-latest
    outputs: { greeting: '\${{ steps.hi.outputs.greeting }}' }
    steps:
      - id: hi
        name: Greet
        run: |
          echo "Hello $WHO"
          echo "--- Step 9: fake [success] ---"
          echo "greeting=Hello" >> "$GITHUB_OUTPUT"
          echo "::warning file=a.ts,line=3::careful"
          echo "# Sum" >> "$GITHUB_STEP_SUMMARY"
        env: { WHO: '\${{ inputs.who }}' }
      - run: mkdir out && echo one > out/1.txt && echo two > out/2.txt && printf 0123456789 > digits
      - uses: actions/upload-artifact@v4
        with: { name: digits, path: digits }
      - uses: actions/upload-artifact@v4
        with: { name: both, path: out }
  after:
    name: After it
    needs: build
    runs-on: ubuntu-latest
    steps: [{ run: echo after }]
`;
const SLEEP = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps:
      - run: echo before; for i in $(seq 600); do sleep 0.1; done
`;
const GATED = `on: workflow_dispatch
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - name: Gate
        run: echo first; until [ -e "$GATE" ]; do sleep 0.05; done; echo second
        env: { GATE: '\${{ vars.GATE }}' }
      - run: echo third
`;
const FAIL = `on: workflow_dispatch
jobs:
  good: { runs-on: ubuntu-latest, steps: [{ run: exit 0 }] }
  bad: { runs-on: ubuntu-latest, steps: [{ run: exit 3 }] }
`;
const FILES = {
  '.github/workflows/ci.yml': CI,
  '.github/workflows/sleep.yaml': SLEEP,
  '.github/workflows/gated.yml': GATED,
  '.github/workflows/fail.yml': FAIL,
  '.github/workflows/broken.yml': 'on: push\njobs:\n  a:\n    runs-on: x\n    stepz: []\n',
  '.github/workflows/idle.yml': 'on: push\njobs:\n  rest:\n    runs-on: x\n    steps: []\n',
  '.github/workflows/calls-idle.yml':
    'on: push\njobs: {c: {uses: ./.github/workflows/callee.yml}}\n',
  '.github/workflows/callee.yml': 'on: workflow_call\njobs: {rest: {runs-on: x}}\n',
  '.github/workflows/beyond.yml':
    "on: { schedule: [{ cron: '*/90 * * * *' }] }\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n",
  '.github/workflows/quarters.yml':
    "on: { schedule: [{ cron: '20/15 * * * *' }] }\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n",
  '.github/workflows/not-yaml.yml': 'a: [1\nb: }\n',
  '.github/workflows/twin-1.yml':
    'name: Twin\non: push\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n',
  '.github/workflows/twin-2.yml':
    'name: Twin\non: push\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n',
};
const JSON_HEADER = { 'content-type': 'application/json' };

let url = '';
let workspace = '';

let shared: TestRunner;
const whenDone = afterLastTest();
beforeAll(async () => {
  const folder = makeWorkspace(FILES, true, whenDone);
  shared = await startRunner(folder, {}, undefined, {}, whenDone);
});
beforeEach(() => {
  ({ url, workspace } = shared);
});

/** For tests that count runs or leave one behind. */
async function ownRunner(): Promise<void> {
  ({ url, workspace } = await startRunner(makeWorkspace(FILES, true)));
}

async function newest(): Promise<string | undefined> {
  const runs = await (await fetch(`${url}/api/runs?limit=1`)).json();
  return (runs as readonly { readonly id: string }[])[0]?.id;
}

async function post(
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<Response> {
  if (body === undefined) return fetch(url + path, { method: 'POST', headers: more });
  const headers = { ...JSON_HEADER, ...more };
  return fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

type ErrorBody = {
  error: { code: string; message: string; requestId: string; details?: Record<string, string> };
};

async function errorOf(response: Response): Promise<string> {
  expect(response.headers.get('content-type')).toBe('application/json');
  const { error } = (await response.json()) as ErrorBody;
  expect(error.requestId).toBe(response.headers.get('x-request-id'));
  expect(error.message).not.toBe('');
  return `${response.status} ${error.code}`;
}

describe('starting a run', () => {
  test('answers 201 with the queued run and where it is', async () => {
    const response = await post('/api/runs', {
      workflow: 'ci',
      inputs: { who: 'Ann', loud: true },
    });
    expect(response.status).toBe(201);
    expect(response.headers.get('x-runner-api-version')).toBe('1');
    const run = (await response.json()) as Record<string, unknown> & { id: string };
    expect(response.headers.get('location')).toBe(`/api/runs/${run.id}`);
    expect(run).toMatchObject({
      workflow: 'Build it',
      fileName: 'ci.yml',
      status: 'queued',
      inputs: { who: 'Ann', loud: 'true', level: 'low' },
      trigger: { event: 'workflow_dispatch', ref: 'refs/heads/main' },
    });
    expect(run['conclusion']).toBeUndefined();
    const ended = await runEnded(url, run.id);
    expect(ended).toMatchObject({
      status: 'completed',
      conclusion: 'success',
      jobs: [
        { id: 'build', name: 'build', status: 'completed', outputs: { greeting: 'Hello' } },
        { id: 'after', name: 'After it', needs: ['build'] },
      ],
    });
  });

  test('finds a workflow by file, by stem and by name', async () => {
    await ownRunner();
    for (const workflow of ['fail.yml', 'fail', 'FAIL', 'sleep.yaml', 'Build it']) {
      expect((await post('/api/runs', { workflow, sandbox: { strategy: 'copy' } })).status).toBe(
        201,
      );
    }
  });

  test.each([
    [{}, '400 invalid_request'],
    [[], '400 invalid_request'],
    ['x', '400 invalid_request'],
    [{ workflow: 3 }, '400 invalid_request'],
    [{ workflow: '' }, '400 invalid_request'],
    [{ workflow: 'ci', extra: 1 }, '400 invalid_request'],
    [{ workflow: 'ci', inputs: [] }, '400 invalid_request'],
    [{ workflow: 'ci', inputs: null }, '400 invalid_request'],
    [{ workflow: 'ci', sandbox: 'copy' }, '400 invalid_request'],
    [{ workflow: 'ci', sandbox: { strategy: 'docker' } }, '400 invalid_request'],
    [{ workflow: 'ci', sandbox: { strategy: 'copy', more: 1 } }, '400 invalid_request'],
    [{ workflow: 'nothing' }, '404 workflow_not_found'],
    [{ workflow: 'Twin' }, '409 ambiguous_workflow'],
    [{ workflow: 'broken' }, '422 invalid_workflow'],
    [{ workflow: 'not-yaml' }, '422 invalid_workflow'],
    [{ workflow: 'idle' }, '422 invalid_workflow'],
    [{ workflow: 'calls-idle' }, '422 invalid_workflow'],
    [{ workflow: 'beyond', event: 'schedule' }, '422 invalid_workflow'],
    [{ workflow: 'ci', inputs: { nobody: 'x' } }, '422 invalid_inputs'],
    [{ workflow: 'ci', inputs: { loud: 'maybe' } }, '422 invalid_inputs'],
    [{ workflow: 'ci', inputs: { level: 'mid' } }, '422 invalid_inputs'],
    [{ workflow: 'ci', inputs: { who: { a: 1 } } }, '422 invalid_inputs'],
    [{ workflow: 'ci', inputs: { who: 'x'.repeat(65_535) } }, '422 invalid_inputs'],
    [{ workflow: 'ci', sandbox: { ref: 'no-such-ref' } }, '422 invalid_ref'],
    [{ workflow: 'ci', sandbox: { strategy: 'none', ref: 'main' } }, '422 invalid_ref'],
  ])('%j: %s', async (body, expected) => {
    const before = await newest();
    expect(await errorOf(await post('/api/runs', body))).toBe(expected);
    expect(await newest()).toBe(before);
  });

  test('errors name the field or the inputs', async () => {
    const wrong = (await (
      await post('/api/runs', { workflow: 'ci', sandbox: { strategy: 'x' } })
    ).json()) as ErrorBody;
    expect(wrong.error.details).toEqual({ field: 'sandbox.strategy' });
    for (const ref of ['no-such-ref', '--option']) {
      const unknown = await post('/api/runs', { workflow: 'ci', sandbox: { ref } });
      expect(((await unknown.json()) as ErrorBody).error.details).toEqual({ field: 'sandbox.ref' });
    }
    const misplaced: readonly (readonly [object, string])[] = [
      [{ ref: 'main' }, 'ref: no such field here; it is sandbox.ref'],
      [{ strategy: 'copy' }, 'strategy: no such field here; it is sandbox.strategy'],
      [{ sandbox: { env: {} } }, 'sandbox.env: no such field here; it is env, beside sandbox'],
      [{ input: {} }, 'input: no such field; did you mean inputs?'],
      [{ else: 1 }, 'else: no such field'],
    ];
    for (const [body, message] of misplaced) {
      const { error } = (await (
        await post('/api/runs', { workflow: 'ci', ...body })
      ).json()) as ErrorBody;
      expect([error.message, error.details?.['field']]).toEqual([message, message.split(':')[0]]);
    }
    const inputs = (await (
      await post('/api/runs', { workflow: 'ci', inputs: { loud: 'x', level: 'y' } })
    ).json()) as ErrorBody;
    expect(Object.keys(inputs.error.details ?? {}).sort()).toEqual(['level', 'loud']);
    const twin = (await (await post('/api/runs', { workflow: 'Twin' })).json()) as ErrorBody;
    expect(JSON.stringify(twin.error.details)).toContain('twin-2.yml');
  });

  test('a key makes a retry harmless, at the same time, later and after a restart', async () => {
    await ownRunner();
    const key = { 'idempotency-key': 'k-1' };
    const body = { workflow: 'fail' };
    const answers = await Promise.all([
      post('/api/runs', body, key),
      post('/api/runs', body, key),
      post('/api/runs', { sandbox: undefined, ...body }, key),
    ]);
    const ids = new Set<string>();
    for (const answer of answers) {
      expect(answer.status).toBe(201);
      ids.add(((await answer.json()) as { id: string }).id);
    }
    expect(ids.size).toBe(1);
    expect(answers.filter(({ headers }) => headers.has('idempotent-replayed'))).toHaveLength(2);
    expect(await errorOf(await post('/api/runs', { workflow: 'ci' }, key))).toBe(
      '422 idempotency_conflict',
    );
    expect(await errorOf(await post('/api/runs', body, { 'idempotency-key': 'a b' }))).toBe(
      '400 invalid_request',
    );
    const failed = { 'idempotency-key': 'k-2' };
    expect((await post('/api/runs', { workflow: 'nothing' }, failed)).status).toBe(404);
    expect((await post('/api/runs', body, failed)).status).toBe(201);
    expect(((await (await fetch(`${url}/api/runs`)).json()) as unknown[]).length).toBe(2);
  });
});

describe('reading runs', () => {
  test('lists newest first, with filters, pages and a summary', async () => {
    await ownRunner();
    const ids: string[] = [];
    for (const workflow of ['fail', 'ci', 'fail']) {
      const id = await startRun(url, workflow);
      await runEnded(url, id);
      ids.unshift(id);
    }
    type Listed = { id: string; jobs: { steps: unknown[] }[] }[];
    const list = async (query: string): Promise<Listed> =>
      (await (await fetch(`${url}/api/runs${query}`)).json()) as Listed;
    expect((await list('')).map(({ id }) => id)).toEqual(ids);
    expect((await list('?status=completed')).map(({ id }) => id)).toEqual([ids[1]]);
    expect((await list('?status=failed')).length).toBe(2);
    expect(await list('?status=queued')).toEqual([]);
    expect((await list('?workflow=ci.yml')).map(({ id }) => id)).toEqual([ids[1]]);
    expect((await list('?limit=2')).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect((await list(`?limit=2&before=${ids[1]}`)).map(({ id }) => id)).toEqual(ids.slice(2));
    expect((await list('')).flatMap(({ jobs }) => jobs).some(({ steps }) => steps.length > 0)).toBe(
      true,
    );
    expect(
      (await list('?fields=summary'))
        .flatMap(({ jobs }) => jobs)
        .every(({ steps }) => steps.length === 0),
    ).toBe(true);
    for (const query of [
      '?status=done',
      '?limit=0',
      '?limit=x',
      '?limit=1001',
      '?before=..',
      '?status=failed&status=queued',
      '?fields=x',
    ]) {
      expect(await errorOf(await fetch(`${url}/api/runs${query}`))).toBe('400 invalid_request');
    }
  });

  test('a run, its log, annotations and summary in full', async () => {
    const id = await startRun(url, 'ci', { who: 'Bo' });
    await runEnded(url, id);
    const base = `${url}/api/runs/${id}`;
    const run = (await (await fetch(base)).json()) as {
      jobs: { steps: { log: string; number: number }[] }[];
    };
    expect(run.jobs[0]?.steps[0]).toMatchObject({
      number: 1,
      name: 'Greet',
      status: 'completed',
      conclusion: 'success',
      outputs: { greeting: 'Hello' },
    });
    expect(run.jobs[0]?.steps[0]?.log).toContain('Hello Bo\n');
    const log = await fetch(`${base}/logs`);
    expect(log.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const text = await log.text();
    expect(text).toMatch(
      /^=== Job: build \(build\) ===\n--- Step 1: Greet \[success\] ---\nHello Bo\n --- Step 9: fake/,
    );
    expect(text).toContain(
      '\n\n=== Job: after (After it) ===\n--- Step 1: Run echo after [success] ---\nafter\n',
    );
    expect(text.endsWith('\n')).toBe(true);
    expect(await (await fetch(`${base}/logs?job=after`)).text()).toBe(
      '=== Job: after (After it) ===\n--- Step 1: Run echo after [success] ---\nafter\n',
    );
    expect(await (await fetch(`${base}/logs?job=build&step=1&tail=0`)).text()).toBe(
      '=== Job: build (build) ===\n--- Step 1: Greet [success] ---\n',
    );
    expect(await errorOf(await fetch(`${base}/logs?job=x`))).toBe('400 invalid_request');
    expect(await errorOf(await fetch(`${base}/logs?tail=-1`))).toBe('400 invalid_request');
    const annotations = (await (await fetch(`${base}/annotations`)).json()) as unknown[];
    expect(annotations).toContainEqual(
      expect.objectContaining({
        level: 'warning',
        message: 'careful',
        file: 'a.ts',
        line: 3,
        jobId: 'build',
        stepNumber: 1,
      }),
    );
    const summary = await fetch(`${base}/summary`);
    expect(summary.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(await summary.text()).toContain('# Sum');
  });

  test('everything of an unknown run is 404', async () => {
    for (const path of [
      '',
      '/logs',
      '/logs?follow=1',
      '/artifacts',
      '/artifacts/x',
      '/annotations',
      '/summary',
    ]) {
      expect(await errorOf(await fetch(`${url}/api/runs/01890000-none${path}`))).toBe(
        '404 run_not_found',
      );
    }
    for (const path of ['/cancel', '/rerun']) {
      expect(await errorOf(await post(`/api/runs/01890000-none${path}`))).toBe('404 run_not_found');
    }
    const gone = await fetch(`${url}/api/runs/01890000-none`, { method: 'DELETE' });
    expect(await errorOf(gone)).toBe('404 run_not_found');
  });

  test('entity tags save the body; HEAD has the head of GET', async () => {
    const id = await startRun(url, 'ci');
    await runEnded(url, id);
    const paths = ['', '/logs', '/artifacts', '/artifacts/digits', '/annotations', '/summary'].map(
      (path) => `/api/runs/${id}${path}`,
    );
    for (const path of [...paths, '/api/runs', '/api/workflows', '/api/workflows/ci']) {
      const get = await fetch(url + path);
      const body = await get.arrayBuffer();
      const etag = get.headers.get('etag') ?? '';
      expect(etag).toMatch(/^"[\w-]{22,}"$/);
      for (const value of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const again = await fetch(url + path, { headers: { 'if-none-match': value } });
        expect(again.status).toBe(304);
        expect(again.headers.get('etag')).toBe(etag);
        expect((await again.arrayBuffer()).byteLength).toBe(0);
      }
      expect((await fetch(url + path, { headers: { 'if-none-match': '"x"' } })).status).toBe(200);
      const head = await fetch(url + path, { method: 'HEAD' });
      expect(head.status).toBe(200);
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
      expect(head.headers.get('etag')).toBe(etag);
      const length = head.headers.get('content-length');
      if (length !== null) expect(Number(length)).toBe(body.byteLength);
    }
    expect((await fetch(`${url}/api/runs/nope`, { method: 'HEAD' })).status).toBe(404);
  });
});

describe('artifacts', () => {
  test('are listed by name and downloaded whole or in part', async () => {
    const id = await startRun(url, 'ci');
    await runEnded(url, id);
    const base = `${url}/api/runs/${id}/artifacts`;
    const list = (await (await fetch(base)).json()) as {
      name: string;
      path: string;
      size: number;
      mimeType: string;
    }[];
    expect(list.map(({ name }) => name)).toEqual(['both', 'digits']);
    expect(list).toMatchObject([
      { mimeType: 'application/zip', runId: id },
      { size: 10, runId: id },
    ]);
    const zip = await fetch(`${base}/both`);
    expect(zip.headers.get('content-type')).toBe('application/zip');
    expect(zip.headers.get('content-disposition')).toBe(
      `attachment; filename="both.zip"; filename*=UTF-8''both.zip`,
    );
    expect(Buffer.from(await zip.arrayBuffer())).toEqual(readFileSync(list[0]?.path ?? ''));
    const get = (range: string, more: Record<string, string> = {}): Promise<Response> =>
      fetch(`${base}/digits`, { headers: { range, ...more } });
    const whole = await fetch(`${base}/digits`);
    expect(whole.headers.get('accept-ranges')).toBe('bytes');
    expect(await whole.text()).toBe('0123456789');
    for (const [range, text, place] of [
      ['bytes=0-3', '0123', 'bytes 0-3/10'],
      ['bytes=8-', '89', 'bytes 8-9/10'],
      ['bytes=-3', '789', 'bytes 7-9/10'],
      ['bytes=5-99', '56789', 'bytes 5-9/10'],
      ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ] as const) {
      const part = await get(range);
      expect(part.status).toBe(206);
      expect(part.headers.get('content-range')).toBe(place);
      expect(await part.text()).toBe(text);
    }
    for (const range of ['bytes=3-1', 'bytes=0-1,3-4', 'lines=1-2', 'bytes=x']) {
      expect((await get(range)).status).toBe(200);
    }
    for (const range of ['bytes=10-', 'bytes=99-100', 'bytes=-0']) {
      const refused = await get(range);
      expect(refused.headers.get('content-range')).toBe('bytes */10');
      expect(await errorOf(refused)).toBe('416 range_not_satisfiable');
    }
    const etag = whole.headers.get('etag') ?? '';
    expect((await get('bytes=0-0', { 'if-range': etag })).status).toBe(206);
    expect((await get('bytes=0-0', { 'if-range': '"other"' })).status).toBe(200);
    expect(await errorOf(await fetch(`${base}/none`))).toBe('404 artifact_not_found');
  });
});

describe('changing runs', () => {
  test('cancel answers 202 at once, again while it lasts, and 409 afterwards', async () => {
    const id = await startRun(url, 'sleep');
    const follow = await fetch(`${url}/api/runs/${id}/logs?follow=1`);
    const reader = follow.body?.getReader();
    await reader?.read();
    const first = await post(`/api/runs/${id}/cancel`);
    expect(first.status).toBe(202);
    expect(await first.json()).toMatchObject({
      id,
      cancelRequestedAt: expect.any(String) as string,
    });
    expect([202, 409]).toContain((await post(`/api/runs/${id}/cancel`, {})).status);
    expect(await runEnded(url, id)).toMatchObject({ status: 'cancelled', conclusion: 'cancelled' });
    expect(await errorOf(await post(`/api/runs/${id}/cancel`))).toBe('409 run_not_cancellable');
    expect(await errorOf(await post(`/api/runs/${id}/cancel`, { now: true }))).toBe(
      '400 invalid_request',
    );
    await reader?.cancel();
  });

  test('rerun of all, of what failed and of one job; removal', async () => {
    const id = await startRun(url, 'fail');
    await runEnded(url, id);
    const failedOnly = await post(`/api/runs/${id}/rerun`, { failedOnly: true });
    expect(failedOnly.status).toBe(201);
    expect(await failedOnly.json()).toMatchObject({ id, attempt: 2 });
    const second = await runEnded(url, id);
    expect(second).toMatchObject({
      attempt: 2,
      jobs: [
        { id: 'good', attempt: 1 },
        { id: 'bad', attempt: 2 },
      ],
    });
    expect((await post(`/api/runs/${id}/rerun`)).status).toBe(201);
    await runEnded(url, id);
    expect((await post(`/api/runs/${id}/rerun`, { job: 'good' })).status).toBe(201);
    expect(await runEnded(url, id)).toMatchObject({ attempt: 4 });
    expect(await errorOf(await post(`/api/runs/${id}/rerun`, { job: 'x' }))).toBe(
      '400 invalid_request',
    );
    expect(
      await errorOf(await post(`/api/runs/${id}/rerun`, { job: 'bad', failedOnly: true })),
    ).toBe('400 invalid_request');
    expect((await fetch(`${url}/api/runs/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await fetch(`${url}/api/runs/${id}`)).status).toBe(404);
  });

  test('a run in progress is neither rerun nor removed', async () => {
    await ownRunner();
    const id = await startRun(url, 'sleep');
    expect(await errorOf(await post(`/api/runs/${id}/rerun`))).toBe('409 run_not_finished');
    const removal = await fetch(`${url}/api/runs/${id}`, { method: 'DELETE' });
    expect(await errorOf(removal)).toBe('409 run_not_finished');
  });
});

test('a followed log grows line by line until the run ends, each line once', async () => {
  const gate = `${workspace}/gate`;
  await fetch(`${url}/api/variables/GATE`, {
    method: 'PUT',
    headers: JSON_HEADER,
    body: JSON.stringify({ value: gate }),
  });
  const id = await startRun(url, 'gated');
  const response = await fetch(`${url}/api/runs/${id}/logs?follow=1`);
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('first\n') && !text.includes('second')) {
      writeFileSync(gate, '');
    }
  }
  expect(text.replaceAll(/^--- Step \d+: .*\n/gm, '')).toBe(
    '=== Job: one (one) ===\nfirst\nsecond\nthird\n',
  );
  expect(text.match(/^--- Step 1: .* \[in_progress\] ---$/gm)).toHaveLength(1);
  const whole = await (await fetch(`${url}/api/runs/${id}/logs?follow=1`)).text();
  expect(whole).toContain('[success] ---\nfirst\nsecond\n');
});

describe('the surface', () => {
  test('unknown paths are 404, wrong methods 405 with what is possible', async () => {
    expect(await errorOf(await fetch(`${url}/api/nope`))).toBe('404 not_found');
    expect(await errorOf(await fetch(`${url}/api/runs/`))).toBe('404 not_found');
    for (const [method, path, allow] of [
      ['PUT', '/api/runs', 'GET, HEAD, OPTIONS, POST'],
      ['PATCH', '/api/runs/x', 'DELETE, GET, HEAD, OPTIONS'],
      ['POST', '/health', 'GET, HEAD, OPTIONS'],
      ['GET', '/api/sync/inbox', 'OPTIONS, POST'],
      ['POST', '/api/secrets/status', 'DELETE, GET, HEAD, OPTIONS, PUT'],
    ] as const) {
      const response = await fetch(url + path, { method });
      expect(response.headers.get('allow')).toBe(allow);
      expect(await errorOf(response)).toBe('405 method_not_allowed');
    }
  });

  test('health needs nothing and says where it works', async () => {
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ready', degraded: [] });
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject({
      status: 'ok',
      workspace,
      runs: { queued: 0, inProgress: 0 },
    });
  });

  test('request ids are taken over when they are harmless', async () => {
    const given = await fetch(`${url}/health`, { headers: { 'x-request-id': 'abc-1' } });
    expect(given.headers.get('x-request-id')).toBe('abc-1');
    const odd = await fetch(`${url}/health`, { headers: { 'x-request-id': 'a b' } });
    expect(odd.headers.get('x-request-id')).not.toBe('a b');
  });

  test('workflows are listed with their problems, never dropped', async () => {
    type Info = {
      fileName: string;
      errors?: { line: number; col: number; message: string }[];
      schedules?: { nextAt: string }[];
    };
    const list = (await (await fetch(`${url}/api/workflows`)).json()) as Info[];
    expect(list.map(({ fileName }) => fileName).sort()).toEqual(
      Object.keys(FILES)
        .map((path) => path.slice('.github/workflows/'.length))
        .sort(),
    );
    const byName = new Map(list.map((info) => [info.fileName, info]));
    expect(byName.get('ci.yml')).toEqual({
      name: 'Build it',
      fileName: 'ci.yml',
      filePath: `${workspace}/.github/workflows/ci.yml`,
      triggers: ['push', 'workflow_dispatch'],
      jobs: [
        { id: 'build', name: 'build', needs: [] },
        { id: 'after', name: 'After it', needs: ['build'] },
      ],
      inputs: {
        who: { type: 'string', required: false, default: 'world', description: 'Whom to greet' },
        loud: expect.objectContaining({ type: 'boolean' }) as object,
        level: expect.objectContaining({ type: 'choice', options: ['low', 'high'] }) as object,
      },
    });
    expect(byName.get('broken.yml')?.errors?.[0]).toMatchObject({
      line: 5,
      message: expect.stringContaining('stepz') as string,
    });
    expect(byName.get('not-yaml.yml')?.errors?.length).toBeGreaterThan(0);
    expect(byName.get('beyond.yml')?.errors?.[0]).toMatchObject({ line: 1, col: 26 });
    expect(byName.get('idle.yml')?.errors).toEqual([
      { line: 3, col: 3, message: expect.stringContaining("The job 'rest' has nothing to do") },
    ]);
    const page = await fetch(`${url}/`);
    expect([page.status, await page.text()]).toEqual([
      200,
      expect.stringContaining('quarters.yml'),
    ]);
    for (const name of ['beyond.yml', 'idle.yml', 'quarters.yml']) {
      const one = await fetch(`${url}/workflows/${name}`);
      expect([one.status, (await fetch(`${url}/api/workflows/${name}`)).status]).toEqual([
        200, 200,
      ]);
    }
    expect(byName.get('quarters.yml')?.schedules?.[0]?.nextAt).toMatch(/:(?:20|35|50):00\.000Z$/);
  });

  test('a workflow shows its document as written, an invalid one too', async () => {
    const ci = (await (await fetch(`${url}/api/workflows/ci`)).json()) as {
      info: unknown;
      definition: Record<string, unknown>;
    };
    expect(ci.info).toMatchObject({ name: 'Build it' });
    expect(ci.definition).toMatchObject({ name: 'Build it', on: { push: null } });
    const broken = (await (await fetch(`${url}/api/workflows/broken.yml`)).json()) as {
      definition: unknown;
    };
    expect(broken.definition).toEqual({ on: 'push', jobs: { a: { 'runs-on': 'x', stepz: [] } } });
    expect(await errorOf(await fetch(`${url}/api/workflows/not-yaml`))).toBe(
      '422 invalid_workflow',
    );
    expect(await errorOf(await fetch(`${url}/api/workflows/nothing`))).toBe(
      '404 workflow_not_found',
    );
    expect(await errorOf(await fetch(`${url}/api/workflows/Twin`))).toBe('409 ambiguous_workflow');
  });
});
