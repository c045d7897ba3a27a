import { COMPRESSED, ENVELOPE_BYTES, lengthInEnvelope } from '../../http/bodies/envelope.ts';
import type { PlainHead } from './call-head.ts';

/**
 * Hot. The one message of a body, in place; null where the general path must take it: no message or several, a flag that
 * is not known, a compressed one whose encoding is not named, or more than `bytesMax`. O(1).
 */
export function messageOf(
  { protocol, isGzipAllowed }: PlainHead,
  body: Uint8Array,
  bytesMax: number,
): Uint8Array | null {
  if (protocol === 'connect') return body.length > bytesMax ? null : body;
  if (body.length < ENVELOPE_BYTES) return null;
  const flags = body[0] as number;
  const length = lengthInEnvelope(body, 0);
  if (length !== body.length - ENVELOPE_BYTES || length > bytesMax || flags > COMPRESSED) {
    return null;
  }
  if (flags === COMPRESSED && (!isGzipAllowed || length === 0)) return null;
  return body.subarray(ENVELOPE_BYTES);
}

/** Hot. Whether the message that `messageOf` found in `body` is compressed. */
export function isCompressedMessage(
  { protocol, isGzipAllowed }: PlainHead,
  body: Uint8Array,
): boolean {
  return protocol === 'connect' ? isGzipAllowed : body[0] === COMPRESSED;
}
