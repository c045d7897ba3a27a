import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DISTURBANCE_NAMES } from '../../verify/disturb/disturbances.ts';
import { PLANTED_FAULTS } from '../../verify/planted-faults.ts';

const FOLDER = 'verify/faults';

test('every planted fault has a patch, and every patch is one', () => {
  const names = PLANTED_FAULTS.map(({ name }) => `${name}.patch`).sort();
  expect(readdirSync(FOLDER).sort()).toEqual(names);
  expect(names.length).toBeGreaterThanOrEqual(12);
  const used = PLANTED_FAULTS.flatMap(({ disturbances }) => disturbances);
  expect(DISTURBANCE_NAMES).toEqual(expect.arrayContaining(used));
});

test.each(PLANTED_FAULTS.map(({ name }) => name))('%s applies to this tree', (name) => {
  // Else it is to be made again: what it left out may have moved.
  const args = ['apply', '--check', '--whitespace=nowarn', `${FOLDER}/${name}.patch`];
  execFileSync('git', args, { stdio: 'pipe' });
});

test('the table in docs/consistency.md has each of them', () => {
  const text = readFileSync('docs/consistency.md', 'utf8');
  const listed = PLANTED_FAULTS.filter(({ name }) => text.includes(`| \`${name}\` |`));
  expect(listed).toEqual(PLANTED_FAULTS);
});
