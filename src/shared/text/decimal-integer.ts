import { withoutTrailing } from './without-trailing.ts';

/** Most digits of an integer of 64 bits. */
const DIGITS_MAX = 20;

/** Parts of a decimal number, as a regular expression finds them. */
export type DecimalParts = {
  readonly sign: string;
  /** Digits before the point and behind it. */
  readonly whole: string;
  readonly fraction: string;
  /** The power of ten, with its sign. */
  readonly exponent: string;
};

/**
 * The integer value of a decimal number, such as 1000 for `1e3` and `1000.0`. Undefined if it has a
 * fraction or more than 20 digits. Exact. O(digits), whatever the exponent.
 */
export function decimalInteger(parts: DecimalParts): bigint | undefined {
  const { sign, whole, fraction, exponent } = parts;
  const all = whole + fraction;
  const kept = withoutTrailing(all, '0');
  const digits = kept.replace(/^0+/, '');
  if (digits === '') return 0n;
  const zeros = all.length - kept.length + Number(exponent) - fraction.length;
  if (zeros < 0 || digits.length + zeros > DIGITS_MAX) return undefined;
  return BigInt(`${sign === '-' ? '-' : ''}${digits}${'0'.repeat(zeros)}`);
}
