/** Time before which there is no forecast: most loads are over by then, and a rate means little. */
export const FORECAST_AFTER_MS = 500;
/** A load that ends sooner is waited for, whatever the estimate. */
const WORTH_WAITING_MS = 2_000;
/** The estimate may be so much too long before anybody is refused wrongly. */
const CERTAIN_SHARE = 0.6;

/** Fewer take seconds at most: when they do not come, it is not for their number, and nobody knows for how long. */
const LARGE_ROWS = 100_000;

/** How long a load will still take, by how far it has come and how many rows are expected. Times are in ms. */
export class LoadForecast {
  readonly #startMs: number;
  #rows: number | undefined;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** About so many rows will have come at the end. */
  expect(rows: number): void {
    this.#rows = rows;
  }

  /** The time left once `rows` have come; undefined: unknown. */
  leftMs(rows: number, nowMs: number): number | undefined {
    const elapsedMs = nowMs - this.#startMs;
    if (this.#rows === undefined || this.#rows < LARGE_ROWS) return undefined;
    if (rows === 0 || elapsedMs < FORECAST_AFTER_MS) return undefined;
    return Math.max(0, this.#rows - rows) * (elapsedMs / rows);
  }
}

/** Whether who can wait for `patienceMs` waits in vain for what takes `leftMs` by a forecast. */
export function isFutile(leftMs: number, patienceMs: number): boolean {
  return leftMs > WORTH_WAITING_MS && patienceMs < leftMs * CERTAIN_SHARE;
}
