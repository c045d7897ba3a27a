import { randomBytes } from 'node:crypto';

/** Header that carries a caller's request id, for logs and audit records. */
export const REQUEST_ID_HEADER = 'x-request-id';

const WELL_FORMED = /^[A-Za-z0-9._:-]{1,128}$/;
const PREFIX = randomBytes(6).toString('base64url');
let issuedCount = 0;

/**
 * Returns the caller's request id if it is well formed (1-128 of letters, digits, `.`, `_`, `:`, `-`). Otherwise makes a new
 * one, unique across processes with overwhelming probability. Cost: one short string.
 */
export function requestIdOf(headerValue: string): string {
  if (headerValue !== '' && WELL_FORMED.test(headerValue)) return headerValue;
  issuedCount += 1;
  return `${PREFIX}-${issuedCount.toString(36)}`;
}
