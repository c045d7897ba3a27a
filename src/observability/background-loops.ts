import type { LoopReport } from '../shared/loop-report.ts';
import type { EventLog } from './logger.ts';
import type { MetricStore } from './metric-store.ts';

/** Failures in a row by which a loop counts as failing: one may be a restart of PostgreSQL. */
const FAILURES_MIN = 3;
/** Lines about failures of one loop are so far apart, ms, but for the one from which on it counts as failing. */
const LOG_INTERVAL_MS = 60_000;

export type BackgroundLoopsOptions = {
  readonly log: EventLog;
  /** Fields of a log line about an error, SQLSTATE among them. */
  readonly describe: (error: unknown) => Readonly<Record<string, unknown>>;
  readonly monotonicMs: () => number;
};

/**
 * The work that a service does again and again by itself, each loop by its name. Nobody waits for its answers, so that
 * its failures are logged, counted, and seen by `failing`. Names are few and fixed.
 */
export class BackgroundLoops {
  readonly #options: BackgroundLoopsOptions;
  readonly #loops = new Map<string, Loop>();

  constructor(options: BackgroundLoopsOptions) {
    this.#options = options;
  }

  /** The loop of this name. */
  loop(name: string): LoopReport {
    let loop = this.#loops.get(name);
    if (loop === undefined) this.#loops.set(name, (loop = new Loop(name, this.#options)));
    return loop;
  }

  /** The names of those whose last three runs or more failed. O(loops). */
  get failing(): readonly string[] {
    return [...this.#loops.values()].filter(({ isFailing }) => isFailing).map(({ name }) => name);
  }

  /** Shows them in `store`, as series whose names begin with `prefix`; once. */
  showIn(store: MetricStore, prefix: string): void {
    const runs = store.counter({
      name: `${prefix}_background_runs_total`,
      help: 'Runs of loops in the background, by loop and outcome.',
      labelNames: ['loop', 'outcome'],
    });
    const failing = store.gauge({
      name: `${prefix}_background_failing`,
      help: '1 while the last three runs of a loop or more failed, else 0.',
      labelNames: ['loop'],
    });
    store.onCollect(() => {
      for (const loop of this.#loops.values()) {
        const { name, isFailing } = loop;
        for (const outcome of ['done', 'failed'] as const) {
          runs.inc({ loop: name, outcome }, loop.counts[outcome]);
          loop.counts[outcome] = 0;
        }
        failing.set({ loop: name }, isFailing ? 1 : 0);
      }
    });
  }
}

class Loop implements LoopReport {
  readonly name: string;
  /** Since they were shown last. */
  readonly counts = { done: 0, failed: 0 };
  readonly #options: BackgroundLoopsOptions;
  #failures = 0;
  #loggedMs = -Infinity;
  #isLogged = false;

  constructor(name: string, options: BackgroundLoopsOptions) {
    this.name = name;
    this.#options = options;
  }

  get isFailing(): boolean {
    return this.#failures >= FAILURES_MIN;
  }

  succeeded(): void {
    this.counts.done += 1;
    const failures = this.#failures;
    this.#failures = 0;
    if (!this.#isLogged) return;
    this.#isLogged = false;
    // Logged at least at the level of the failure, so that a filter never shows the failure alone.
    this.#options.log('warn', 'background_recovered', { loop: this.name, failures });
  }

  failed(error: unknown): void {
    this.counts.failed += 1;
    this.#failures += 1;
    const { log, describe, monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    if (this.#failures !== FAILURES_MIN && nowMs - this.#loggedMs < LOG_INTERVAL_MS) return;
    this.#loggedMs = nowMs;
    this.#isLogged = true;
    const fields = { loop: this.name, failures: this.#failures, ...describe(error) };
    log(this.isFailing ? 'error' : 'warn', 'background_failed', fields);
  }
}
