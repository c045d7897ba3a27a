import { type Code, createContextKey } from '@connectrpc/connect';
import { codeToString } from '@connectrpc/connect/protocol-connect';

/** Report of one call of a method, refused or not. */
export type CallReport = {
  /** "notify.v1.NotifyService/Notify" */
  readonly rpc: string;
  readonly requestId: string;
  /** `ok` or a Connect code. */
  readonly code: string;
  readonly durationMs: number;
};

/** Record of one call, from its head to its answer; reported once. */
export class CallRecord {
  readonly #rpc: string;
  readonly #requestId: string;
  readonly #onCall: (report: CallReport) => void;
  readonly #startMs = performance.now();
  #code = 'ok';
  #isEnded = false;

  constructor(rpc: string, requestId: string, onCall: (report: CallReport) => void) {
    this.#rpc = rpc;
    this.#requestId = requestId;
    this.#onCall = onCall;
  }

  /** Notes the code of a failed call. */
  failed(code: Code): void {
    this.#code = codeToString(code);
  }

  /** Reports the call: it is answered, or the client no longer waits. Idempotent. */
  finish(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const durationMs = performance.now() - this.#startMs;
    this.#onCall({ rpc: this.#rpc, requestId: this.#requestId, code: this.#code, durationMs });
  }
}

/** Context key of the record of a call; null without a callback for calls. */
export const kCallRecord = createContextKey<CallRecord | null>(null, {
  description: 'call record',
});
