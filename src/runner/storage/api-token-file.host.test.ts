import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeWorkspace, startRunner } from '../../../test/support/runner.ts';
import { apiTokenPath, readApiToken, readOrMakeApiToken } from './api-token-file.ts';

const GOOD = 'A'.repeat(43);

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-token-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('a token is made once, for this user alone, and found again', async () => {
  const folder = makeFolder();
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  expect(await readApiToken(folder)).toBeUndefined();
  const token = await readOrMakeApiToken(folder);
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(readFileSync(apiTokenPath(folder), 'utf8')).toBe(`${token}\n`);
  expect(statSync(apiTokenPath(folder)).mode & 0o777).toBe(0o600);
  expect(await readOrMakeApiToken(folder)).toBe(token);
  expect(await readApiToken(folder)).toBe(token);
  // Nothing of the making is left.
  expect(readdirSync(folder)).toEqual(['api-token']);
  expect(await readOrMakeApiToken(makeFolder())).not.toBe(token);
});

type Spoil = (path: string, elsewhere: string) => void;

const SPOILT: readonly (readonly [name: string, problem: string, spoil: Spoil])[] = [
  [
    'a link to a good token',
    'is a symbolic link',
    (path, elsewhere) => {
      writeFileSync(elsewhere, GOOD, { mode: 0o600 });
      symlinkSync(elsewhere, path);
    },
  ],
  ['a link to nothing', 'is a symbolic link', (path, elsewhere) => symlinkSync(elsewhere, path)],
  ['a folder', 'is no file of a token', (path) => mkdirSync(path)],
  [
    'a pipe that nobody writes to',
    'is no file of a token',
    (path) => void execFileSync('sh', ['-c', 'mkfifo -m 600 "$0"', path]),
  ],
  [
    'a file that the group may read',
    'is open to others',
    (path) => {
      writeFileSync(path, GOOD);
      chmodSync(path, 0o640);
    },
  ],
  [
    'a file that others may write',
    'is open to others',
    (path) => {
      writeFileSync(path, GOOD);
      chmodSync(path, 0o602);
    },
  ],
  ['an empty file', 'holds no token', (path) => writeFileSync(path, '', { mode: 0o600 })],
  ['a short one', 'holds no token', (path) => writeFileSync(path, 'secret', { mode: 0o600 })],
  [
    'two lines',
    'holds no token',
    (path) => writeFileSync(path, `${GOOD}\n${GOOD}\n`, { mode: 0o600 }),
  ],
  [
    'a large one',
    'is no file of a token',
    (path) => writeFileSync(path, 'A'.repeat(5_000), { mode: 0o600 }),
  ],
];

test.each(SPOILT)(
  '%s is refused, and neither followed nor replaced',
  async (_name, problem, spoil) => {
    const folder = makeFolder();
    const elsewhere = join(makeFolder(), 'elsewhere');
    spoil(apiTokenPath(folder), elsewhere);
    const wasThere = existsSync(elsewhere);
    for (const read of [readApiToken, readOrMakeApiToken]) {
      const failure: unknown = await read(folder).catch((error: unknown) => error);
      expect(failure).toMatchObject({
        reason: 'STORE_UNAVAILABLE',
        message: expect.stringContaining(`.runner/api-token ${problem}`),
      });
      expect(String(failure)).not.toContain(GOOD);
    }
    expect(existsSync(elsewhere)).toBe(wasThere);
    expect(readdirSync(folder)).toEqual(['api-token']);
  },
);

test.runIf(process.geteuid?.() === 0)('a file of another user is refused', async () => {
  const folder = makeFolder();
  writeFileSync(apiTokenPath(folder), GOOD, { mode: 0o600 });
  execFileSync('chown', ['12345', apiTokenPath(folder)]);
  await expect(readOrMakeApiToken(folder)).rejects.toThrow('belongs to another user');
});

test('a runner takes the token of the runner before, and does not start on a spoilt one', async () => {
  const workspace = makeWorkspace({});
  const first = await startRunner(workspace);
  const token = readFileSync(join(workspace, '.runner/api-token'), 'utf8');
  await first.runner.stop();
  const second = await startRunner(workspace);
  expect(readFileSync(join(workspace, '.runner/api-token'), 'utf8')).toBe(token);
  expect(second.runner.parts.apiToken).toBe(token.trim());
  await second.runner.stop();
  chmodSync(join(workspace, '.runner/api-token'), 0o644);
  await expect(startRunner(workspace)).rejects.toThrow('set RUNNER_API_TOKEN');
  // With a token of its own it does not look at the file.
  const third = await startRunner(workspace, { RUNNER_API_TOKEN: 'given' });
  expect(third.runner.parts.apiToken).toBe('given');
});
