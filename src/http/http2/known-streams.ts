import { KNOWN_RESETS_MAX } from './connection-options.ts';

/** Number of gaps in the ids of streams that are remembered. */
const GAPS_MAX = 16;

/** Records of ids that have no stream any more. Holds a bounded number of them. */
export class KnownStreams {
  /** A ring of ids that were reset, 0 for an empty place; made for the first one. */
  #resets: Uint32Array | null = null;
  #resetCount = 0;
  /** First and last id of each gap, in pairs. */
  readonly #gaps: number[] = [];
  #lastId = 0;

  /** The highest id that the peer has used. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Records a stream that the peer opens. Lower ids that it left out are closed by that (RFC 9113 section 5.1.1). */
  opened(id: number): void {
    if (id > this.#lastId + 2) {
      this.#gaps.push(this.#lastId + 1, id - 1);
      if (this.#gaps.length > GAPS_MAX * 2) this.#gaps.splice(0, 2);
    }
    this.#lastId = id;
  }

  wasReset(id: number): void {
    this.#resets ??= new Uint32Array(KNOWN_RESETS_MAX);
    this.#resets[this.#resetCount % KNOWN_RESETS_MAX] = id;
    this.#resetCount += 1;
  }

  /** Whether we reset it, so that frames of it may still come. O(resets that are remembered). */
  isReset(id: number): boolean {
    return this.#resets !== null && this.#resets.includes(id);
  }

  /** Whether the id was left out, and its stream never opened. */
  wasLeftOut(id: number): boolean {
    for (let i = 0; i < this.#gaps.length; i += 2) {
      if (id >= (this.#gaps[i] as number) && id <= (this.#gaps[i + 1] as number)) return true;
    }
    return false;
  }
}
