import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/**
 * Hands out the memory of one tuple index and counts it, to the byte. Every buffer has a fixed size, so
 * that a SharedArrayBuffer can be used instead when several workers read one copy.
 */
export class PageAllocator {
  /** Bytes handed out and not yet released. */
  bytes = 0;
  readonly bytesMax: number;

  /** `bytesMax`: the largest size that the index may reach. */
  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Zeroed words. Throws SHARD_TOO_LARGE at the limit: the index is then incomplete and must be dropped. */
  words(count: number): Uint32Array {
    this.#charge(count * 4);
    return new Uint32Array(count);
  }

  /** Zeroed bytes; errors as `words`. */
  octets(count: number): Uint8Array {
    this.#charge(count);
    return new Uint8Array(count);
  }

  /** Takes back what `words` or `octets` returned; the caller forgets it. */
  release(array: Uint32Array | Uint8Array): void {
    this.bytes -= array.byteLength;
  }

  #charge(bytes: number): void {
    if (this.bytes + bytes > this.bytesMax) {
      throw new AppError<AuthzReason>(
        'SHARD_TOO_LARGE',
        'the tuple index would exceed its memory limit',
        {
          bytesMax: String(this.bytesMax),
        },
      );
    }
    this.bytes += bytes;
  }
}
