import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { byLength, inLong, inShort } from './support/test-length.ts';

describe('a file with two entries', () => {
  const ran: string[] = [];
  inShort(test)('short', () => void ran.push('short'));
  inLong(test)('long', () => void ran.push('long'));
  inShort(test).each(['a', 'b'])('short %s', (name) => void ran.push(`short ${name}`));
  inLong(test).each(['a', 'b'])('long %s', (name) => void ran.push(`long ${name}`));
  inShort(test).skipIf(false)('short, not skipped', () => void ran.push('short, not skipped'));
  inLong(describe).skipIf(false)('long', () => {
    test('within', () => void ran.push('long, within'));
  });

  test('runs in each what belongs there', () => {
    const short = ['short', 'short a', 'short b', 'short, not skipped'];
    const long = ['long', 'long a', 'long b', 'long, within'];
    expect(ran).toEqual(byLength(short, long));
  });
});

test('docs/testing.md says what each long file shows', () => {
  const text = readFileSync('docs/testing.md', 'utf8');
  const stems = globSync('{src,test}/**/*.long.{,pg.,host.}test.ts')
    .map((path) => basename(path).replace(/\.long\..*$/, ''))
    // That of this file shows only that it runs.
    .filter((stem) => stem !== 'test-length');
  expect(stems.length).toBeGreaterThan(40);
  const isNamed = (stem: string): boolean =>
    text.includes(stem) || (stem.startsWith('large-') && text.includes('large-*'));
  expect(stems.filter((stem) => !isNamed(stem))).toEqual([]);
});
