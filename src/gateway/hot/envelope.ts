import type { CallHead } from './call-head.ts';

/** Flags and length before each message of gRPC and gRPC-Web. */
export const ENVELOPE_BYTES = 5;
const COMPRESSED = 1;

/** A message as it lies in the body of a request. */
export type FoundMessage = { readonly message: Uint8Array; readonly isCompressed: boolean };

/**
 * Hot. The one message of a body, in place; null where the general path must take it: no message or several, a flag that
 * is not known, a compressed one whose encoding is not named, or more than `bytesMax`. O(1).
 */
export function messageOf(
  { protocol, isGzipAllowed }: CallHead,
  body: Uint8Array,
  bytesMax: number,
): FoundMessage | null {
  if (protocol === 'connect') {
    return body.length > bytesMax ? null : { message: body, isCompressed: isGzipAllowed };
  }
  if (body.length < ENVELOPE_BYTES) return null;
  const flags = body[0] as number;
  const length =
    (((body[1] as number) << 24) |
      ((body[2] as number) << 16) |
      ((body[3] as number) << 8) |
      (body[4] as number)) >>>
    0;
  if (length !== body.length - ENVELOPE_BYTES || length > bytesMax || flags > COMPRESSED) {
    return null;
  }
  const isCompressed = flags === COMPRESSED;
  if (isCompressed && (!isGzipAllowed || length === 0)) return null;
  return { message: body.subarray(ENVELOPE_BYTES), isCompressed };
}

/** A message in its envelope; `trailer`, where there is one, is the whole envelope behind it. Copies. */
export function enveloped(
  message: Uint8Array,
  isCompressed: boolean,
  trailer?: Uint8Array,
): Buffer {
  const end = ENVELOPE_BYTES + message.length;
  const bytes = Buffer.allocUnsafe(end + (trailer?.length ?? 0));
  bytes[0] = isCompressed ? COMPRESSED : 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, ENVELOPE_BYTES);
  if (trailer !== undefined) bytes.set(trailer, end);
  return bytes;
}
