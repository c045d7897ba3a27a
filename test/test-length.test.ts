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

/** The file of the same name that is short, whatever it needs. */
function shortSiblingOf(path: string): string | undefined {
  const stem = path.replace(/\.long\..*$/, '');
  return globSync(`${stem}.{,pg.,host.}test.ts`).map((found) => found.replaceAll('\\', '/'))[0];
}

/** A long file that runs the tests of its short sibling, with more of everything. */
function repeatsSibling(path: string): boolean {
  const sibling = shortSiblingOf(path);
  return (
    sibling !== undefined && readFileSync(path, 'utf8').includes(`import './${basename(sibling)}'`)
  );
}

test('each long file runs its short sibling, or docs/testing.md says what it shows', () => {
  const text = readFileSync('docs/testing.md', 'utf8');
  const files = globSync('{src,test}/**/*.long.{,pg.,host.}test.ts').map((path) =>
    path.replaceAll('\\', '/'),
  );
  expect(files.length).toBeGreaterThan(40);
  const isNamed = (path: string): boolean => {
    const stem = basename(path).replace(/\.long\..*$/, '');
    return text.includes(stem) || (stem.startsWith('large-') && text.includes('large-*'));
  };
  expect(files.filter((path) => !isNamed(path) && !repeatsSibling(path))).toEqual([]);
  expect(files.filter((path) => !repeatsSibling(path)).length).toBeGreaterThan(10);
});
