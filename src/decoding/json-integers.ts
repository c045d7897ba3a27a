import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { decimalInteger } from '../shared/decimal-integer.ts';
import { malformed } from './decode-limits.ts';

const { INT32, SINT32, SFIXED32, UINT32, FIXED32 } = ScalarType;
const { INT64, SINT64, SFIXED64, UINT64, FIXED64 } = ScalarType;
const RANGES: ReadonlyMap<ScalarType | undefined, readonly [min: bigint, max: bigint]> = new Map([
  ...[INT32, SINT32, SFIXED32].map((type) => [type, [-(2n ** 31n), 2n ** 31n - 1n]] as const),
  ...[UINT32, FIXED32].map((type) => [type, [0n, 2n ** 32n - 1n]] as const),
  ...[INT64, SINT64, SFIXED64].map((type) => [type, [-(2n ** 63n), 2n ** 63n - 1n]] as const),
  ...[UINT64, FIXED64].map((type) => [type, [0n, 2n ** 64n - 1n]] as const),
]);
/** A number of JSON (RFC 8259 section 6): sign, digits, fraction, exponent. */
const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?$/;
const SMALL = /^(?:0|[1-9][0-9]{0,8})$/;

/** Whether a field is an integer, or a list of them; not where it is a map. */
export function isInteger(field: DescField): boolean {
  return field.fieldKind !== 'map' && RANGES.has(field.scalar);
}

/**
 * The digits of an integer that a text says: any number of JSON that is whole (`"1e3"`, `"1000.0"`), as the
 * JSON mapping of protobuf has it for 32 and 64 bits alike. O(length).
 * Errors: BODY_MALFORMED naming `where`, for any other text (`"0x10"`) and beyond the field's range.
 */
export function integerText(field: DescField, text: string, where: string): string {
  if (SMALL.test(text)) return text;
  const range = RANGES.get(field.scalar);
  const value = wholeNumber(text);
  if (range === undefined || value === undefined || value < range[0] || value > range[1]) {
    const [min, max] = range ?? [];
    throw malformed(`${where}: must be a whole number from ${min} to ${max}`, where);
  }
  return String(value);
}

function wholeNumber(text: string): bigint | undefined {
  const found = NUMBER.exec(text);
  if (found === null) return undefined;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = found;
  return decimalInteger({ sign, whole, fraction, exponent });
}
