import { assert } from '../shared/assert.ts';

/** Decides whether an `Authorization` header carries a service token. */
export interface Authenticator {
  /** False when no token is configured: then every caller is trusted. */
  readonly enabled: boolean;
  /** Hot. `header` is the whole header value, '' when absent. O(sum of token lengths), no allocation. */
  accepts(header: string): boolean;
  /**
   * Hot. Index of the token in the header among those configured; -1 where it is none of them, 0 where every caller is
   * trusted. Cost as `accepts`.
   */
  tokenOf(header: string): number;
}

/** Length of `Bearer ` with its space. */
const SCHEME_LENGTH = 7;

/** An authenticator whose tokens can be replaced: from the next call on, on open connections too. */
export interface ReplaceableAuthenticator extends Authenticator {
  /** Replaces all tokens. An empty list would admit every caller, and is refused. */
  replace(tokens: readonly string[]): void;
}

/**
 * Makes an authenticator for the configured tokens (already trimmed, none empty). The scheme is case-insensitive; the token
 * follows after one or more spaces.
 *
 * Every token is compared in full and the loop never ends early. The time taken thus says nothing about how much of a guess
 * was right; it shows only the length of the header.
 */
export function createAuthenticator(tokens: readonly string[]): ReplaceableAuthenticator {
  return new TokenAuthenticator(tokens);
}

class TokenAuthenticator implements ReplaceableAuthenticator {
  readonly enabled: boolean;
  #tokens: readonly string[];

  constructor(tokens: readonly string[]) {
    this.enabled = tokens.length > 0;
    this.#tokens = tokens;
  }

  replace(tokens: readonly string[]): void {
    assert(
      this.enabled && tokens.length > 0,
      'authentication is switched on and off at start alone',
    );
    this.#tokens = tokens;
  }

  accepts(header: string): boolean {
    return this.tokenOf(header) >= 0;
  }

  tokenOf(header: string): number {
    if (!this.enabled) return 0;
    const start = bearerStart(header);
    return start < 0 ? -1 : indexAmong(header, start, this.#tokens);
  }
}

/** Whether `given` is one of `secrets`, all of which are compared; time depends on their lengths only. */
export function isOneOfSecrets(given: string, secrets: readonly string[]): boolean {
  return indexAmong(given, 0, secrets) >= 0;
}

/** Hot. Where the token of an `Authorization` header begins, -1 where its scheme is another one. */
export function bearerStart(header: string): number {
  if (!hasBearerScheme(header)) return -1;
  let start = SCHEME_LENGTH;
  while (header.charCodeAt(start) === 0x20) start += 1;
  return start;
}

/** The token of an `Authorization` header, undefined where its scheme is another one. */
export function bearerToken(header: string): string | undefined {
  const start = bearerStart(header);
  return start < 0 ? undefined : header.slice(start);
}

/** Hot. Whether `text` from `start` on is `secret`; compares all of it in any case. */
export function isSecretAt(text: string, start: number, secret: string): boolean {
  return differs(text, start, secret) === 0;
}

function indexAmong(text: string, start: number, secrets: readonly string[]): number {
  let found = 0;
  for (let i = 0; i < secrets.length; i++) {
    const isSame = differs(text, start, secrets[i] as string) === 0 ? 1 : 0;
    // The last one of equals, in the same steps whichever it is.
    found = isSame * (i + 1) + (1 - isSame) * found;
  }
  return found - 1;
}

function hasBearerScheme(header: string): boolean {
  return (
    header.length > SCHEME_LENGTH &&
    (header.charCodeAt(0) | 0x20) === 0x62 &&
    (header.charCodeAt(1) | 0x20) === 0x65 &&
    (header.charCodeAt(2) | 0x20) === 0x61 &&
    (header.charCodeAt(3) | 0x20) === 0x72 &&
    (header.charCodeAt(4) | 0x20) === 0x65 &&
    (header.charCodeAt(5) | 0x20) === 0x72 &&
    header.charCodeAt(6) === 0x20
  );
}

/** 0 when `text` from `start` on equals `secret`; reads all of `secret` in any case. */
function differs(text: string, start: number, secret: string): number {
  let difference = (text.length - start) ^ secret.length;
  for (let i = 0; i < secret.length; i++) {
    // Beyond the end charCodeAt is NaN, which `^` takes as 0; the lengths differ then anyway.
    difference |= text.charCodeAt(start + i) ^ secret.charCodeAt(i);
  }
  return difference;
}
