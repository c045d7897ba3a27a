import { LatencyHistogram } from './latency-histogram.ts';
import type { GeneratorWindow, OperationWindow } from './messages.ts';

const FAILURES_KEPT = 3;

class OperationCounts {
  readonly latencies = new LatencyHistogram();
  answered = 0;
  wrong = 0;
  refused = 0;
}

/** What one generator counts within a second. */
export class SecondWindow {
  readonly #second: number;
  readonly #operations = new Map<string, OperationCounts>();
  readonly #refused = new Map<string, number>();
  readonly #failures: string[] = [];
  readonly #late = new LatencyHistogram();
  readonly #cpu = process.cpuUsage();
  offered = 0;
  notSent = 0;

  constructor(second: number) {
    this.#second = second;
  }

  sentLate(ms: number): void {
    this.#late.record(ms);
  }

  answered(operation: string, tookMs: number, fault: string | undefined): void {
    const counts = this.#of(operation);
    counts.answered += 1;
    counts.latencies.record(tookMs);
    if (fault === undefined) return;
    counts.wrong += 1;
    if (this.#failures.length < FAILURES_KEPT) this.#failures.push(fault);
  }

  refused(operation: string, why: string): void {
    this.#of(operation).refused += 1;
    this.#refused.set(why, (this.#refused.get(why) ?? 0) + 1);
  }

  close(): GeneratorWindow {
    const { user, system } = process.cpuUsage(this.#cpu);
    const operations: Record<string, OperationWindow> = {};
    for (const [name, { answered, wrong, refused, latencies }] of this.#operations) {
      operations[name] = { answered, wrong, refused, latencies: latencies.pack() };
    }
    return {
      second: this.#second,
      offered: this.offered,
      notSent: this.notSent,
      operations,
      refused: Object.fromEntries(this.#refused),
      failures: this.#failures,
      late: this.#late.pack(),
      cpuSeconds: (user + system) / 1e6,
    };
  }

  #of(operation: string): OperationCounts {
    let counts = this.#operations.get(operation);
    if (counts === undefined) this.#operations.set(operation, (counts = new OperationCounts()));
    return counts;
  }
}
