import { fieldError } from '../model/reasons.ts';
import type { EngineLimits, EngineOptions } from './engine-options.ts';

const DEPTH_MAX = 2_048;
const READS_MAX = 1_000_000_000;
const MIB = 1024 * 1024;
const LIMITS = ['depthMax', 'readsMax'];
const OPTIONS = [...LIMITS, 'indexBytesMax', 'cacheBytesMax', 'now'];

/** Checks limits, and adds the defaults. Errors: FIELD_INVALID. */
export function limitsOf(limits: EngineLimits): Required<{ [N in keyof EngineLimits]: number }> {
  refuseUnknown('options', limits, LIMITS);
  const { depthMax = 256, readsMax = 10_000 } = limits;
  checkInteger('options.depthMax', depthMax, 1, DEPTH_MAX);
  checkInteger('options.readsMax', readsMax, 1, READS_MAX);
  return { depthMax, readsMax };
}

/** Checks options, and adds the defaults. Errors: FIELD_INVALID. */
export function engineOptionsOf(options: EngineOptions) {
  refuseUnknown('options', options, OPTIONS);
  const { depthMax, readsMax, now = Date.now } = options;
  const { indexBytesMax = 1024 * MIB, cacheBytesMax = 64 * MIB } = options;
  if (typeof now !== 'function') throw fieldError('options.now', 'must be a function');
  checkInteger('options.indexBytesMax', indexBytesMax, 1, Number.MAX_SAFE_INTEGER);
  checkInteger('options.cacheBytesMax', cacheBytesMax, 0, Number.MAX_SAFE_INTEGER);
  return { ...limitsOf({ depthMax, readsMax }), indexBytesMax, cacheBytesMax, now };
}

/** Rejects unknown members: a misspelt one would be silently ignored. Errors: FIELD_INVALID. */
export function refuseUnknown(field: string, value: object, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null) throw fieldError(field, 'must be an object');
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw fieldError(`${field}.${name}`, 'is not known');
  }
}

/** Rejects anything but a string. Errors: FIELD_INVALID. */
export function checkText(field: string, value: string): void {
  if (typeof value !== 'string') throw fieldError(field, 'must be a string');
}

/** Rejects anything but a whole number from `min` to `max`. Errors: FIELD_INVALID. */
export function checkInteger(field: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw fieldError(field, `must be a whole number from ${min} to ${max}`);
}
