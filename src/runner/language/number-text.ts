/** Significant digits of a number as text. */
const DIGITS = 15;
/** Between these a number has no exponent. */
const FIXED_MIN = 0.0001;
const FIXED_MAX = 1e15;
/** An exact expansion that ends halfway between two texts: the digits that stay, and the exponent. */
const HALFWAY = /^(-?\d\.\d{14})50*(e.+)$/;
const EXPONENTIAL = /^(-?)(\d)\.(\d+)e([+-]\d+)$/;

/**
 * Writes a number as GitHub's runner does, with 15 digits: `0.0001`, `1E-05`, `1E+15`; -0 is `0`.
 * Source: .NET's format G15 (Number.Formatting.cs, Number.Dragon4.cs: halves go to the even digit), which
 * actions/runner names in ExpressionConstants.NumberFormat.
 */
export function numberText(value: number): string {
  const shortest = String(value);
  const size = Math.abs(value);
  // With so few digits the shortest text is the one.
  const isPlain = size >= FIXED_MIN && size < FIXED_MAX && shortest.length <= DIGITS;
  if (isPlain || !Number.isFinite(value)) return shortest;
  if (value === 0) return '0';
  const [, sign = '', first = '', rest = '', power = ''] = EXPONENTIAL.exec(rounded(value)) ?? [];
  const exponent = Number(power);
  const digits = `${first}${rest}`.replace(/0+$/, '');
  if (size < FIXED_MIN || exponent >= DIGITS) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
    const width = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${first}${fraction}E${exponent < 0 ? '-' : '+'}${width}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  const fraction = digits.slice(exponent + 1);
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** JavaScript rounds halves up. */
function rounded(value: number): string {
  // oxlint-disable-next-line oxc/number-arg-out-of-range -- 100 digits since ECMAScript 2018
  const [, kept, exponent = ''] = HALFWAY.exec(value.toExponential(100)) ?? [];
  return kept !== undefined && Number(kept.at(-1)) % 2 === 0
    ? `${kept}${exponent}`
    : value.toExponential(DIGITS - 1);
}

/** What .NET's Char.IsWhiteSpace takes for blank. */
const BLANK = /[\t-\r \u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]/;
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const INFINITE = /^([+-]?)infinity$/i;
const HEXADECIMAL = /^0x0*([\da-fA-F]{1,8})$/;
const OCTAL = /^0o0*([0-7]{1,11})$/;
const WORD_MAX = 0xff_ff_ff_ff;

/**
 * Reads a text as a number as GitHub's runner does; NaN where it is none. `0x` and `0o` give 32 bits with a
 * sign, so `0xFFFFFFFF` is -1; `0b` and capital prefixes are none. '' is 0.
 * Source: actions/runner, ExpressionUtility.ParseNumber. Cost: O(characters).
 */
export function numberFromText(text: string): number {
  const trimmed = trimmedText(text);
  if (trimmed === '') return 0;
  if (DECIMAL.test(trimmed)) return Number(trimmed);
  const [, sign] = INFINITE.exec(trimmed) ?? [];
  if (sign !== undefined) return sign === '-' ? -Infinity : Infinity;
  const [, hexadecimal] = HEXADECIMAL.exec(trimmed) ?? [];
  const [, octal] = OCTAL.exec(trimmed) ?? [];
  if (hexadecimal === undefined && octal === undefined) return Number.NaN;
  const word = Number.parseInt(hexadecimal ?? octal ?? '', hexadecimal === undefined ? 8 : 16);
  return word > WORD_MAX ? Number.NaN : word | 0;
}

function trimmedText(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && BLANK.test(text.charAt(start))) start += 1;
  while (end > start && BLANK.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
