import { AppError } from '../../shared/app-error.ts';
import type { BodyHold } from './body-budget.ts';
import { gunzipLimited } from './gzip.ts';

/**
 * Bytes of the field at the end of a gzip member that states its decompressed length, modulo 2^32 (RFC 1952 section
 * 2.3.1).
 */
const LENGTH_FIELD_BYTES = 4;
/** Decompressed bytes up to which a body is not counted, where `maxBytes` allows more. */
const UNCOUNTED_BYTES_MAX = 65_536;

/**
 * Decompresses a body as `gunzipLimited` does, and counts the output in `hold`. It counts from before it is allocated
 * until the hold is released or resized. The length that the body states is trusted first; if the output is longer,
 * there must be space for `maxBytes`.
 * Errors: those of `gunzipLimited`, BODY_MEMORY_EXHAUSTED.
 */
export async function gunzipCounted(
  bytes: Uint8Array,
  maxBytes: number,
  hold: BodyHold,
): Promise<Uint8Array> {
  const stated = Math.max(statedLength(bytes), UNCOUNTED_BYTES_MAX);
  if (stated < maxBytes) {
    if (stated > UNCOUNTED_BYTES_MAX) mustHold(hold, stated);
    try {
      return await gunzipLimited(bytes, stated);
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'BODY_TOO_LARGE') throw error;
    }
  }
  mustHold(hold, maxBytes);
  const whole = await gunzipLimited(bytes, maxBytes);
  mustHold(hold, whole.length);
  return whole;
}

function mustHold(hold: BodyHold, bytes: number): void {
  const full = hold.resize(bytes, false);
  if (full !== null) throw full;
}

function statedLength(bytes: Uint8Array): number {
  if (bytes.length < LENGTH_FIELD_BYTES) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return view.getUint32(bytes.length - LENGTH_FIELD_BYTES, true);
}
