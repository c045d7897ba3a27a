import { randomBytes } from 'node:crypto';
import { bearerStart, isSecretAt } from '../../http/service-tokens.ts';
import type { Credential } from './caller.ts';

/** A token whose owner is known. */
export type KnownToken = {
  readonly text: string;
  readonly credential: Credential;
  /** Wall clock, ms; Infinity: as long as the file has it. */
  readonly expiresAtMs: number;
};

/**
 * Tokens by a keyed hash; the key is random, so nobody can guess which tokens share a bucket. Those in one bucket are compared
 * in full, in time that depends on lengths alone. The time of a look-up does not grow with their number.
 */
export class CredentialTable {
  readonly #key0 = randomBytes(4).readInt32LE();
  readonly #key1 = randomBytes(4).readInt32LE();
  readonly #buckets = new Map<number, readonly KnownToken[]>();
  readonly #all = new Map<string, KnownToken>();

  /** Hot. What the `Authorization` header carries, if it is known and has not expired. */
  peek(header: string): Credential | null {
    const start = bearerStart(header);
    if (start < 0) return null;
    const bucket = this.#buckets.get(tokenHash(header, start, this.#key0, this.#key1));
    if (bucket === undefined) return null;
    let found: KnownToken | null = null;
    for (const known of bucket) if (isSecretAt(header, start, known.text)) found = known;
    if (found === null) return null;
    return found.expiresAtMs === Infinity || found.expiresAtMs > Date.now()
      ? found.credential
      : null;
  }

  /** Adds a token, or replaces the one of that text. */
  remember(known: KnownToken): void {
    this.delete(known.text);
    const hash = this.#hashOf(known.text);
    this.#buckets.set(hash, [...(this.#buckets.get(hash) ?? []), known]);
    this.#all.set(known.text, known);
  }

  get(text: string): KnownToken | undefined {
    return this.#all.get(text);
  }

  delete(text: string): void {
    if (!this.#all.delete(text)) return;
    const hash = this.#hashOf(text);
    const rest = (this.#buckets.get(hash) ?? []).filter((other) => other.text !== text);
    if (rest.length === 0) this.#buckets.delete(hash);
    else this.#buckets.set(hash, rest);
  }

  /** In the order in which they were added. */
  values(): Iterable<KnownToken> {
    return this.#all.values();
  }

  #hashOf(text: string): number {
    return tokenHash(text, 0, this.#key0, this.#key1);
  }
}

/**
 * HalfSipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"; reference code of the same authors) with a key of
 * 64 bits, over the low bytes of the characters of `text` from `start` on. Without the key nobody can know which texts share a
 * bucket, so that the time of a look-up shows nothing of what is in the table. Hot: no allocation; about 2 ns a character.
 */
export function tokenHash(text: string, start: number, key0: number, key1: number): number {
  let v0 = key0;
  let v1 = key1;
  let v2 = 0x6c796765 ^ key0;
  let v3 = 0x74656462 ^ key1;
  const length = text.length - start;
  const whole = text.length - (length & 3);
  let word = 0;
  for (let i = start; ; i += 4) {
    const isLast = i >= whole;
    if (isLast) {
      word = length << 24;
      for (let j = 0; i + j < text.length; j++) word |= (text.charCodeAt(i + j) & 0xff) << (8 * j);
    } else {
      word =
        (text.charCodeAt(i) & 0xff) |
        ((text.charCodeAt(i + 1) & 0xff) << 8) |
        ((text.charCodeAt(i + 2) & 0xff) << 16) |
        (text.charCodeAt(i + 3) << 24);
    }
    v3 ^= word;
    // Three more rounds close the sum.
    for (let rounds = isLast ? 4 : 1; rounds > 0; rounds--) {
      if (isLast && rounds === 3) {
        v0 ^= word;
        v2 ^= 0xff;
      }
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    if (isLast) return (v1 ^ v3) >>> 0;
    v0 ^= word;
  }
}
