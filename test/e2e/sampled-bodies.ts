import { byLength } from '../support/test-length.ts';

/**
 * Of bodies, or values of a field, that go to each of a table of methods those for the method at `at`. In short each goes to
 * one of `share` methods, in long to all of them.
 */
export function sampledBodies<Value>(
  bodies: readonly Value[],
  at: number,
  share: number,
): readonly Value[] {
  const step = byLength(share, 1);
  return bodies.filter((_, i) => (i + at) % step === 0);
}
