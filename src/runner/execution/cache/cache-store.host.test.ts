import { lstatSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDir, writeFiles } from '../../../../test/support/job-harness.ts';
import { type CacheStore, createCacheStore } from './cache-store.ts';

function save(store: CacheStore, workspace: string, key: string, file = 'x'): Promise<boolean> {
  return store.save({ key, paths: ['x'], files: [file], workspace });
}

test('saves once, restores with links and modes, finds the newest by prefix', async () => {
  const workspace = temporaryDir();
  const store = await createCacheStore(join(workspace, 'cache'));
  writeFiles(workspace, { 'x/a': '1', "x/it's -n\nodd": 'odd' });
  symlinkSync('a', join(workspace, 'x', 'link'));
  expect(await save(store, workspace, 'deps-1')).toBe(true);
  expect(await save(store, workspace, 'deps-1')).toBe(false);
  writeFiles(workspace, { 'x/a': '2' });
  expect(await save(store, workspace, 'deps-2')).toBe(true);
  rmSync(join(workspace, 'x'), { recursive: true });
  expect(store.find(['deps-1'], ['x'])?.key).toBe('deps-1');
  expect(store.find(['other', 'deps-'], ['x'])?.key).toBe('deps-2');
  expect(store.find(['deps-1'], ['y'])).toBeUndefined();
  await store.restore('deps-1', ['x'], workspace);
  expect(readFileSync(join(workspace, 'x/a'), 'utf8')).toBe('1');
  expect(readFileSync(join(workspace, "x/it's -n\nodd"), 'utf8')).toBe('odd');
  expect(lstatSync(join(workspace, 'x/link')).isSymbolicLink()).toBe(true);
  const again = await createCacheStore(join(workspace, 'cache'));
  expect(again.find(['deps-'], ['x'])?.key).toBe('deps-2');
});

test('the least recently used ones make room; nothing half-written stays', async () => {
  const workspace = temporaryDir();
  const dir = join(workspace, 'cache');
  writeFiles(workspace, { x: 'x', missing: '' });
  const probe = await createCacheStore(join(workspace, 'probe'));
  await save(probe, workspace, 'p');
  const [archive = ''] = readdirSync(join(workspace, 'probe')).filter((name) =>
    name.endsWith('.tgz'),
  );
  const bytes = lstatSync(join(workspace, 'probe', archive)).size;
  const store = await createCacheStore(dir, { bytesMax: Math.floor(bytes * 2.5) });
  await save(store, workspace, 'a');
  await save(store, workspace, 'b');
  await store.restore('a', ['x'], workspace);
  await save(store, workspace, 'c');
  expect(['a', 'b', 'c'].map((key) => store.find([key], ['x'])?.key)).toEqual([
    'a',
    undefined,
    'c',
  ]);
  expect(readdirSync(dir)).toHaveLength(4);
  const tiny = await createCacheStore(join(workspace, 'tiny'), { bytesMax: 10 });
  await expect(save(tiny, workspace, 'a')).rejects.toMatchObject({ reason: 'RESULT_TOO_LARGE' });
  await expect(save(store, workspace, 'd', 'not-there')).rejects.toMatchObject({
    reason: 'STORE_UNAVAILABLE',
  });
  expect(readdirSync(join(workspace, 'tiny'))).toEqual([]);
  await expect(save(store, workspace, 'a,b')).rejects.toMatchObject({ reason: 'INVALID_NAME' });
});
