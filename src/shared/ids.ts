import { randomFillSync } from 'node:crypto';
import type { Clock } from './time/clock.ts';

const POOL_BYTES = 4096;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/**
 * Makes ids. Draws random bytes in blocks, because each draw costs more than an id. Tests inject
 * `fill`.
 */
export class IdSource {
  readonly #clock: Clock;
  readonly #fill: (bytes: Buffer) => void;
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #at = POOL_BYTES;

  constructor(clock: Clock, fill: (bytes: Buffer) => void = randomFillSync) {
    this.#clock = clock;
    this.#fill = fill;
  }

  /** A UUIDv7 (RFC 9562): 48 bits of milliseconds, 74 random ones. Cost: about 0.3 us. */
  uuid(): string {
    const at = this.#reserve(10);
    const pool = this.#pool;
    const time = Math.floor(this.#clock.nowMs()).toString(16).padStart(12, '0');
    const hex = (i: number): string => HEX[pool[at + i] as number] as string;
    const version = HEX[0x70 | ((pool[at] as number) & 0x0f)] as string;
    const variant = HEX[0x80 | ((pool[at + 2] as number) & 0x3f)] as string;
    return `${time.slice(0, 8)}-${time.slice(8)}-${version}${hex(1)}-${variant}${hex(3)}-${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`;
  }

  /** Decimal text of a random signed 64-bit number. */
  forkId(): string {
    return this.#pool.readBigInt64LE(this.#reserve(8)).toString();
  }

  /** 256 random bits as base64url: 43 characters. */
  secret(): string {
    const at = this.#reserve(32);
    const bytes = this.#pool.subarray(at, at + 32);
    const text = bytes.toString('base64url');
    // The pool does not keep bytes that were issued as a secret.
    bytes.fill(0);
    return text;
  }

  /** Offset of `count` unused random bytes in the pool. */
  #reserve(count: number): number {
    if (this.#at + count > POOL_BYTES) {
      this.#fill(this.#pool);
      this.#at = 0;
    }
    const at = this.#at;
    this.#at += count;
    return at;
  }
}
