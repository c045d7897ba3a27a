import { randomBytes } from 'node:crypto';
import { bearerStart, isSecretAt } from '../../http/service-tokens.ts';
import type { Credential } from './caller.ts';
import { tokenHash } from './token-hash.ts';

/** A token whose owner is known. */
export type KnownToken = {
  readonly text: string;
  readonly credential: Credential;
  /** Wall clock, ms; Infinity: as long as the file has it. */
  readonly expiresAtMs: number;
};

/**
 * Tokens by a keyed hash, which whoever guesses does not know. Those in one bucket are compared in full, in time that depends on lengths
 * alone. What a look-up takes does not grow with their number.
 */
export class CredentialTable {
  readonly #key0 = randomBytes(4).readInt32LE();
  readonly #key1 = randomBytes(4).readInt32LE();
  readonly #buckets = new Map<number, readonly KnownToken[]>();
  readonly #all = new Map<string, KnownToken>();

  /** Hot. What the `Authorization` header carries, if it is known and has not expired. */
  find(header: string): Credential | null {
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

  /** Adds a token, or puts it in the place of what there is of that text. */
  set(known: KnownToken): void {
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
