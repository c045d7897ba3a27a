import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { onTestFinished } from 'vitest';

const PLACES = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The Chromium of this machine, undefined when there is none: CHROMIUM_PATH, else the usual places. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path));

export type BrowserOptions = {
  readonly colorScheme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  readonly hasScripts?: boolean;
  /** Host names that lead to 127.0.0.1 in this browser. */
  readonly names?: readonly string[];
};

/**
 * A page of a browser with a profile of its own, closed when the test ends. The second value holds what
 * went wrong in it: uncaught errors, refusals of the content security policy, other errors of the console.
 */
export async function openPage(
  options: BrowserOptions = {},
): Promise<{ readonly page: Page; readonly problems: string[]; readonly context: BrowserContext }> {
  const profile = mkdtempSync(join(tmpdir(), 'gatehouse-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    ...(chromiumPath === undefined ? {} : { executablePath: chromiumPath }),
    args: [...ARGUMENTS, ...nameRules(options.names ?? [])],
    headless: true,
    colorScheme: options.colorScheme ?? 'light',
    viewport: { width: options.width ?? 1280, height: options.height ?? 900 },
    javaScriptEnabled: options.hasScripts ?? true,
    acceptDownloads: true,
  });
  onTestFinished(async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  return { page, problems, context };
}

function nameRules(names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  return [`--host-resolver-rules=${names.map((name) => `MAP ${name} 127.0.0.1`).join(', ')}`];
}
