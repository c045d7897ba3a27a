import { lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeFileAtomic } from './atomic-file.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'atomic-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

test('replaces a file as a whole, with the mode asked for', async () => {
  const path = join(dir, 'a.json');
  await writeFileAtomic(path, 'one');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await writeFileAtomic(path, Buffer.from('two'), 0o664);
  expect(await readFile(path, 'utf8')).toBe('two');
  expect((await stat(path)).mode & 0o777).toBe(0o664);
  expect(await readdir(dir)).toEqual(['a.json']);
});

test('replaces no symbolic link and nothing behind it', async () => {
  const secret = join(dir, 'secret');
  await writeFile(secret, 'kept');
  await symlink(secret, join(dir, 'link'));
  await expect(writeFileAtomic(join(dir, 'link'), 'new')).rejects.toMatchObject({
    reason: 'STORE_UNAVAILABLE',
  });
  expect(await readFile(secret, 'utf8')).toBe('kept');
  expect((await lstat(join(dir, 'link'))).isSymbolicLink()).toBe(true);
  expect((await readdir(dir)).toSorted()).toEqual(['link', 'secret']);
});

test('leaves nothing behind when it fails, and names no path', async () => {
  const failed = writeFileAtomic(join(dir, 'missing', 'a'), 'x');
  await expect(failed).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  await failed.catch((error: unknown) => expect(String(error)).not.toContain(dir));
  expect(await readdir(dir)).toEqual([]);
  await expect(writeFileAtomic(join(dir, 'a'), 5 as unknown as string)).rejects.toMatchObject({
    reason: 'STORE_UNAVAILABLE',
  });
  expect(await readdir(dir)).toEqual([]);
});

test('writers that come together leave one of their contents', async () => {
  const path = join(dir, 'a');
  const contents = Array.from({ length: 20 }, (_, i) => `${i}`.repeat(1_000));
  await Promise.all(contents.map((content) => writeFileAtomic(path, content)));
  expect(contents).toContain(await readFile(path, 'utf8'));
  expect(await readdir(dir)).toEqual(['a']);
});
