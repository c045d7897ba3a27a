import { randomFillSync } from 'node:crypto';

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;

/** A ULID (github.com/ulid/spec) in upper case: 48 bits of milliseconds, 80 random ones. */
export function ulidOf(
  nowMs: number,
  fill: (bytes: Uint8Array) => void = (bytes) => void randomFillSync(bytes),
): string {
  let time = '';
  for (let rest = Math.floor(nowMs), i = 0; i < TIME_DIGITS; i++) {
    time = (DIGITS[rest % 32] as string) + time;
    rest = Math.floor(rest / 32);
  }
  const bytes = new Uint8Array(RANDOM_DIGITS);
  fill(bytes);
  return time + Array.from(bytes, (byte) => DIGITS[byte % 32]).join('');
}
