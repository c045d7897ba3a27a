import { Counts, ensured, increase } from './counts.ts';
import { LatencyHistogram } from './latency-histogram.ts';
import type { GeneratorWindow } from './messages.ts';

const FAILURES_KEPT = 3;

/** What one generator counts within a second. */
export class SecondWindow {
  readonly #second: number;
  readonly #operations = new Map<string, Counts>();
  readonly #refused = new Map<string, number>();
  readonly #failures: string[] = [];
  readonly #cpu = process.cpuUsage();
  /** How late it sent what was due. */
  readonly late = new LatencyHistogram();
  offered = 0;
  notSent = 0;

  constructor(second: number) {
    this.#second = second;
  }

  answered(operation: string, tookMs: number, fault: string | undefined): void {
    const counts = ensured(this.#operations, operation, () => new Counts());
    counts.answered += 1;
    counts.latencies.record(tookMs);
    if (fault === undefined) return;
    counts.wrong += 1;
    if (this.#failures.length < FAILURES_KEPT) this.#failures.push(fault);
  }

  refused(operation: string, why: string): void {
    ensured(this.#operations, operation, () => new Counts()).refused += 1;
    increase(this.#refused, why, 1);
  }

  close(): GeneratorWindow {
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      second: this.#second,
      offered: this.offered,
      notSent: this.notSent,
      operations: Object.fromEntries(
        [...this.#operations].map(([name, one]) => [name, one.pack()]),
      ),
      refused: Object.fromEntries(this.#refused),
      failures: this.#failures,
      late: this.late.pack(),
      cpuSeconds: (user + system) / 1e6,
    };
  }
}
