import { AppError } from '../../shared/app-error.ts';
import type { CliReason } from './exit-codes.ts';
import { readText } from './files.ts';

/** An object of JSON. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** True if a value of JSON is an object and not a list. */
export function isObject(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The object in an option: its text, or with `@FILE` that of a file. Errors: INVALID_REQUEST naming
 * the option, FILE_INVALID.
 */
export function objectOfOption(option: string, text: string): JsonRecord {
  const json = text.startsWith('@') ? readText(text.slice(1)) : text;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw wrong(option, (error as Error).message);
  }
  if (!isObject(value)) throw wrong(option, 'must be an object of JSON');
  return value;
}

/**
 * The whole number in an option; undefined if absent. Errors: INVALID_REQUEST naming the option and
 * its bounds.
 */
export function integerOfOption(
  option: string,
  text: string | undefined,
  min: number,
  max: number,
): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (number < min || number > max) {
    throw wrong(option, `must be a whole number from ${min} to ${max}`);
  }
  return number;
}

function wrong(option: string, problem: string): AppError {
  return new AppError<CliReason>('INVALID_REQUEST', `--${option}: ${problem}`);
}
