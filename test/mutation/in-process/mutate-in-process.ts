import { once } from 'node:events';
import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Mutant } from '../judge.ts';
import { FoundFaults } from './found-faults.ts';
import { type Fault, plantFaults } from './plant-faults.ts';
import type { DryTest, Order, Report, WorkerInit } from './tests-worker.ts';

type Run = {
  readonly file: string;
  /** FROM-TO, or '' for all. */
  readonly lines: string;
  readonly source: string;
  /** No fault is begun after it, on `performance.now()`; those left stay 'Pending'. */
  readonly untilMs?: number;
};
type Dry = Extract<Report, { kind: 'dry' }>;
type Outcome = Extract<Report, { kind: 'fault' }> | 'timeout';

type Tried = { readonly status: string; readonly found?: number | undefined };

const triedAs = ({ found }: Exclude<Outcome, 'timeout'>): Tried => ({
  status: found === undefined ? 'Survived' : 'Killed',
  found,
});

/** A fault's tests may pass its place so many times more often than without it. */
const HITS_FACTOR = 100;
const HITS_MIN = 1000;
/** A fault may take so much more of the processor than its tests do. */
const TIME_FACTOR = 6;
const TIME_MIN_MS = 4000;
const TIME_LOOK_MS = 250;
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

  /**
   * The answer, or 'timeout' when the thread ended or has to be ended: this process took `ms` of the
   * processor meanwhile. A clock would count how busy others are.
   */
  ask(order: Order, ms: number): Promise<Report | 'timeout'> {
    return new Promise((done) => {
      const end = (report: Report | 'timeout'): void => {
        clearInterval(timer);
        this.#worker.off('message', end).off('exit', late);
        done(report);
      };
      const late = (): void => end('timeout');
      const start = process.cpuUsage();
      const timer = setInterval(() => {
        const { user, system } = process.cpuUsage(start);
        if (user + system > ms * 1000) late();
      }, TIME_LOOK_MS);
      this.#worker.once('message', end).once('exit', late);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      this.#worker.postMessage(order);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Tries faults one after the other. */
class Trial {
  readonly #init: WorkerInit;
  readonly #dry: Dry;
  readonly #memory: FoundFaults;
  /** Trials at the same time: each may take as much of the processor. */
  readonly #concurrency: number;
  #thread: TestThread | undefined;

  constructor(init: WorkerInit, dry: Dry, memory: FoundFaults, concurrency: number) {
    this.#init = init;
    this.#dry = dry;
    this.#memory = memory;
    this.#concurrency = concurrency;
  }

  /** 'Killed', 'Timeout', 'Survived' or 'NoCoverage'. */
  async statusOf(fault: Fault): Promise<string> {
    const { status, found } = await this.#try(fault);
    const by = found === undefined ? undefined : this.#dry.tests[found]?.file;
    if (status === 'Survived') this.#memory.add(fault, status, this.#init.tests);
    else if (status !== 'NoCoverage') this.#memory.add(fault, status, by === undefined ? [] : [by]);
    return status;
  }

  async #try({ id }: Fault): Promise<Tried> {
    // What a fault does while the code is loaded shows only in code that is loaded anew.
    const isAtLoad = this.#dry.atLoad[id] !== undefined;
    const chosen = this.#dry.tests
      .map((test, at) => ({ at, ms: test.ms, hits: test.hits[id] }))
      .filter(({ hits }) => isAtLoad || hits !== undefined)
      .sort((a, b) => a.ms - b.ms);
    if (chosen.length === 0) return { status: 'NoCoverage' };
    const tests = chosen.map(({ at, hits = 0 }) => ({
      at,
      hitMax: isAtLoad ? Number.MAX_SAFE_INTEGER : hits * HITS_FACTOR + HITS_MIN,
    }));
    const own = TIME_MIN_MS + TIME_FACTOR * chosen.reduce((sum, test) => sum + test.ms, 0);
    const ms = own * this.#concurrency;
    const order: Order = { kind: 'fault', id, tests };
    if (isAtLoad) return this.#tryAlone(order, ms, id);
    this.#thread ??= await TestThread.open(this.#init);
    const outcome = (await this.#thread.ask(order, ms)) as Outcome;
    if (outcome === 'timeout') {
      await this.close();
      return { status: 'Timeout' };
    }
    if (!outcome.isDirty) return triedAs(outcome);
    // Either this fault left something behind, or one before it did.
    await this.close();
    return this.#tryAlone(order, ms, undefined);
  }

  async #tryAlone(order: Order, ms: number, active: string | undefined): Promise<Tried> {
    let thread: TestThread;
    try {
      thread = await TestThread.open({ ...this.#init, active });
    } catch {
      return { status: 'Killed' }; // not even loaded
    }
    const outcome = (await thread.ask(order, ms)) as Outcome;
    await thread.close();
    return outcome === 'timeout' ? { status: 'Timeout' } : triedAs(outcome);
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
 * tests of all files share a thread. `tests` are globs; tries `concurrency` faults at once; what
 * became of them is kept in the file `memory`, so that a run that ended early is gone on with.
 * Errors: throws when a test fails without a fault.
 */
export async function mutateInProcess(
  { file, lines, source, untilMs = Number.POSITIVE_INFINITY }: Run,
  tests: readonly string[],
  concurrency: number,
  memory: string,
): Promise<readonly Mutant[]> {
  const { code, faults } = await plantFaults(file, source, lines);
  const testFiles = tests.flatMap((glob) => globSync(glob)).filter((path) => !/\.pg\./.test(path));
  const paths = [...new Set(testFiles)].map((path) => resolve(path));
  const init: WorkerInit = { file: resolve(file), code, tests: paths, active: undefined };
  const dry = await dryRun(init);
  const results: Mutant[] = [];
  const known = new FoundFaults(memory, source, paths);
  const open = faults.values();
  const work = async (): Promise<void> => {
    const trial = new Trial(init, dry, known, concurrency);
    for (const fault of open) {
      let status = fault.status === 'Pending' ? known.statusOf(fault) : fault.status;
      if (status === undefined)
        status = performance.now() < untilMs ? await trial.statusOf(fault) : fault.status;
      results.push({ ...fault, status });
    }
    await trial.close();
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  known.save();
  return results.toSorted((a, b) => a.location.start.line - b.location.start.line);
}
