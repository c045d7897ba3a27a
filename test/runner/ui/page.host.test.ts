import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { afterLastTest, runEnded, startRun, startRunner } from '../../support/runner.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { chromiumPath, openPage, samePage } from './browser.ts';
import {
  FLAKY,
  FLOOD_LINES,
  GATED,
  LONG_LINES,
  LOOK_FOR_MARKUP,
  type Project,
  startProject,
  TAIL_LINES,
  WORKFLOWS,
} from './page-project.ts';

/** A runner for all tests that neither stop it nor have settings of their own. */
let shared: Project;
const whenDone = afterLastTest();
beforeAll(async () => {
  shared = await startProject(WORKFLOWS, {}, whenDone);
});

/** A gate that no run has seen, named to those that start from now on. */
async function newGate(): Promise<string> {
  const gate = join(shared.workspace, '.runner', randomUUID());
  await shared.runner.parts.secrets.putVariable({ name: 'GATE', value: gate });
  return gate;
}

const open = (gate: string): void => writeFileSync(gate, '');

const isMissing = chromiumPath === undefined;
const reason = isMissing ? ' (skipped: no Chromium here, CHROMIUM_PATH names one)' : '';

describe.skipIf(isMissing)(`in a browser${reason}`, { timeout: 120_000 }, () => {
  inShort(test)(
    'a run is started with the form, followed live to its end, and its artifact downloaded',
    async () => {
      const { url } = shared;
      const gate = await newGate();
      const { page, problems } = await samePage();
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
      await page.locator('.artifacts li', { hasText: /page\.html\s*text\/html · / }).waitFor();
      const saving = page.waitForEvent('download');
      await page.getByRole('link', { name: 'page.html' }).click();
      const saved = await saving;
      expect(saved.suggestedFilename()).toBe('page.html');
      expect(readFileSync(await saved.path(), 'utf8')).toContain('<script>');
      // As an address of its own it is saved as well, and not shown.
      const opening = page.waitForEvent('download');
      const path = `/api/runs/${page.url().split('/').at(-1)}/artifacts/page.html`;
      await page.evaluate(`location.assign(${JSON.stringify(path)})`);
      expect((await opening).suggestedFilename()).toBe('page.html');
      // The next job is shown where the page saw it run.
      await page.locator('a[data-job=greet]').click();
      // The step that ended well was closed again; its log is complete.
      await page.locator('summary', { hasText: 'Greet' }).click();
      await log.getByText('second').waitFor();
      expect(problems).toEqual([]);
    },
  );

  inLong(test)('a run is started as another event, and by its schedule', async () => {
    const { url } = shared;
    const { page, problems } = await samePage();
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

  inLong(test)('what the runner says of an input stands at its field', async () => {
    const { url } = shared;
    const { page } = await samePage();
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

  inShort(test)('a failed run shows why; its failed jobs run again without reloading', async () => {
    const { url } = shared;
    const gate = await newGate();
    const id = await startRun(url, 'flaky');
    const { page, problems } = await samePage();
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

  inLong(test)('a run that resists is cancelled, then killed', async () => {
    const { url } = shared;
    const id = await startRun(url, 'stubborn');
    const { page } = await samePage();
    await page.goto(`${url}/runs/${id}`);
    await page.getByRole('log').getByText('sleeping').waitFor();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Force cancel' }).click();
    await page.locator('.title [data-state=cancelled]').waitFor();
    await page.getByRole('button', { name: 'Re-run all jobs' }).waitFor();
    expect((await runEnded(url, id)).conclusion).toBe('cancelled');
  });

  test('text of workflows, inputs, logs and summaries never becomes markup', async () => {
    const { url } = shared;
    const id = await startRun(url, 'hostile.yml', { text: '<svg onload=window.hacked=6>' });
    await runEnded(url, id);
    for (const hasScripts of byLength([true], [true, false])) {
      const { page, problems } = hasScripts ? await samePage() : await openPage({ hasScripts });
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

  inShort(test)('without scripts runs and logs can be read', async () => {
    const { url } = shared;
    open(await newGate());
    const id = await startRun(url, 'gated', { who: 'Eve' });
    await runEnded(url, id);
    const { page } = await openPage({ hasScripts: false });
    await page.goto(url);
    await page.getByRole('link', { name: /For Eve/ }).click();
    await page.locator('summary', { hasText: 'Greet' }).click();
    await page.getByText('second').waitFor();
    await page.getByRole('link', { name: /after/ }).click();
    await page.getByRole('heading', { name: 'after' }).waitFor();
    expect(await page.getByRole('button').count()).toBe(0);
  });

  inLong(test)('the list of runs is live, and comes back when the runner does', async () => {
    const { url, gate, workspace, runner } = await startProject({ 'gated.yml': GATED });
    const { page } = await samePage();
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

  inLong(test)('the keyboard is enough', async () => {
    const { url } = shared;
    await newGate();
    const id = await startRun(url, 'flaky');
    await runEnded(url, id);
    const { page } = await samePage();
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

inLong(describe).skipIf(isMissing)(`in a browser${reason}, long logs`, { timeout: 120_000 }, () => {
  const shown = (count: number): string => count.toLocaleString('en');

  test('many lines leave the page quick: few rows are in it, the end is followed, text is found', async () => {
    const { url } = shared;
    const id = await startRun(url, 'flood');
    const { page, problems } = await samePage();
    await page.goto(`${url}/runs/${id}`);
    await page.locator('.title [data-state=success]').waitFor();
    const step = page.locator('details[data-step]');
    if ((await step.getAttribute('open')) === null)
      await page.locator('summary', { hasText: 'Flood' }).click();
    await page.getByText(`${shown(FLOOD_LINES)} lines`).waitFor();
    const log = page.getByRole('log');
    await log.getByText(`line ${FLOOD_LINES}`, { exact: true }).waitFor();
    expect(await page.locator('.row').count()).toBeLessThan(200);
    await page.getByRole('searchbox').fill('line 4321');
    await page.getByRole('searchbox').press('Enter');
    await page.locator('.row.found', { hasText: '4321' }).waitFor();
    await page.getByRole('button', { name: 'Go to the end' }).click();
    await log.getByText(`line ${FLOOD_LINES}`, { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  inLong(test)(
    'of too many lines the last have their own numbers; the others are loaded and found',
    async () => {
      const { url } = shared;
      const id = await startRun(url, 'long');
      await runEnded(url, id);
      const { page, problems } = await samePage();
      // The short run has fewer lines, so the page has to ask for fewer.
      await page.route(/\/logs\?.*tail=200000/, (route) => {
        const asked = route.request().url();
        return route.continue({ url: asked.replace('tail=200000', `tail=${TAIL_LINES}`) });
      });
      await page.goto(`${url}/runs/${id}`);
      await page.locator('.title [data-state=success]').waitFor();
      const step = page.locator('details[data-step]');
      if ((await step.getAttribute('open')) === null)
        await page.locator('summary', { hasText: 'Long' }).click();
      const before = LONG_LINES - TAIL_LINES;
      await page
        .getByText(`${shown(LONG_LINES)} lines, ${shown(before)} of them not loaded`)
        .waitFor();
      const rowOf = (text: string): Locator => page.locator('.row', { hasText: text });
      expect(await rowOf(`line ${LONG_LINES}`).locator('.number').textContent()).toBe(
        `${LONG_LINES}`,
      );
      await page.evaluate("document.querySelector('.log-scroll').scrollTo(0, 0)");
      await rowOf(`line ${before + 1}`).waitFor();
      expect(
        await rowOf(`line ${before + 1}`)
          .locator('.number')
          .textContent(),
      ).toBe(`${before + 1}`);
      await page
        .getByRole('button', { name: `Lines 1 to ${shown(before)} are not shown: load 20,000` })
        .click();
      await page.getByText(`${shown(before - 20_000)} of them not loaded`).waitFor();
      await rowOf(`line ${before}`).waitFor();
      expect(await rowOf(`line ${before}`).locator('.number').textContent()).toBe(`${before}`);
      await page.getByRole('searchbox').fill('LINE 123\u0034');
      await page.getByRole('searchbox').press('Enter');
      const found = page.locator('.row.found');
      await found.filter({ hasText: 'line 1234' }).waitFor();
      expect(await found.locator('.number').textContent()).toBe('1234');
      await page.getByRole('button', { name: 'Go to the end' }).click();
      await rowOf(`line ${LONG_LINES}`).waitFor();
      expect(await page.locator('.row').count()).toBeLessThan(200);
      expect(problems).toEqual([]);
    },
  );
});

inShort(describe)('on the wire', () => {
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
    const { url } = shared;
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
    const { url } = shared;
    for (const path of ['/runs/nothing', '/workflows/nothing.yml']) {
      const response = await fetch(url + path);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    }
  });
});
