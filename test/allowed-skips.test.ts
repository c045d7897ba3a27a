import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type AllowedSkip, readAllowedSkips, reasonOfSkip } from '../scripts/allowed-skips.ts';

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-skips-'));
afterAll(() => rmSync(directory, { recursive: true }));

const ALLOWED: readonly AllowedSkip[] = [
  { test: '/a\\.test\\.ts > never$', reason: 'for ever' },
  { test: '> with a tool$', reason: 'no tool', needs: { program: 'a-tool' } },
  { test: '> with a variable$', reason: 'no variable', needs: { variable: 'A_VARIABLE' } },
  { test: '> as root$', reason: 'not root', needs: { uid: 0 } },
  { test: '> on Linux$', reason: 'not Linux', needs: { platform: 'linux' } },
];
const BARE = { platform: 'darwin', uid: 1, env: { PATH: ['/nowhere', directory].join(delimiter) } };

test('a skip is allowed by the name of its test, and by nothing else', () => {
  expect(reasonOfSkip('x/a.test.ts > never', ALLOWED, BARE)).toBe('for ever');
  expect(reasonOfSkip('x/b.test.ts > never', ALLOWED, BARE)).toBeUndefined();
  expect(reasonOfSkip('x/a.test.ts > never again', ALLOWED, BARE)).toBeUndefined();
  expect(reasonOfSkip('x/a.test.ts > never', [], BARE)).toBeUndefined();
});

test('where what a test needs is there, it must run', () => {
  const program = join(directory, 'a-tool');
  writeFileSync(program, '');
  // A file that cannot be run is no program.
  expect(reasonOfSkip('x > with a tool', ALLOWED, BARE)).toBe('no tool');
  chmodSync(program, 0o755);
  expect(reasonOfSkip('x > with a tool', ALLOWED, BARE)).toBeUndefined();
  expect(reasonOfSkip('x > with a variable', ALLOWED, BARE)).toBe('no variable');
  const env = { ...BARE.env, A_VARIABLE: 'x' };
  expect(reasonOfSkip('x > with a variable', ALLOWED, { ...BARE, env })).toBeUndefined();
  expect(reasonOfSkip('x > as root', ALLOWED, BARE)).toBe('not root');
  expect(reasonOfSkip('x > as root', ALLOWED, { ...BARE, uid: undefined })).toBe('not root');
  expect(reasonOfSkip('x > as root', ALLOWED, { ...BARE, uid: 0 })).toBeUndefined();
  expect(reasonOfSkip('x > on Linux', ALLOWED, BARE)).toBe('not Linux');
  expect(reasonOfSkip('x > on Linux', ALLOWED, { ...BARE, platform: 'linux' })).toBeUndefined();
});

test('the list is complete entries, each of one pattern', () => {
  const list = readAllowedSkips();
  expect(list.length).toBeGreaterThan(5);
  expect(list.filter(({ reason }) => reason.length < 10)).toEqual([]);
  // A pattern that fits every name would allow everything.
  expect(list.filter(({ test: pattern }) => new RegExp(pattern).test('a.test.ts > b'))).toEqual([]);
  expect(new Set(list.map(({ test: pattern }) => pattern)).size).toBe(list.length);
});
