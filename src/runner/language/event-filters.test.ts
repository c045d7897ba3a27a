import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesTrigger } from './event-filters.ts';
import { filterPattern } from './filter-pattern.ts';

const push = { event: 'push' };
const onBranch = (name: string): { ref: string } => ({ ref: `refs/heads/${name}` });
const onTag = (name: string): { ref: string } => ({ ref: `refs/tags/${name}` });

describe('branches and tags', () => {
  test('no filter takes both', () => {
    expect(matchesTrigger(push, onBranch('x'))).toBe(true);
    expect(matchesTrigger(push, onTag('x'))).toBe(true);
  });

  test('a branch filter alone leaves tags out, and the other way round', () => {
    expect(matchesTrigger({ ...push, branches: ['**'] }, onTag('v1'))).toBe(false);
    expect(matchesTrigger({ ...push, tags: ['**'] }, onBranch('main'))).toBe(false);
    expect(matchesTrigger({ ...push, tags: ['v*'], branches: ['x'] }, onTag('v1'))).toBe(true);
    expect(matchesTrigger({ ...push, tagsIgnore: ['v*'] }, onTag('v1'))).toBe(false);
  });

  test('the order of patterns counts', () => {
    const trigger = {
      ...push,
      branches: ['releases/**', '!releases/**-alpha', 'releases/x-alpha'],
    };
    expect(matchesTrigger(trigger, onBranch('releases/10'))).toBe(true);
    expect(matchesTrigger(trigger, onBranch('releases/beta/3-alpha'))).toBe(false);
    expect(matchesTrigger(trigger, onBranch('releases/x-alpha'))).toBe(true);
    expect(matchesTrigger({ ...push, branches: ['!x'] }, onBranch('y'))).toBe(false);
  });

  test('branches-ignore', () => {
    expect(matchesTrigger({ ...push, branchesIgnore: ['mona/*'] }, onBranch('mona/a'))).toBe(false);
    expect(matchesTrigger({ ...push, branchesIgnore: ['mona/*'] }, onBranch('mona/a/b'))).toBe(
      true,
    );
  });
});

describe('paths', () => {
  test('one selected path is enough; all must be ignored', () => {
    const changedPaths = ['README.md', 'src/a.js'];
    const event = { ...onBranch('main'), changedPaths };
    expect(matchesTrigger({ ...push, paths: ['**.js'] }, event)).toBe(true);
    expect(matchesTrigger({ ...push, paths: ['docs/**'] }, event)).toBe(false);
    expect(matchesTrigger({ ...push, pathsIgnore: ['**.md'] }, event)).toBe(true);
    expect(matchesTrigger({ ...push, pathsIgnore: ['**.md', 'src/**'] }, event)).toBe(false);
  });

  test('are not looked at for tags, nor when the change is not known', () => {
    expect(matchesTrigger({ ...push, paths: ['x'] }, { ...onTag('v1'), changedPaths: ['y'] })).toBe(
      true,
    );
    expect(matchesTrigger({ ...push, paths: ['x'] }, onBranch('main'))).toBe(true);
  });
});

test('activity types, with the ones that pull requests have by default', () => {
  const closed = { ...onBranch('main'), action: 'closed' };
  expect(matchesTrigger({ event: 'pull_request' }, closed)).toBe(false);
  expect(matchesTrigger({ event: 'pull_request', types: ['closed'] }, closed)).toBe(true);
  expect(matchesTrigger({ event: 'pull_request' }, { ...closed, action: 'opened' })).toBe(true);
  expect(matchesTrigger({ event: 'issues' }, closed)).toBe(true);
});

test('names of workflows', () => {
  const trigger = { event: 'workflow_run', workflows: ['CI'], branches: ['main'] };
  expect(matchesTrigger(trigger, { ...onBranch('main'), workflow: 'CI' })).toBe(true);
  expect(matchesTrigger(trigger, { ...onBranch('main'), workflow: 'Lint' })).toBe(false);
  expect(matchesTrigger(trigger, { ...onBranch('dev'), workflow: 'CI' })).toBe(false);
});

test.each([
  ['x[', "Missing closing bracket ']'"],
  ['x[]', "Unexpected empty brackets '[]'"],
  ['[a-9]', 'Ranges can only include a-z, A-Z, and 0-9'],
  ['[z-a]', 'Ranges can only include a-z, A-Z, and 0-9'],
  ['[.]', 'Brackets can only include a-z, A-Z, and 0-9'],
  ['x\\', "Missing character after '\\'"],
])('%s is no pattern', (pattern, problem) => {
  expect(filterPattern(pattern).problem).toBe(problem);
  expect(filterPattern(pattern).matches('x')).toBe(false);
});

/** The same patterns as regular expressions, which may take long. */
function asRegExp(pattern: string): RegExp {
  const source = pattern
    .replaceAll('**/', 'G')
    .replaceAll('**', 'S')
    .replaceAll('*', '[^/]*')
    .replaceAll('S', '.*')
    .replaceAll('G', '(?:.+/)?');
  return new RegExp(`^${source}$`, 'u');
}

test('agrees with regular expressions', () => {
  const pattern = fc
    .array(fc.constantFrom('a', 'b', '/', '*', '**', '**/', 'a+', 'b?', '[ab]', '[a-b]+'), {
      maxLength: 6,
    })
    .map((parts) => parts.join(''))
    // Three stars in a row mean nothing in particular.
    .filter((text) => !text.includes('***'));
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 8 });
  fc.assert(
    fc.property(pattern, name, (source, text) => {
      expect(filterPattern(source).matches(text)).toBe(asRegExp(source).test(text));
    }),
    { numRuns: 5_000 },
  );
});

test('is quick on patterns that make regular expressions slow', () => {
  expect(filterPattern(`${'*a'.repeat(200)}b`).matches('a'.repeat(5_000))).toBe(false);
  expect(filterPattern(`${'**/'.repeat(100)}b`).matches('a/'.repeat(2_000))).toBe(false);
});
