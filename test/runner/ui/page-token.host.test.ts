import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { afterLastTest } from '../../support/runner.ts';
import { chromiumPath, openPage } from './browser.ts';
import { GATED, startProject } from './page-project.ts';

/* The page of a runner that has a token, in a real browser. */
afterLastTest();
const open = (gate: string): void => writeFileSync(gate, '');
const isMissing = chromiumPath === undefined;
const reason = isMissing ? ' (skipped: no Chromium here, CHROMIUM_PATH names one)' : '';

describe.skipIf(isMissing)(`in a browser${reason}`, { timeout: 120_000 }, () => {
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
});
