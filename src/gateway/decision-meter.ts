import type { DecisionRpc, Metrics } from '../observability/metrics.ts';
import { AppError, type ErrorReason } from '../shared/app-error.ts';
import { codeNameOfReason } from './connect-error.ts';

/** Reasons that only an evaluation gives: workers report those with their figures. */
const COUNTED_BY_WORKERS: ReadonlySet<ErrorReason> = new Set([
  'BUDGET_EXHAUSTED',
  'SHARD_UNAVAILABLE',
  'SHARD_TOO_LARGE',
]);

/** The part of the metrics that decision calls feed. */
export type DecisionMetrics = Pick<Metrics, 'checkDuration' | 'decisionError' | 'batchCheckItems'>;

/**
 * Counts decision calls as the gateway sees them: how long each took, and the code of each that
 * failed. Decisions, failed items and backstops are counted where they are evaluated.
 */
export class DecisionMeter {
  readonly #metrics: DecisionMetrics;

  constructor(metrics: DecisionMetrics) {
    this.#metrics = metrics;
  }

  /** Runs `work` and counts it. `startedMs` is of `performance.now()`. */
  async measure<T>(rpc: DecisionRpc, work: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await work();
    } catch (error) {
      this.failed(rpc, error);
      throw error;
    } finally {
      this.ended(rpc, startedMs);
    }
  }

  /** Hot. Counts the time from `startedMs` (of `performance.now()`) until now. */
  ended(rpc: DecisionRpc, startedMs: number): void {
    this.#metrics.checkDuration[rpc].observe((performance.now() - startedMs) / 1000);
  }

  /** Counts a failed call by its Connect code, unless the worker that failed it has. */
  failed(rpc: DecisionRpc, error: unknown): void {
    const reason = error instanceof AppError ? error.reason : 'INTERNAL';
    if (COUNTED_BY_WORKERS.has(reason)) return;
    this.#metrics.decisionError(rpc, codeNameOfReason(reason));
  }

  /** Counts the size of a BatchCheck. */
  batchOf(items: number): void {
    this.#metrics.batchCheckItems.observe(items);
  }
}
