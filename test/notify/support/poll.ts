import { expect } from 'vitest';

/** Long enough for a machine that does much else. */
const TIMEOUT_MS = 20_000;

/** Looks again and again until the matcher holds. Tests that run at once pass the `expect` of their own context. */
export function poll<T>(look: () => T | Promise<T>, own: Pick<typeof expect, 'poll'> = expect) {
  return own.poll(look, { timeout: TIMEOUT_MS });
}
