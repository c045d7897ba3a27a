import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chromiumPath, openPage } from '../runner/ui/browser.ts';
import { installEngine, PRINTED } from '../support/installed-engine.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
};

const isMissing = chromiumPath === undefined;
const reason = isMissing ? ' (skipped: no Chromium here, CHROMIUM_PATH names one)' : '';

describe.skipIf(isMissing)(`in a browser${reason}`, () => {
  test('the page decides as Node.js does', async () => {
    const folder = await installEngine();
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const server = createServer((request, response) => {
      const path = new URL(request.url ?? '/', 'http://localhost').pathname;
      response.setHeader('content-type', TYPES[extname(path)] ?? 'text/plain');
      try {
        response.end(readFileSync(join(folder, path)));
      } catch {
        // There is no such file, as of the icon.
        response.writeHead(path === '/favicon.ico' ? 204 : 404).end();
      }
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    onTestFinished(() => void server.close());
    const { page, problems } = await openPage();
    const { port } = server.address() as AddressInfo;
    await page.goto(`http://127.0.0.1:${port}/page.html`);
    await page
      .locator('pre[data-state=done]')
      .waitFor({ timeout: 20_000 })
      .catch(() => undefined);
    expect(problems).toEqual([]);
    expect(await page.locator('pre').textContent()).toBe(PRINTED);
    expect(await page.evaluate('typeof Buffer + typeof process')).toBe('undefinedundefined');
  }, 120_000);
});
