import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { isSettled, type Result, sumOf } from '../scripts/long-results.ts';

const result = (commit: string, passed: boolean, summary = '1 passed, 0 failed'): Result => {
  return { commit, passed, seconds: 1, summary };
};

describe('npm run test:long', () => {
  test('goes on where a folder failed, was not run, or was run at another commit', () => {
    expect(isSettled(result('a', true), 'a')).toBe(true);
    expect(isSettled(undefined, 'a')).toBe(false);
    expect(isSettled(result('a', false), 'a')).toBe(false);
    expect(isSettled(result('b', true), 'a')).toBe(false);
    expect(isSettled(result('a+', true), 'a+')).toBe(false);
  });

  test('sums up what the folders came to', () => {
    const all = [
      result('a', true, '40 passed, 0 failed, 2 skipped'),
      result('a', false, '5 passed, 3 failed'),
      result('a', true, '1 passed, 0 failed, 1 skipped'),
    ];
    expect(sumOf(all)).toBe('46 passed, 3 failed, 3 skipped');
    expect(sumOf([])).toBe('0 passed, 0 failed');
  });

  test('a folder without long tests is named, with exit code 2', () => {
    const args = ['scripts/test-long.ts', 'test/nowhere'];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, 'no long test lies in test/nowhere\n']);
  });
});
