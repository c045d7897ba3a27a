import { PG_REFUSALS, type PgRefusal, refusalIn } from './pg-errors.ts';

/**
 * A refusal counts as present for this long: renewals, which come each second, and writes meet it
 * again meanwhile.
 */
export const REFUSED_FOR_MS = 10_000;

/** Remembers what the server has refused lately, for readiness, metrics and the log. */
export class StoreRefusals {
  readonly #nowMs: () => number;
  readonly #onBegun: (refusal: PgRefusal, error: unknown) => void;
  readonly #counts = new Map<PgRefusal, number>(PG_REFUSALS.map((one) => [one, 0]));
  #latest: PgRefusal | undefined;
  #latestMs = 0;

  /** `nowMs` is the monotonic clock. `onBegun` is called for each refusal that was not present already. */
  constructor(nowMs: () => number, onBegun: (refusal: PgRefusal, error: unknown) => void) {
    this.#nowMs = nowMs;
    this.#onBegun = onBegun;
  }

  /** Refusals since the start, of each kind. */
  get counts(): ReadonlyMap<PgRefusal, number> {
    return this.#counts;
  }

  /** The present refusal of the server, as far as is known; undefined: none. */
  get current(): PgRefusal | undefined {
    return this.#nowMs() - this.#latestMs < REFUSED_FOR_MS ? this.#latest : undefined;
  }

  /** A statement or a connect has failed, or a call with it as a cause: any error. O(depth of its causes). */
  readonly note = (error: unknown): void => {
    for (let at = error; at instanceof Error; at = at.cause) {
      const refusal = refusalIn(at);
      if (refusal === undefined) continue;
      const isNew = this.current !== refusal;
      this.#latest = refusal;
      this.#latestMs = this.#nowMs();
      this.#counts.set(refusal, (this.#counts.get(refusal) ?? 0) + 1);
      if (isNew) this.#onBegun(refusal, at);
      return;
    }
  };
}
