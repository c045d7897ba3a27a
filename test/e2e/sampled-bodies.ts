import { byLength } from '../support/test-length.ts';

/**
 * Of bodies that go to each of a table of methods those for the method at `at`. In short each body goes to one of `share`
 * methods, in long to all of them.
 */
export function sampledBodies(
  bodies: readonly string[],
  at: number,
  share: number,
): readonly string[] {
  const step = byLength(share, 1);
  return bodies.filter((_, i) => (i + at) % step === 0);
}
