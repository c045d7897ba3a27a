import { expect } from 'vitest';

/** Long enough for a machine that does much else. */
const TIMEOUT_MS = 20_000;

/** Looks again and again until the matcher holds. */
export function poll<T>(look: () => T | Promise<T>) {
  return expect.poll(look, { timeout: TIMEOUT_MS });
}
