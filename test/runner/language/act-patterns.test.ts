import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { matchesTrigger } from '../../../src/runner/language/event-filters.ts';

type Row = {
  readonly patterns: readonly string[];
  readonly inputs: readonly string[];
  readonly skipResult: boolean;
  readonly filterResult: boolean;
};

const rows = JSON.parse(
  readFileSync(new URL('./data/act/patterns.json', import.meta.url), 'utf8'),
) as readonly Row[];

/**
 * In an ignore list act takes a `!` pattern for "ignore everything else"; GitHub documents `!` for both
 * lists alike, in order.
 */
const OTHER_IGNORES = ['*.md,!README.md of README.md', '*.md,!README.md of docs/hello.md'];

const push = { event: 'push' };
const eventOf = (changedPaths: readonly string[]) => ({ ref: 'refs/heads/main', changedPaths });
/** act skips nothing without patterns; a list of `paths` is never empty. */
const listed = rows.filter(({ patterns }) => patterns.length > 0);

test('the table is whole', () => {
  expect(rows).toHaveLength(64);
});

test.each(listed)('paths $patterns of $inputs', ({ patterns, inputs, skipResult }) => {
  expect(matchesTrigger({ ...push, paths: patterns }, eventOf(inputs))).toBe(!skipResult);
});

test('paths-ignore, but for two rows', () => {
  const others = listed.filter(
    ({ patterns, inputs, filterResult }) =>
      matchesTrigger({ ...push, pathsIgnore: patterns }, eventOf(inputs)) === filterResult,
  );
  expect(others.map(({ patterns, inputs }) => `${patterns.join()} of ${inputs.join()}`)).toEqual(
    OTHER_IGNORES,
  );
});
