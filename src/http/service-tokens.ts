/** Decides whether an `Authorization` header carries a service token. */
export interface Authenticator {
  /** False when no token is configured: then every caller is trusted. */
  readonly enabled: boolean;
  /** Hot. `header` is the whole header value, '' when absent. O(sum of token lengths), no allocation. */
  accepts(header: string): boolean;
}

/** Length of `Bearer ` with its space. */
const SCHEME_LENGTH = 7;

/**
 * An authenticator for the configured tokens (already trimmed, none empty). The scheme is
 * case-insensitive; the token follows after one or more spaces.
 *
 * Every token is compared in full and the loop never ends early, so that the time taken tells
 * nothing about how much of a guess was right; only the length of the header shows.
 */
export function createAuthenticator(tokens: readonly string[]): Authenticator {
  if (tokens.length === 0) return { enabled: false, accepts: () => true };
  return {
    enabled: true,
    accepts(header) {
      if (!hasBearerScheme(header)) return false;
      let start = SCHEME_LENGTH;
      while (header.charCodeAt(start) === 0x20) start += 1;
      let accepted = 0;
      for (let i = 0; i < tokens.length; i++) {
        accepted |= differs(header, start, tokens[i] as string) === 0 ? 1 : 0;
      }
      return accepted === 1;
    },
  };
}

/** Whether two secrets are equal; time depends on the length of `secret` only. */
export function secretEquals(given: string, secret: string): boolean {
  return differs(given, 0, secret) === 0;
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
