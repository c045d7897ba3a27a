import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { Runner } from '../../../src/runner/runner.ts';
import { makeWorkspace, runEnded, startRun, startRunner } from '../../support/runner.ts';
import { chromiumPath, openPage } from './browser.ts';

/** Runs until its gate, a file of the project, is there. */
const GATED = `name: Gated
run-name: For \${{ inputs.who }}
on:
  push:
  workflow_dispatch:
    inputs:
      who: { required: true, description: Whom to greet }
      loud: { type: boolean, default: true }
      level: { type: choice, options: [low, high], default: high }
      count: { type: number, default: 2 }
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - name: Greet
        env: { TEXT: '\${{ toJSON(inputs) }}', GATE: '\${{ vars.GATE }}' }
        run: |
          echo "Hello $(echo "$TEXT" | tr -d '\\n ')"
          printf '\\033[32mgreen\\033[0m plain\\n'
          until [ -e "$GATE" ]; do sleep 0.05; done
          echo second
          echo "# Well done" >> "$GITHUB_STEP_SUMMARY"
          echo "::warning file=a.ts,line=3::careful"
      - run: echo 0123456789 > digits
      - uses: actions/upload-artifact@v4
        with: { name: digits, path: digits }
  after: { needs: greet, runs-on: ubuntu-latest, steps: [{ run: echo after }] }
`;
const EVENTS = `on:
  push: { branches: [main] }
  schedule: [{ cron: '30 5 * * 1', timezone: Europe/Paris }]
  workflow_dispatch:
jobs:
  show:
    runs-on: ubuntu-latest
    steps: [{ name: Show, run: 'echo "\${{ github.event_name }} \${{ github.ref }} \${{ github.event.schedule }}"' }]
`;
const FLAKY = `on: workflow_dispatch
jobs:
  good: { runs-on: ubuntu-latest, steps: [{ run: echo good }] }
  bad:
    runs-on: ubuntu-latest
    steps: [{ name: Try, run: 'echo trying; [ -e "$GATE" ]', env: { GATE: '\${{ vars.GATE }}' } }]
`;
const STUBBORN = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps: [{ run: "trap '' INT TERM; echo sleeping; while true; do sleep 0.1; done" }]
`;
const IMAGE = '<img src=x onerror="window.hacked=1">';
const HOSTILE = `name: '${IMAGE}'
run-name: '${IMAGE}\${{ inputs.text }}'
on:
  workflow_dispatch:
    inputs:
      text: { description: '${IMAGE}', default: '"><script>window.hacked=2</script>' }
      pick: { type: choice, options: ['"><b>x', '${IMAGE}'] }
env: { SHOWN: '${IMAGE}' }
jobs:
  job:
    name: '${IMAGE}'
    runs-on: ubuntu-latest
    environment: { name: '${IMAGE}', url: 'javascript:window.hacked=3' }
    outputs: { out: '\${{ steps.s.outputs.out }}' }
    steps:
      - name: '</summary>${IMAGE}'
        id: s
        run: |
          echo '${IMAGE}'
          echo '</pre></details><script>window.hacked=4</script>'
          printf '\\033]8;;javascript:alert(1)\\007link\\033]8;;\\007\\n'
          echo "::error title=<b>bold,file=<i>x::</div>${IMAGE}"
          echo 'out=${IMAGE}' >> "$GITHUB_OUTPUT"
          printf '%s\\n\\n[click](javascript:window.hacked=5) <b>bold</b> **${IMAGE}** \\n' '${IMAGE}' >> "$GITHUB_STEP_SUMMARY"
          exit 1
`;
const LONG = `on: workflow_dispatch
jobs:
  long: { runs-on: ubuntu-latest, steps: [{ name: Long, run: 'seq 1 250000 | sed "s/^/line /"' }] }
`;
const FLOOD = `on: workflow_dispatch
jobs:
  flood: { runs-on: ubuntu-latest, steps: [{ name: Flood, run: 'seq 1 100000 | sed "s/^/line /"' }] }
`;

/** Text: it runs in the page, whose names are not known here. */
const LOOK_FOR_MARKUP = `(() => {
  const main = document.querySelector('main');
  const count = (selector, isBad = () => true) =>
    [...main.querySelectorAll(selector)].filter(isBad).length;
  return {
    images: count('img, script, svg:not(.icon svg), b, i'),
    hacked: 'hacked' in window,
    links: count('a', (link) => /^javascript:/i.test(link.href)),
    handlers: count('*', (one) => one.getAttributeNames().some((name) => name.startsWith('on'))),
  };
})()`;

type Project = {
  readonly url: string;
  readonly gate: string;
  readonly workspace: string;
  readonly runner: Runner;
};

async function startProject(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
): Promise<Project> {
  const workspace = makeWorkspace(
    Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`.github/workflows/${name}`, text]),
    ),
    true,
  );
  const { url, runner } = await startRunner(workspace, env);
  const gate = join(workspace, '.runner', 'gate');
  await runner.parts.secrets.putVariable({ name: 'GATE', value: gate });
  return { url, gate, workspace, runner };
}

const open = (gate: string): void => writeFileSync(gate, '');

const isMissing = chromiumPath === undefined;
const reason = isMissing ? ' (skipped: no Chromium here, CHROMIUM_PATH names one)' : '';

describe.skipIf(isMissing)(`in a browser${reason}`, { timeout: 120_000 }, () => {
  test('a run is started with the form, followed live to its end, and its artifact downloaded', async () => {
    const { url, gate } = await startProject({ 'gated.yml': GATED });
    const { page, problems } = await openPage();
    await page.goto(url);
    await page.getByRole('link', { name: /^Gated/ }).click();
    await page.getByLabel('who').fill('Ann');
    await page.getByLabel('loud').uncheck();
    await page.getByLabel('level').selectOption('low');
    await page.getByRole('button', { name: 'Run workflow' }).click();
    await page.waitForURL(/\/runs\/[\w-]+$/);
    const log = page.getByRole('log', { name: 'Log of Greet' });
    await log.getByText('Hello {"who":"Ann","loud":false,"level":"low","count":2}').waitFor();
    expect(await log.locator('.fg-green').textContent()).toBe('green');
    expect(await log.getByText('second').count()).toBe(0);
    expect(await page.title()).toContain('in_progress');
    open(gate);
    await page.locator('.title [data-state=success]').waitFor();
    await page.getByRole('heading', { name: 'For Ann #1' }).waitFor();
    await page.getByRole('heading', { name: 'Well done' }).waitFor();
    await page.locator('.annotation', { hasText: 'careful' }).waitFor();
    expect(await page.locator('.jobs .icon-success').count()).toBe(2);
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'digits' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe('digits');
    expect(readFileSync(await download.path(), 'utf8')).toBe('0123456789\n');
    // The step that ended well was closed again; its log is complete.
    await page.locator('summary', { hasText: 'Greet' }).click();
    await log.getByText('second').waitFor();
    expect(problems).toEqual([]);
  });

  test('a run is started as another event, and by its schedule', async () => {
    const { url } = await startProject({ 'events.yml': EVENTS });
    const { page, problems } = await openPage();
    await page.goto(`${url}/workflows/events.yml`);
    await page.getByText('As what happens').click();
    await page.getByLabel('Event', { exact: true }).selectOption('push');
    await page.getByLabel('Payload').fill('{ "ref": "refs/heads/topic"');
    await page.getByRole('button', { name: 'Run workflow' }).click();
    const problem = page.locator('#payload-error');
    await problem.getByText('JSON').waitFor();
    await page.getByLabel('Payload').fill('{ "ref": "refs/heads/topic" }');
    await page.getByRole('button', { name: 'Run workflow' }).click();
    await page.locator('#event-error').getByText('filter branches (main)').waitFor();
    expect(await problem.isVisible()).toBe(false);
    await page.getByLabel('Whatever its triggers say').check();
    await page.getByRole('button', { name: 'Run workflow' }).click();
    await page.waitForURL(/\/runs\/[\w-]+$/);
    const shown = async (): Promise<string> => {
      const id = page.url().split('/').at(-1) ?? '';
      await runEnded(url, id);
      return (await fetch(`${url}/api/runs/${id}/logs`)).text();
    };
    expect(await shown()).toContain('\npush refs/heads/topic \n');
    await page.goto(`${url}/workflows/events.yml`);
    const schedules = page.getByRole('region', { name: 'Schedules' });
    await schedules.getByText(/^in \d+ (minute|hour|day)s?$|^within a minute$/).waitFor();
    expect(await schedules.getByText('Europe/Paris').count()).toBe(1);
    await schedules.getByRole('button', { name: 'Start 30 5 * * 1 now' }).click();
    await page.waitForURL(/\/runs\/[\w-]+$/);
    expect(await shown()).toContain('\nschedule refs/heads/main 30 5 * * 1\n');
    expect(problems).toEqual([expect.stringContaining('422')]);
  });

  test('what the runner says of an input stands at its field', async () => {
    const { url } = await startProject({ 'gated.yml': GATED });
    const { page } = await openPage();
    await page.goto(`${url}/workflows/gated.yml`);
    await page.getByLabel('count').fill('many');
    await page.getByRole('button', { name: 'Run workflow' }).click();
    await page.getByText('Must be a number').waitFor();
    const who = page.getByLabel('who');
    expect(await who.getAttribute('aria-invalid')).toBe('true');
    expect(await who.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(
      true,
    );
    const described = (await who.getAttribute('aria-describedby')) ?? '';
    const texts = await Promise.all(
      described.split(' ').map((id) => page.locator(`#${id}`).textContent()),
    );
    expect(texts.map((text) => text?.trim())).toEqual(['Whom to greet', 'Is required']);
    await page.getByText('Where it runs').click();
    await page.getByLabel('Branch, tag or commit').fill('no-such-branch');
    await who.fill('x');
    await page.getByLabel('count').fill('1');
    await page.getByRole('button', { name: 'Run workflow' }).click();
    await page
      .locator('#ref-error', { hasText: 'no-such-branch' })
      .or(page.locator('#ref-error:visible'))
      .first()
      .waitFor();
    expect(await who.getAttribute('aria-invalid')).toBeNull();
  });

  test('a failed run shows why; its failed jobs run again without reloading', async () => {
    const { url, gate } = await startProject({ 'flaky.yml': FLAKY });
    const id = await startRun(url, 'flaky');
    const { page, problems } = await openPage();
    await page.goto(`${url}/runs/${id}`);
    await page.getByRole('log', { name: 'Log of Try' }).getByText('exit code 1').waitFor();
    open(gate);
    await page.getByRole('button', { name: 'Re-run failed jobs' }).click();
    await page.getByText('attempt 2').waitFor();
    await page.locator('.title [data-state=success]').waitFor();
    expect(await page.locator('.jobs .icon-success').count()).toBe(2);
    const { jobs } = (await runEnded(url, id)) as unknown as { jobs: { attempt: number }[] };
    expect(jobs.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(problems).toEqual([]);
  });

  test('a run that resists is cancelled, then killed', async () => {
    const { url } = await startProject({ 'stubborn.yml': STUBBORN });
    const id = await startRun(url, 'stubborn');
    const { page } = await openPage();
    await page.goto(`${url}/runs/${id}`);
    await page.getByRole('log').getByText('sleeping').waitFor();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Force cancel' }).click();
    await page.locator('.title [data-state=cancelled]').waitFor();
    await page.getByRole('button', { name: 'Re-run all jobs' }).waitFor();
    expect((await runEnded(url, id)).conclusion).toBe('cancelled');
  });

  test('text of workflows, inputs, logs and summaries never becomes markup', async () => {
    const { url } = await startProject({
      'hostile.yml': HOSTILE,
      'a&b"<i>.yml': `name: '${IMAGE}'\non: push\njobs: { a: { runs-on: x, '${IMAGE}': 1 } }\n`,
    });
    const id = await startRun(url, 'hostile.yml', { text: '<svg onload=window.hacked=6>' });
    await runEnded(url, id);
    for (const hasScripts of [true, false]) {
      const { page, problems } = await openPage({ hasScripts });
      for (const path of [
        '/',
        '/workflows/hostile.yml',
        `/workflows/${encodeURIComponent('a&b"<i>.yml')}`,
        `/runs/${id}`,
        '/runs/%3Cimg%20src=x%20onerror=alert(1)%3E',
      ]) {
        await page.goto(url + path);
        if (path === `/runs/${id}`) await page.getByText('hacked=4').first().waitFor();
        const found = await page.evaluate(LOOK_FOR_MARKUP);
        expect(found, path).toEqual({ images: 0, hacked: false, links: 0, handlers: 0 });
      }
      expect(problems.filter((problem) => !problem.includes('404'))).toEqual([]);
    }
  });

  test('100,000 lines leave the page quick: few rows are in it, the end is followed, text is found', async () => {
    const { url } = await startProject({ 'flood.yml': FLOOD });
    const id = await startRun(url, 'flood');
    const { page, problems } = await openPage();
    await page.goto(`${url}/runs/${id}`);
    await page.locator('.title [data-state=success]').waitFor();
    const step = page.locator('details[data-step]');
    if ((await step.getAttribute('open')) === null)
      await page.locator('summary', { hasText: 'Flood' }).click();
    await page.getByText('100,000 lines').waitFor();
    const log = page.getByRole('log');
    await log.getByText('line 100000', { exact: true }).waitFor();
    expect(await page.locator('.row').count()).toBeLessThan(200);
    await page.getByRole('searchbox').fill('line 54321');
    await page.getByRole('searchbox').press('Enter');
    await page.locator('.row.found', { hasText: '54321' }).waitFor();
    await page.getByRole('button', { name: 'Go to the end' }).click();
    await log.getByText('line 100000', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  test('of 250,000 lines the last have their own numbers; the others are loaded and found', async () => {
    const { url } = await startProject({ 'long.yml': LONG });
    const id = await startRun(url, 'long');
    await runEnded(url, id);
    const { page, problems } = await openPage();
    await page.goto(`${url}/runs/${id}`);
    await page.locator('.title [data-state=success]').waitFor();
    const step = page.locator('details[data-step]');
    if ((await step.getAttribute('open')) === null)
      await page.locator('summary', { hasText: 'Long' }).click();
    await page.getByText('250,000 lines, 50,000 of them not loaded').waitFor();
    const rowOf = (text: string): Locator => page.locator('.row', { hasText: text });
    expect(await rowOf('line 250000').locator('.number').textContent()).toBe('250000');
    await page.evaluate("document.querySelector('.log-scroll').scrollTo(0, 0)");
    await rowOf('line 50001').waitFor();
    expect(await rowOf('line 50001').locator('.number').textContent()).toBe('50001');
    await page
      .getByRole('button', { name: /^Lines 1 to 50,000 are not shown: load 20,000/ })
      .click();
    await page.getByText('30,000 of them not loaded').waitFor();
    await rowOf('line 50000').waitFor();
    expect(await rowOf('line 50000').locator('.number').textContent()).toBe('50000');
    await page.getByRole('searchbox').fill('LINE 123\u0034');
    await page.getByRole('searchbox').press('Enter');
    const found = page.locator('.row.found');
    await found.filter({ hasText: 'line 1234' }).waitFor();
    expect(await found.locator('.number').textContent()).toBe('1234');
    await page.getByRole('button', { name: 'Go to the end' }).click();
    await rowOf('line 250000').waitFor();
    expect(await page.locator('.row').count()).toBeLessThan(200);
    expect(problems).toEqual([]);
  });

  test('with a token the page holds no data until it was entered, for this tab alone', async () => {
    const token = 'a-token-of-the-runner';
    const { url, gate } = await startProject({ 'gated.yml': GATED }, { RUNNER_API_TOKEN: token });
    const html = await (await fetch(url)).text();
    expect(html).not.toContain('Gated');
    expect((await fetch(`${url}/api/page/home`)).status).toBe(401);
    const { page, context } = await openPage();
    await page.goto(`${url}/workflows/gated.yml`);
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('refused this token').waitFor();
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('who').fill('Ann');
    await page.getByRole('button', { name: 'Run workflow' }).click();
    await page.getByRole('log').getByText('Hello').waitFor();
    open(gate);
    await page.locator('.title [data-state=success]').waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'digits' }).click();
    const download = await downloading;
    expect(readFileSync(await download.path(), 'utf8')).toBe('0123456789\n');
    expect(page.url()).not.toContain(token);
    const other = await context.newPage();
    await other.goto(url);
    await other.getByLabel('Token').waitFor();
  });

  test('without scripts runs and logs can be read', async () => {
    const { url, gate } = await startProject({ 'gated.yml': GATED });
    open(gate);
    const id = await startRun(url, 'gated', { who: 'Ann' });
    await runEnded(url, id);
    const { page } = await openPage({ hasScripts: false });
    await page.goto(url);
    await page.getByRole('link', { name: /For Ann/ }).click();
    await page.locator('summary', { hasText: 'Greet' }).click();
    await page.getByText('second').waitFor();
    await page.getByRole('link', { name: /after/ }).click();
    await page.getByRole('heading', { name: 'after' }).waitFor();
    expect(await page.getByRole('button').count()).toBe(0);
  });

  test('the list of runs is live, and comes back when the runner does', async () => {
    const { url, gate, workspace, runner } = await startProject({ 'gated.yml': GATED });
    const { page } = await openPage();
    await page.goto(url);
    await page.getByText('Nothing has run yet').waitFor();
    await startRun(url, 'gated', { who: 'Bob' });
    await page.locator('.runs .icon-in_progress').waitFor();
    open(gate);
    await page.locator('.runs .icon-success').waitFor();
    await runner.stop();
    await page.getByText('Trying again').waitFor();
    const returning = page.waitForRequest((request) => request.url().includes('/api/events'));
    await startRunner(workspace, { PORT: new URL(url).port });
    const headers = await (await returning).allHeaders();
    expect(headers['last-event-id']).toMatch(/^\w+-\d+$/);
    await page.getByText('Trying again').waitFor({ state: 'detached' });
    await startRun(url, 'gated', { who: 'Zoe' });
    await page.locator('.runs .icon-success').nth(1).waitFor();
  });

  test('the keyboard is enough', async () => {
    const { url } = await startProject({ 'flaky.yml': FLAKY });
    const id = await startRun(url, 'flaky');
    await runEnded(url, id);
    const { page } = await openPage();
    await page.goto(`${url}/runs/${id}`);
    await page.getByRole('log').waitFor();
    const focused = (): Promise<string> =>
      page.evaluate("document.activeElement.textContent.trim().replaceAll(/\\s+/g, ' ')");
    const seen: string[] = [];
    for (let i = 0; i < 14; i++) {
      await page.keyboard.press('Tab');
      seen.push(await focused());
    }
    expect(seen[0]).toBe('Skip to content');
    for (const name of ['Re-run failed jobs', 'Re-run all jobs', 'Raw log', 'Re-run job']) {
      expect(seen).toContain(name);
    }
    expect(seen.some((text) => text.startsWith('Success: good'))).toBe(true);
    await page.locator('a[data-job=good]').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'good' }).waitFor();
    expect(page.url()).toContain('job=good');
    await page.goBack();
    await page.getByRole('heading', { name: 'bad' }).waitFor();
  });
});

describe('on the wire', () => {
  test('pages allow nothing but what the runner serves', async () => {
    const { url } = await startProject({ 'flaky.yml': FLAKY });
    const response = await fetch(url);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy.split('; ')).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
      ]),
    );
    expect(policy).not.toContain('unsafe');
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const text = await response.text();
    expect(text).not.toMatch(
      /<script(?![^>]* src="\/assets\/)|<style|\son\w+=|style="|https?:\/\//,
    );
  });

  test('the files of the page are served with their types, and nothing beside them', async () => {
    const { url } = await startProject({ 'flaky.yml': FLAKY });
    const types = new Map([
      ['/assets/page/client/app.ts', 'text/javascript; charset=utf-8'],
      ['/assets/page/shared/html.ts', 'text/javascript; charset=utf-8'],
      ['/assets/text/duration.ts', 'text/javascript; charset=utf-8'],
      ['/assets/page.css', 'text/css; charset=utf-8'],
      ['/assets/icon.svg', 'image/svg+xml'],
    ]);
    for (const [path, type] of types) {
      const response = await fetch(url + path);
      expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
      const etag = response.headers.get('etag') ?? '';
      const again = await fetch(url + path, { headers: { 'if-none-match': etag } });
      expect(again.status).toBe(304);
    }
    for (const path of [
      '/assets/page/page-routes.ts',
      '/assets/page/client/tsconfig.json',
      '/assets/page/client/..%2fpage-routes.ts',
      '/assets/model/run.ts',
    ]) {
      expect((await fetch(url + path)).status, path).toBe(404);
    }
  });

  test('what is not there is a page with the status that the API has', async () => {
    const { url } = await startProject({ 'flaky.yml': FLAKY });
    for (const path of ['/runs/nothing', '/workflows/nothing.yml']) {
      const response = await fetch(url + path);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    }
  });
});
