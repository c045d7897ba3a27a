import { createHmac } from 'node:crypto';

const LABEL = 'gatehouse credential fingerprint';
/** 48 bits: enough to distinguish sets, too few to be the secret of anything. */
const HEX_DIGITS = 12;

/**
 * A short text that is the same wherever the same secrets are in force, in whatever order, for metrics and
 * logs, which more people read than may know a secret.
 *
 * It is keyed (HMAC-SHA-256, RFC 2104) with what those readers do not have: a plain hash of a token that a person made
 * up can be guessed back by trying words. The key is derived from `key` for this use alone, so that a
 * fingerprint says nothing of what else `key` authenticates; `name` keeps two settings apart that hold
 * the same secret.
 */
export function secretFingerprint(
  key: Uint8Array | string,
  name: string,
  secrets: readonly string[],
): string {
  const ownKey = createHmac('sha256', key).update(LABEL).digest();
  const content = JSON.stringify([name, ...[...new Set(secrets)].toSorted()]);
  return createHmac('sha256', ownKey).update(content).digest('hex').slice(0, HEX_DIGITS);
}
