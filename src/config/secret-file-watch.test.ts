import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { secretListOption } from './option.ts';
import { secretFileOf, SecretFileWatch } from './secret-file-watch.ts';

const root = mkdtempSync(join(tmpdir(), 'secret-watch-'));
const TABLE = { tokens: secretListOption({ env: 'X_TOKENS', description: '' }) };
let path = '';
let count = 0;
let watch: SecretFileWatch;
let changes: (readonly string[])[] = [];
let problems: (string | null)[] = [];

function follow(values: readonly string[]): void {
  const file = secretFileOf(TABLE, 'tokens', { X_TOKENS_FILE: path });
  if (file === undefined) throw new Error('the file is named');
  watch = new SecretFileWatch([
    {
      ...file,
      values,
      onChanged: (changed) => void changes.push(changed),
      onProblem: (problem) => void problems.push(problem),
    },
  ]);
  watch.start();
}

const seen = async (what: () => void): Promise<void> => vi.waitFor(what, { timeout: 10_000 });
/** Long enough for several looks. */
const someLooks = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 500));

beforeEach(() => {
  path = join(root, `tokens-${count++}`);
  changes = [];
  problems = [];
  writeFileSync(path, 'one,two\n');
});
afterEach(() => watch.stop());
afterAll(() => rmSync(root, { recursive: true }));

test('a setting that stands in no file is not followed', () => {
  watch = new SecretFileWatch([]);
  watch.start();
  expect(secretFileOf(TABLE, 'tokens', { X_TOKENS: 'one' })).toBeUndefined();
});

test('what is in force already is no change, in whatever order and form', async () => {
  follow(['two', 'one']);
  await someLooks();
  writeFileSync(path, 'two\none\n\none');
  await someLooks();
  expect([changes, problems]).toEqual([[], []]);
});

test('a rewritten file, an exchanged one and an exchanged link are all seen', async () => {
  follow(['one', 'two']);
  writeFileSync(path, 'two,three');
  await seen(() => expect(changes).toEqual([['two', 'three']]));
  writeFileSync(`${path}.new`, 'three');
  renameSync(`${path}.new`, path);
  await seen(() => expect(changes.at(-1)).toEqual(['three']));
  // As secrets are mounted: a link to a folder by a link, which is renamed over.
  for (const [folder, tokens] of Object.entries({ a: 'four', b: 'five' })) {
    mkdirSync(`${path}.${folder}`);
    writeFileSync(join(`${path}.${folder}`, 'tokens'), tokens);
  }
  symlinkSync(`${path}.a`, `${path}.data`);
  rmSync(path);
  symlinkSync(join(`${path}.data`, 'tokens'), path);
  await seen(() => expect(changes.at(-1)).toEqual(['four']));
  symlinkSync(`${path}.b`, `${path}.next`);
  renameSync(`${path}.next`, `${path}.data`);
  await seen(() => expect(changes.at(-1)).toEqual(['five']));
  expect(changes).toHaveLength(4);
});

test('that one of two equal entries became another is a change', async () => {
  writeFileSync(path, 'one,one');
  follow(['one', 'two']);
  await seen(() => expect(changes).toEqual([['one', 'one']]));
});

test.each([
  ['holds nothing', () => writeFileSync(path, '')],
  ['holds no entry', () => writeFileSync(path, ' ,\n, ')],
  ['cannot carry', () => writeFileSync(path, 'o ne')],
  ['ENOENT', () => rmSync(path)],
  ['is no file', () => (rmSync(path), mkdirSync(path))],
  ['more than', () => writeFileSync(path, 'x'.repeat(1_100_000))],
])(
  'a file that %s changes nothing, is told once, and is told when it is well again',
  async (text, spoil) => {
    follow(['one', 'two']);
    spoil();
    await seen(() => expect(problems).toEqual([expect.stringContaining(text)]));
    await someLooks();
    expect([changes, problems.length]).toEqual([[], 1]);
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, 'three');
    await seen(() => expect(changes).toEqual([['three']]));
    expect(problems).toEqual([expect.anything(), null]);
    expect(problems[0]).not.toContain('o ne');
  },
);

test('a file that never stands still is never taken: a token that is half written is none', async () => {
  follow(['one', 'two']);
  let length = 1;
  const writer = setInterval(() => writeFileSync(path, 'x'.repeat((length += 1))), 20);
  await someLooks();
  await someLooks();
  await someLooks();
  clearInterval(writer);
  expect(changes).toEqual([]);
  writeFileSync(path, 'whole');
  await seen(() => expect(changes).toEqual([['whole']]));
});

test('after stop nobody is told', async () => {
  follow(['one', 'two']);
  await watch.stop();
  writeFileSync(path, 'three');
  await someLooks();
  expect(changes).toEqual([]);
});
