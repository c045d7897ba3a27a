import { once } from 'node:events';
import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Mutant } from '../judge.ts';
import { type Fault, plantFaults } from './plant-faults.ts';
import type { DryTest, Order, Report, WorkerInit } from './tests-worker.ts';

type Run = { readonly file: string; readonly lines: string; readonly source: string };
type Dry = Extract<Report, { kind: 'dry' }>;
type Outcome = Extract<Report, { kind: 'fault' }> | 'timeout';

/** A fault's tests may pass its place so many times more often than without it. */
const HITS_FACTOR = 100;
const HITS_MIN = 1000;
/** A fault may take so much longer than its tests do; what is busy elsewhere slows both. */
const TIME_FACTOR = 6;
const TIME_MIN_MS = 4000;
const HEAP_MB_MAX = 1024;
const DRY_MS_MAX = 300_000;

/** Tests in a thread of their own, which can be ended in the middle of an endless loop. */
class TestThread {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Errors: what loading the tests throws. */
  static async open(init: WorkerInit): Promise<TestThread> {
    const worker = new Worker(new URL('tests-worker.ts', import.meta.url), {
      workerData: init,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
      // Tests speak of faults; nobody wants to read them.
      stdout: true,
      stderr: true,
    });
    worker.stdout.resume();
    worker.stderr.resume();
    await once(worker, 'message');
    // Out of memory: the thread ends, and `ask` sees that.
    worker.on('error', () => {});
    return new TestThread(worker);
  }

  /** The answer, or 'timeout' when the thread ended or has to be ended. */
  ask(order: Order, ms: number): Promise<Report | 'timeout'> {
    return new Promise((done) => {
      const end = (report: Report | 'timeout'): void => {
        clearTimeout(timer);
        this.#worker.off('message', end).off('exit', late);
        done(report);
      };
      const late = (): void => end('timeout');
      const timer = setTimeout(late, ms);
      this.#worker.once('message', end).once('exit', late);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      this.#worker.postMessage(order);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Tries the faults one after the other; several of these share `faults`. */
class Trial {
  readonly #init: WorkerInit;
  readonly #dry: Dry;
  #thread: TestThread | undefined;

  constructor(init: WorkerInit, dry: Dry) {
    this.#init = init;
    this.#dry = dry;
  }

  async statusOf({ id }: Fault): Promise<string> {
    // What a fault does while the code is loaded shows only in code that is loaded anew.
    const isAtLoad = this.#dry.atLoad[id] !== undefined;
    const chosen = this.#dry.tests
      .map((test, at) => ({ at, ms: test.ms, hits: test.hits[id] }))
      .filter(({ hits }) => isAtLoad || hits !== undefined)
      .sort((a, b) => a.ms - b.ms);
    if (chosen.length === 0) return 'NoCoverage';
    const tests = chosen.map(({ at, hits = 0 }) => ({
      at,
      hitMax: isAtLoad ? Number.MAX_SAFE_INTEGER : hits * HITS_FACTOR + HITS_MIN,
    }));
    const ms = TIME_MIN_MS + TIME_FACTOR * chosen.reduce((sum, test) => sum + test.ms, 0);
    const order: Order = { kind: 'fault', id, tests };
    if (isAtLoad) return this.#tryAlone(order, ms, id);
    this.#thread ??= await TestThread.open(this.#init);
    const outcome = (await this.#thread.ask(order, ms)) as Outcome;
    if (outcome === 'timeout') {
      await this.close();
      return 'Timeout';
    }
    if (!outcome.isDirty) return outcome.isFound ? 'Killed' : 'Survived';
    // Either this fault left something behind, or one before it did.
    await this.close();
    return this.#tryAlone(order, ms, undefined);
  }

  async #tryAlone(order: Order, ms: number, active: string | undefined): Promise<string> {
    let thread: TestThread;
    try {
      thread = await TestThread.open({ ...this.#init, active });
    } catch {
      return 'Killed'; // not even loaded
    }
    const outcome = (await thread.ask(order, ms)) as Outcome;
    await thread.close();
    if (outcome === 'timeout') return 'Timeout';
    return outcome.isFound ? 'Killed' : 'Survived';
  }

  async close(): Promise<void> {
    await this.#thread?.close();
    this.#thread = undefined;
  }
}

/** Errors: throws when a test fails without a fault. */
async function dryRun(init: WorkerInit): Promise<Dry> {
  const thread = await TestThread.open(init);
  const dry = await thread.ask({ kind: 'dry' }, DRY_MS_MAX);
  await thread.close();
  if (dry === 'timeout' || dry.kind !== 'dry') throw new Error('the tests take too long');
  const failed = dry.tests.filter(({ error }) => error !== undefined);
  const tell = ({ name, error }: DryTest): string => `\n  ${name}: ${error}`;
  if (failed.length > 0) throw new Error(`tests fail as it is: ${failed.map(tell).join('')}`);
  return dry;
}

/**
 * Plants the faults that Stryker plants, and runs the same tests, but in threads of this process that
 * load them once: seconds where Stryker takes minutes, since no vitest starts for each fault. The
 * tests of all files share a thread. `tests` are globs; tries `concurrency` faults at once.
 * Errors: throws when a test fails without a fault.
 */
export async function mutateInProcess(
  { file, lines, source }: Run,
  tests: readonly string[],
  concurrency: number,
): Promise<readonly Mutant[]> {
  const { code, faults } = await plantFaults(file, source, lines);
  const testFiles = tests.flatMap((glob) => globSync(glob)).filter((path) => !/\.pg\./.test(path));
  const paths = [...new Set(testFiles)].map((path) => resolve(path));
  const init: WorkerInit = { file: resolve(file), code, tests: paths, active: undefined };
  const dry = await dryRun(init);
  const results: Mutant[] = [];
  const open = faults.values();
  const work = async (): Promise<void> => {
    const trial = new Trial(init, dry);
    for (const fault of open) {
      const status = fault.status === 'Pending' ? await trial.statusOf(fault) : fault.status;
      results.push({ ...fault, status });
    }
    await trial.close();
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return results.toSorted((a, b) => a.location.start.line - b.location.start.line);
}
