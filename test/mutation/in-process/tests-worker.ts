/**
 * The thread in which the tests of a file with planted faults run: it loads them once, and runs those
 * that it is told to with one fault at work after the other.
 */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import type { GatheredTest } from './small-vitest.ts';

/** `file` has `code` in the place of its own; `active` is the fault at work while it is loaded. */
export type WorkerInit = {
  readonly file: string;
  readonly code: string;
  readonly tests: readonly string[];
  readonly active: string | undefined;
};
/** Run all tests without a fault, or some (by position, with how often the fault's place may be passed) with one. */
export type Order =
  | { readonly kind: 'dry' }
  | {
      readonly kind: 'fault';
      readonly id: string;
      readonly tests: readonly { readonly at: number; readonly hitMax: number }[];
    };
/** How often each fault's place was passed, by its id. */
export type Hits = Readonly<Record<string, number>>;
export type DryTest = {
  readonly name: string;
  readonly file: string;
  /** Milliseconds of processor time. */
  readonly ms: number;
  readonly error: string | undefined;
  readonly hits: Hits;
};
export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'dry'; readonly atLoad: Hits; readonly tests: readonly DryTest[] }
  /** Position of the test that found the fault; `isDirty`: it fails without the fault by now. */
  | { readonly kind: 'fault'; readonly found: number | undefined; readonly isDirty: boolean };

/** What the instrumented code looks at, and counts in. */
type Stryker = {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: { readonly static: Hits; readonly perTest: Readonly<Record<string, Hits>> };
};

const TEST_MS_MAX = 20_000;
/** A test for which the thread does nothing so long waits for what does not come. Time that others take from it is not counted. */
const TEST_IDLE_MS_MAX = 2_000;
const TEST_LOOK_MS = 100;
const LOAD_HITS_MAX = 5_000_000;

const { file, code, tests: testFiles, active } = workerData as WorkerInit;
const target = pathToFileURL(file).href;
const shim = new URL('small-vitest.ts', import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'vitest' && context.parentURL !== shim
      ? { url: shim, shortCircuit: true }
      : next(specifier, context),
  load: (url, context, next) =>
    url === target
      ? { format: 'module-typescript', source: code, shortCircuit: true }
      : next(url, context),
});

const stryker: Stryker = {};
(globalThis as { __stryker__?: Stryker }).__stryker__ = stryker;
// The first counterexample is as good as the smallest one.
fc.configureGlobal({ endOnFailure: true });
// What a fault leaves behind unawaited says nothing about the test that runs by then.
process.on('unhandledRejection', () => {});

if (active !== undefined)
  Object.assign(stryker, { activeMutant: active, hitCount: 0, hitLimit: LOAD_HITS_MAX });
const { beginFile, finishers, gathered } = await import('./small-vitest.ts');
for (const path of testFiles) {
  beginFile(path);
  await import(pathToFileURL(path).href);
}

// Tests may fake them.
const { setInterval: every, clearInterval: clear } = globalThis;
const utilization = performance.eventLoopUtilization.bind(performance);

async function within(body: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    const start = utilization();
    timer = every(() => {
      const { active: busy, idle } = utilization(start);
      if (idle > TEST_IDLE_MS_MAX || busy + idle > TEST_MS_MAX)
        reject(new Error('the test takes too long'));
    }, TEST_LOOK_MS);
  });
  await Promise.race([body(), late]).finally(() => clear(timer));
}

/** Why a test fails, or undefined. */
async function run({ before, body, after }: GatheredTest): Promise<unknown> {
  let failure: unknown;
  const attempt = async (part: () => unknown): Promise<void> => {
    try {
      await within(part);
    } catch (error) {
      failure ??= error ?? new Error('nothing was thrown');
    }
  };
  finishers.length = 0;
  await attempt(async () => {
    for (const hook of before) await hook();
    await body();
  });
  for (const finish of finishers.toReversed()) await attempt(finish);
  for (const hook of after) await attempt(hook);
  return failure;
}

async function dryRun(): Promise<Report> {
  const tests: DryTest[] = [];
  for (const [at, one] of gathered.entries()) {
    stryker.currentTestId = String(at);
    const start = process.cpuUsage();
    const error = await run(one);
    const { user, system } = process.cpuUsage(start);
    const hits = stryker.mutantCoverage?.perTest[String(at)] ?? {};
    tests.push({
      name: one.name,
      file: one.file,
      ms: (user + system) / 1000,
      error: error === undefined ? error : inspect(error),
      hits,
    });
  }
  stryker.currentTestId = undefined;
  return { kind: 'dry', atLoad: stryker.mutantCoverage?.static ?? {}, tests };
}

async function tryFault({ id, tests }: Extract<Order, { kind: 'fault' }>): Promise<Report> {
  for (const { at, hitMax } of tests) {
    const one = gathered[at] as GatheredTest;
    Object.assign(stryker, { activeMutant: id, hitCount: 0, hitLimit: hitMax });
    const error = await run(one);
    stryker.activeMutant = undefined;
    if (error === undefined) continue;
    return { kind: 'fault', found: at, isDirty: (await run(one)) !== undefined };
  }
  return { kind: 'fault', found: undefined, isDirty: false };
}

const tell = (report: Report): void => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  parentPort?.postMessage(report);
};
parentPort?.on('message', (order: Order) => {
  void (order.kind === 'dry' ? dryRun() : tryFault(order)).then(tell);
});
tell({ kind: 'ready' });
