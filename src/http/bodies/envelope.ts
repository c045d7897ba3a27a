/** Bytes of flags and length before each message of gRPC, gRPC-Web and streams of Connect. */
export const ENVELOPE_BYTES = 5;
/** The flag of a compressed message; 0 is a plain one. */
export const COMPRESSED = 1;

/** Hot. Reads the length that the envelope at `at` states; its five bytes must be there. */
export function lengthInEnvelope(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at + 1] as number) << 24) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 8) |
      (bytes[at + 4] as number)) >>>
    0
  );
}

/** Puts a message into its envelope; `trailer`, if given, is the whole envelope behind it. Copies. */
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
