import { hash } from 'node:crypto';

const REFUSED_MAX = 1_024;
const REFUSED_FOR_MS = 600_000;

/**
 * Requests that were under evaluation when their worker died, by fingerprint, so that the same
 * bytes end no second worker. Bounded: the oldest is forgotten at 1,024, and each after ten
 * minutes (an innocent request that met a dying worker must not stay refused for ever).
 * Costs nothing while empty; a hash per request of a remembered length otherwise.
 */
export class RefusedRequests {
  readonly #nowMs: () => number;
  readonly #untilMs = new Map<string, number>();
  readonly #lengths = new Map<number, number>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#untilMs.size;
  }

  /** Remembers one request: `label` names method, format and shard, `body` is what was evaluated. */
  remember(label: string, body: Uint8Array): void {
    const key = fingerprint(label, body);
    if (!this.#untilMs.has(key)) {
      this.#lengths.set(body.length, (this.#lengths.get(body.length) ?? 0) + 1);
    }
    this.#untilMs.set(key, this.#nowMs() + REFUSED_FOR_MS);
    if (this.#untilMs.size > REFUSED_MAX) {
      for (const oldest of this.#untilMs.keys()) {
        this.#forget(oldest);
        break;
      }
    }
  }

  /** Whether this request ended a worker before. `label` is only made when the length matches. */
  isRefused(label: () => string, body: Uint8Array): boolean {
    if (this.#untilMs.size === 0 || !this.#lengths.has(body.length)) return false;
    const key = fingerprint(label(), body);
    const untilMs = this.#untilMs.get(key);
    if (untilMs === undefined) return false;
    if (untilMs > this.#nowMs()) return true;
    this.#forget(key);
    return false;
  }

  #forget(key: string): void {
    this.#untilMs.delete(key);
    const length = Number(key.slice(0, key.indexOf(' ')));
    const count = (this.#lengths.get(length) ?? 1) - 1;
    if (count <= 0) this.#lengths.delete(length);
    else this.#lengths.set(length, count);
  }
}

function fingerprint(label: string, body: Uint8Array): string {
  return `${body.length} ${hash('sha256', label, 'base64')} ${hash('sha256', body, 'base64')}`;
}
