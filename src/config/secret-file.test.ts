import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AppError } from '../shared/app-error.ts';
import { loadOptions, redactedOptions, secretValuesOf, secretVariablesIn } from './load-options.ts';
import { secretListOption, textOption } from './option.ts';
import { secretFingerprint } from './secret-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'secret-file-'));
afterAll(() => rmSync(folder, { recursive: true }));

const common = { description: '', fallback: undefined, fallbackText: 'unset' } as const;
const TABLE = {
  token: textOption({
    ...common,
    env: 'X_TOKEN',
    pattern: /^[\x21-\x7e]+$/,
    rule: 'a token',
    secret: true,
  }),
  tokens: secretListOption({ env: 'X_TOKENS', description: '' }),
  plain: textOption({ ...common, env: 'X_PLAIN', pattern: /^.+$/, rule: 'a text' }),
};

function load(env: Record<string, string>) {
  return loadOptions(TABLE, { prefix: 'X_' }, env);
}

function problemOf(env: Record<string, string>): string {
  try {
    load(env);
  } catch (error) {
    if (error instanceof AppError && error.reason === 'CONFIG_INVALID') return error.message;
    throw error;
  }
  return '';
}

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

test('a secret stands in the file that is named, but for one line end', () => {
  expect(load({ X_TOKEN_FILE: file('a', 'hush\n') }).token).toBe('hush');
  expect(load({ X_TOKEN_FILE: file('b', 'hush\r\n') }).token).toBe('hush');
  expect(load({ X_TOKEN_FILE: file('c', 'hush') }).token).toBe('hush');
  expect(load({ X_TOKENS_FILE: file('d', 'one, two\n') }).tokens).toEqual(['one', 'two']);
  // Mounted secrets are links.
  symlinkSync(join(folder, 'a'), join(folder, 'link'));
  expect(load({ X_TOKEN_FILE: join(folder, 'link') }).token).toBe('hush');
  expect(load({ X_TOKEN_FILE: '', X_TOKEN: 'hush' }).token).toBe('hush');
  expect(load({ X_TOKEN_FILE: join(folder, 'a'), X_TOKEN: '' }).token).toBe('hush');
});

test.each([
  ['hush\n\n', 'X_TOKEN_FILE: must be a token'],
  ['', 'X_TOKEN_FILE: the file that it names holds nothing'],
  ['\n', 'X_TOKEN_FILE: the file that it names holds nothing'],
  ['h'.repeat(1_100_000), 'X_TOKEN_FILE: the file that it names holds more than 1048576 bytes'],
])('what a file must not hold (%#) is refused by the name of the setting', (content, problem) => {
  expect(problemOf({ X_TOKEN_FILE: file('bad', content) })).toBe(problem);
});

test('what is no readable file is refused by the name of the setting', () => {
  const missing = 'X_TOKEN_FILE: the file that it names cannot be read (ENOENT)';
  expect(problemOf({ X_TOKEN_FILE: join(folder, 'none') })).toBe(missing);
  expect(problemOf({ X_TOKEN_FILE: folder })).toBe(
    'X_TOKEN_FILE: the file that it names is no file',
  );
  const path = file('e', 'hush');
  chmodSync(path, 0o644);
  const both = 'X_TOKEN_FILE: X_TOKEN is set, too; give one of the two';
  expect(problemOf({ X_TOKEN_FILE: path, X_TOKEN: 'other' })).toBe(both);
});

test('only secrets have files', () => {
  expect(problemOf({ X_PLAIN_FILE: file('f', 'x') })).toContain('X_PLAIN_FILE: no such setting');
});

test('values are listed and hidden; variables that hold them are told', () => {
  const env = { X_TOKEN: 'hush', X_TOKENS_FILE: file('g', 'one,two'), X_PLAIN: 'x' };
  const values = load(env);
  expect(secretValuesOf(TABLE, values)).toEqual(['hush', 'one', 'two']);
  expect(JSON.stringify(redactedOptions(TABLE, values))).not.toMatch(/hush|one|two/);
  expect(secretVariablesIn(TABLE, env)).toEqual(['X_TOKEN']);
});

const key = randomBytes(32);

test('a set has one fingerprint, whatever the order; other sets, names and keys have others', () => {
  const print = secretFingerprint(key, 'tokens', ['a', 'b']);
  expect(print).toMatch(/^[0-9a-f]{12}$/);
  expect(secretFingerprint(key, 'tokens', ['b', 'a', 'b'])).toBe(print);
  const others = [
    secretFingerprint(key, 'tokens', ['a']),
    secretFingerprint(key, 'tokens', ['a', 'b', 'c']),
    secretFingerprint(key, 'tokens', ['a,b']),
    secretFingerprint(key, 'other', ['a', 'b']),
    secretFingerprint(randomBytes(32), 'tokens', ['a', 'b']),
  ];
  expect(new Set([print, ...others]).size).toBe(6);
});

test('who knows the token but not the key cannot recognize it', () => {
  const print = secretFingerprint(key, 'tokens', ['hush']);
  for (const text of ['hush', '["tokens","hush"]', 'tokenshush']) {
    expect(createHash('sha256').update(text).digest('hex')).not.toContain(print);
  }
});
