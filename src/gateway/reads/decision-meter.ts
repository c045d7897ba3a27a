import type { ConnectError } from '@connectrpc/connect';
import { codeToString } from '@connectrpc/connect/protocol-connect';
import { QUERY_RPCS, type QueryRpc } from '../../protocol/queries.ts';
import { AppError } from '../../shared/app-error.ts';
import { codeNameOfReason } from '../connect/connect-error.ts';

/** Values of the label `rpc`. CheckSet is a Check with a subject_set. */
export const DECISION_RPCS = [
  'Check',
  'CheckSet',
  'BatchCheck',
  'Expand',
  'ListObjects',
  ...QUERY_RPCS,
] as const;
export type DecisionRpc = (typeof DECISION_RPCS)[number];

/** A Check that cannot be decoded counts as Check: whether it names a set is not known. */
const DECISION_OF_RPC: ReadonlyMap<string, DecisionRpc> = new Map([
  ...(['Check', 'BatchCheck', 'Expand', 'ListObjects'] as const).map(
    (rpc): [string, DecisionRpc] => [`workspace.v1.AuthzService/${rpc}`, rpc],
  ),
  ...QUERY_RPCS.map((rpc): [string, DecisionRpc] => [
    `gatehouse.v1.QueryService/${methodOf(rpc)}`,
    rpc,
  ]),
]);

/** The method's own name. */
function methodOf(rpc: QueryRpc): string {
  return rpc.replace(/^Query/, '');
}

/** Metrics of decision calls. */
export interface DecisionMetrics {
  /** Seconds. */
  readonly checkDuration: Readonly<Record<DecisionRpc, Observations>>;
  /** A failed decision call or BatchCheck item; `code` is the Connect code's name. */
  readonly decisionError: (rpc: DecisionRpc, code: string, count?: number) => void;
  readonly batchCheckItems: Observations;
}

interface Observations {
  observe(value: number): void;
}

/**
 * Counts decision calls as the gateway sees them: how long each took, and the code of each that
 * failed, items that are not valid too. What is evaluated is counted there: decisions, failed items, backstops.
 */
export class DecisionMeter {
  readonly #metrics: DecisionMetrics;
  readonly #counted = new WeakSet<Error>();

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

  /** Counts a failed call by its Connect code, once for each error object. */
  failed(rpc: DecisionRpc, error: unknown): void {
    if (error instanceof Error) this.#counted.add(error);
    const reason = error instanceof AppError ? error.reason : 'INTERNAL';
    this.#metrics.decisionError(rpc, codeNameOfReason(reason));
  }

  /** Counts an item of a BatchCheck that was refused; workers count those that fail in the evaluation. */
  itemFailed(error: AppError, rpc: DecisionRpc = 'BatchCheck'): void {
    this.#metrics.decisionError(rpc, codeNameOfReason(error.reason));
  }

  /** Counts a call of `rpc` ("package.Service/Method") that failed outside its handler: decoding. */
  failedOutside(rpc: string, failure: unknown, shown: ConnectError): void {
    const decision = DECISION_OF_RPC.get(rpc);
    if (decision === undefined) return;
    if (failure instanceof Error && this.#counted.has(failure)) return;
    this.#metrics.decisionError(decision, codeToString(shown.code));
  }

  /** Counts the size of a BatchCheck. */
  batchOf(items: number): void {
    this.#metrics.batchCheckItems.observe(items);
  }
}
