const AMPERSAND = 0x26;
const EQUALS = 0x3d;
const PERCENT = 0x25;
const PLUS = 0x2b;
const SPACE = 0x20;
/** Bytes between two steps. */
const STEP_BYTES = 65_536;

/**
 * The decoded value of the first field `name`, in ASCII, of a form (application/x-www-form-urlencoded), empty when there is none, in short steps to
 * be run to their end. As URLSearchParams reads it: a percent sign that begins no escape stays as it is. O(bytes); holds as many.
 */
export function* formField(bytes: Uint8Array, name: string): Generator<void, Buffer> {
  let stepAt = STEP_BYTES;
  let from = 0;
  let nameEnd = -1;
  for (let at = 0; at <= bytes.length; at++) {
    if (at >= stepAt) {
      stepAt = at + STEP_BYTES;
      yield;
    }
    const byte = bytes[at] ?? AMPERSAND;
    if (byte === EQUALS && nameEnd < 0) nameEnd = at;
    if (byte !== AMPERSAND) continue;
    const end = nameEnd < 0 ? at : nameEnd;
    if (isName(bytes, from, end, name))
      return yield* decoded(bytes.subarray(Math.min(end + 1, at), at));
    from = at + 1;
    nameEnd = -1;
  }
  return Buffer.alloc(0);
}

/** Most names are reported by their length: an escaped byte has three. */
function isName(bytes: Uint8Array, from: number, to: number, name: string): boolean {
  if (to - from < name.length || to - from > name.length * 3) return false;
  const steps = decoded(bytes.subarray(from, to));
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value.toString() === name;
}

function* decoded(bytes: Uint8Array): Generator<void, Buffer> {
  const into = Buffer.allocUnsafe(bytes.length);
  let count = 0;
  let stepAt = STEP_BYTES;
  for (let at = 0; at < bytes.length; at++) {
    if (at >= stepAt) {
      stepAt = at + STEP_BYTES;
      yield;
    }
    let byte = bytes[at] ?? 0;
    if (byte === PLUS) byte = SPACE;
    else if (byte === PERCENT) {
      const escaped = hexDigit(bytes[at + 1]) * 16 + hexDigit(bytes[at + 2]);
      if (!Number.isNaN(escaped)) {
        byte = escaped;
        at += 2;
      }
    }
    into[count] = byte;
    count += 1;
  }
  return into.subarray(0, count);
}

/** NaN for what is none. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : Number.NaN;
}
