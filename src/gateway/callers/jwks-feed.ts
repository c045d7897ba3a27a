import { createLocalJWKSet, type JSONWebKeySet, type JWK, type LocalJWKSet } from 'jose';
import type { IssuerDefinition } from './callers-file.ts';

const INTERVAL_MS = 5 * 60_000;
/** After a failure, and the least between two fetches. */
const RETRY_MS = 10_000;
const ANSWER_MS_MAX = 5_000;
const BYTES_MAX = 256 * 1024;
const KEYS_MAX = 100;

export type JwksFeedOptions = {
  readonly definition: IssuerDefinition;
  /** Other keys are in force. */
  readonly onChanged: () => void;
  /** Why the keys cannot be fetched, each time; null: they could be. Those in force stay. */
  readonly onFetched: (problem: string | null) => void;
};

/**
 * The keys of one issuer, fetched in the background alone: no call waits for it, and the address of keys that a token names
 * (`jku`, `x5u`) is never read. Over https, within 5 s, at most 256 KiB, without redirects. Keys that were fetched stay in
 * force until others are.
 */
export class JwksFeed {
  readonly definition: IssuerDefinition;
  readonly #options: JwksFeedOptions;
  #keys: readonly JWK[] = [];
  #set: LocalJWKSet | null = null;
  #timer: NodeJS.Timeout | undefined;
  #fetching: Promise<void> | undefined;
  #fetchedMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  constructor(options: JwksFeedOptions) {
    this.#options = options;
    this.definition = options.definition;
  }

  /** Finds the key of a JWT; null before the first fetch. */
  get set(): LocalJWKSet | null {
    return this.#set;
  }

  /** The keys that a JWT of that key id can be checked by, as text to compare; '' names none, so all keys count. */
  keyText(kid: string): string {
    return JSON.stringify(kid === '' ? this.#keys : this.#keys.filter((key) => key.kid === kid));
  }

  start(): void {
    void this.#fetch();
  }

  /** A key is missing. True if keys are being fetched, from now on at the latest; not so soon after the last time. */
  refresh(): boolean {
    if (this.#fetching !== undefined) return true;
    if (this.#isStopped || performance.now() - this.#fetchedMs < RETRY_MS) return false;
    void this.#fetch();
    return true;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#fetching;
  }

  #fetch(): Promise<void> {
    clearTimeout(this.#timer);
    this.#fetchedMs = performance.now();
    this.#fetching = this.#load()
      .then(
        (keys) => this.#took(keys),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #load(): Promise<readonly JWK[]> {
    const response = await fetch(this.definition.jwksUrl, {
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
      headers: { accept: 'application/json' },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`the answer has status ${response.status}`);
    }
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.byteLength;
      if (bytes > BYTES_MAX) throw new Error(`the answer has more than ${BYTES_MAX} bytes`);
      parts.push(part);
    }
    return keysOf(Buffer.concat(parts).toString());
  }

  #took(keys: readonly JWK[]): void {
    if (this.#isStopped) return;
    this.#plan(INTERVAL_MS);
    this.#options.onFetched(null);
    if (JSON.stringify(keys) === JSON.stringify(this.#keys)) return;
    this.#set = createLocalJWKSet({ keys: [...keys] } satisfies JSONWebKeySet);
    this.#keys = keys;
    this.#options.onChanged();
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return;
    this.#plan(RETRY_MS);
    const { message, cause } = error as Error;
    const text = cause instanceof Error ? `${message}: ${cause.message}` : message;
    this.#options.onFetched(text);
  }

  #plan(afterMs: number): void {
    this.#timer = setTimeout(() => void this.#fetch(), afterMs).unref();
  }
}

/** Reads a set of public keys. Errors: an Error that states what is wrong. */
function keysOf(text: string): readonly JWK[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Error('the answer is not valid JSON', { cause: error });
  }
  const keys = (json as { readonly keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length > KEYS_MAX) {
    throw new Error(`the answer has no list of up to ${KEYS_MAX} keys`);
  }
  // Keys that both sides know must not be among those that everybody may read.
  const found = keys.filter((key): key is JWK => isPublicKey(key));
  if (found.length === 0) throw new Error('the answer has no public key');
  return found;
}

function isPublicKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { kty } = value as JWK;
  return kty === 'RSA' || kty === 'EC' || kty === 'OKP';
}
