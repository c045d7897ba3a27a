import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, onTestFinished } from 'vitest';

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

/** One process for all tests of a file, for each set of names: to start it takes longer than most tests. */
const browsers = new Map<string, Promise<Browser>>();
afterAll(async () => {
  for (const browser of browsers.values()) await (await browser).close();
});

type Opened = {
  readonly page: Page;
  /** What went wrong in it: uncaught errors, refusals of the content security policy, other errors of the console. */
  readonly problems: string[];
  readonly context: BrowserContext;
};

/** A page of a browser with a profile of its own, closed when the test ends. */
export async function openPage(options: BrowserOptions = {}): Promise<Opened> {
  const context = await newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  return { page, problems: watchProblems(page), context };
}

let lasting: Promise<Page> | undefined;

/**
 * One page for all tests of a file that keep nothing in their profile: it takes a quarter of the time. It is left
 * when the test ends.
 */
export async function samePage(): Promise<Opened> {
  lasting ??= newContext({}).then((context) => context.newPage());
  const page = await lasting;
  onTestFinished(async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.goto('about:blank');
    page.removeAllListeners('pageerror');
    page.removeAllListeners('console');
  });
  return { page, problems: watchProblems(page), context: page.context() };
}

async function newContext(options: BrowserOptions): Promise<BrowserContext> {
  const browser = await browserWith(options.names ?? []);
  return browser.newContext({
    colorScheme: options.colorScheme ?? 'light',
    viewport: { width: options.width ?? 1280, height: options.height ?? 900 },
    javaScriptEnabled: options.hasScripts ?? true,
    acceptDownloads: true,
  });
}

function watchProblems(page: Page): string[] {
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  return problems;
}

function browserWith(names: readonly string[]): Promise<Browser> {
  const key = names.join(' ');
  const known = browsers.get(key);
  if (known !== undefined) return known;
  const starting = chromium.launch({
    ...(chromiumPath === undefined ? {} : { executablePath: chromiumPath }),
    args: [...ARGUMENTS, ...nameRules(names)],
    headless: true,
  });
  browsers.set(key, starting);
  return starting;
}

function nameRules(names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  return [`--host-resolver-rules=${names.map((name) => `MAP ${name} 127.0.0.1`).join(', ')}`];
}
