import { chmod, chown, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeTree } from './copy-tree.ts';

const NOBODY = 65_534;
let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'remove-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** Runs `action` as somebody whom permissions stop, as root is not. */
async function withoutRoot(action: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await action();
  process.seteuid?.(NOBODY);
  try {
    await action();
  } finally {
    process.seteuid?.(0);
  }
}

test('folders without write permission are removed; what a link points at is not touched', async () => {
  if (process.geteuid?.() === 0) await chown(dir, NOBODY, NOBODY);
  await withoutRoot(async () => {
    const tree = join(dir, 'tree');
    await mkdir(join(tree, 'cache', 'deep'), { recursive: true });
    await writeFile(join(tree, 'cache', 'deep', 'file'), 'x');
    await mkdir(join(dir, 'kept'));
    await writeFile(join(dir, 'kept', 'file'), 'x');
    await chmod(join(dir, 'kept'), 0o500);
    await symlink(join(dir, 'kept'), join(tree, 'cache', 'link'));
    await chmod(join(tree, 'cache', 'deep'), 0o500);
    await chmod(join(tree, 'cache'), 0o500);
    await expect(rm(tree, { recursive: true })).rejects.toThrow('EACCES');
    await removeTree(tree);
    expect(await readdir(dir)).toEqual(['kept']);
    expect(await readdir(join(dir, 'kept'))).toEqual(['file']);
    await chmod(join(dir, 'kept'), 0o700);
  });
});

test('what is not there is removed already', async () => {
  await removeTree(join(dir, 'never'));
  expect(await readdir(dir)).toEqual([]);
});
