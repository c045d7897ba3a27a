import { decodeJwt, errors, jwtVerify } from 'jose';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { JwtSubject } from './callers-file.ts';
import type { JwksFeed } from './jwks-feed.ts';

/** A JWT whose signature and claims were checked. */
export type CheckedJwt = JwtSubject & {
  /** Wall clock, ms. */
  readonly expiresAtMs: number;
  readonly kid: string;
  /** The key that it was checked by (`JwksFeed.keyText`). */
  readonly keyText: string;
};

const FORM = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const CHARACTERS_MAX = 8_192;

/** Whether a token has the form of a signed JWT. */
export function isJwt(token: string): boolean {
  return token.length <= CHARACTERS_MAX && FORM.test(token);
}

/**
 * Checks a JWT against the keys of its issuer: signature with one of the algorithms that the issuer was given, issuer, audience, expiry
 * and subject, all of which it must have. null: it does not count. Errors: KEYS_UNAVAILABLE where its key is being fetched.
 */
export async function checkJwt(
  token: string,
  feedOf: (issuer: string) => JwksFeed | undefined,
): Promise<CheckedJwt | null> {
  try {
    const feed = feedOf(decodeJwt(token).iss ?? '');
    if (feed === undefined) return null;
    const { set, definition } = feed;
    if (set === null) {
      feed.refresh();
      throw keysUnavailable();
    }
    const { payload, protectedHeader } = await jwtVerify(token, set, {
      issuer: definition.issuer,
      audience: definition.audience,
      algorithms: [...definition.algorithms],
      requiredClaims: ['iss', 'aud', 'exp', 'sub'],
      clockTolerance: definition.clockToleranceSeconds,
    }).catch((error: unknown) => {
      if (error instanceof errors.JWKSNoMatchingKey && feed.refresh()) throw keysUnavailable();
      throw error;
    });
    const { sub = '', exp = 0 } = payload;
    const kid = protectedHeader.kid ?? '';
    const expiresAtMs = (exp + definition.clockToleranceSeconds) * 1_000;
    const keyText = feed.keyText(kid);
    return { issuer: definition.issuer, subject: sub, expiresAtMs, kid, keyText };
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    // A header or a payload that names what no key fits: jose's own checks of types.
    if (error instanceof TypeError) return null;
    throw error;
  }
}

function keysUnavailable(): AppError {
  return new AppError<AuthzReason>(
    'KEYS_UNAVAILABLE',
    'the keys of the issuer of this token are being fetched: try again',
  );
}
