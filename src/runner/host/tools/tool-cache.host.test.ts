import { existsSync, fstatSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { AppError } from '../../../shared/app-error.ts';
import { ToolCache } from './tool-cache.ts';

function newCache(): ToolCache {
  const dir = mkdtempSync(join(tmpdir(), 'tool-cache-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return new ToolCache(join(dir, 'tools'));
}

test('who waits for what another job installs is let go with its own cancel, and nobody else', async () => {
  const cache = newCache();
  const [begun, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = cache.place('node', '1.0.0', async () => {
    begun.resolve();
    await mayEnd.promise;
  });
  await begun.promise;
  const never = (): Promise<void> => Promise.reject(new Error('it is being made already'));
  const stop = new AbortController();
  const second = cache.place('node', '1.0.0', never, stop.signal);
  const third = cache.place('node', '1.0.0', never, new AbortController().signal);
  stop.abort();
  await expect(second).rejects.toMatchObject({ reason: 'CANCELLED' });
  await expect(cache.place('node', '1.0.0', never, stop.signal)).rejects.toMatchObject({
    reason: 'CANCELLED',
  });
  expect(existsSync(cache.dirOf('node', '1.0.0'))).toBe(false);
  mayEnd.resolve();
  const dir = cache.dirOf('node', '1.0.0');
  expect(await Promise.all([first, third])).toEqual([dir, dir]);
});

test('one whose maker was cancelled is made by who still waits for it', async () => {
  const cache = newCache();
  const begun = Promise.withResolvers<void>();
  const stop = new AbortController();
  const first = cache.place('go', '1.0.0', async () => {
    begun.resolve();
    await new Promise((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(new AppError('CANCELLED', 'stopped')));
    });
  });
  await begun.promise;
  const waiting = new AbortController().signal;
  const fill = (staging: string): Promise<void> => writeFile(join(staging, 'go'), 'x');
  const second = cache.place('go', '1.0.0', fill, waiting);
  stop.abort();
  await expect(first).rejects.toMatchObject({ reason: 'CANCELLED' });
  expect(readdirSync(await second)).toEqual(['go']);
});

test('all of a tool is on the disk before it gets its name, and the name before anybody is told', async () => {
  const cache = newCache();
  const dir = cache.dirOf('node', '1.0.0');
  const handle = await open(tmpdir(), 'r');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const flushed = new Map<number, 'before' | 'after'>();
  const spy = vi.spyOn(prototype, 'sync').mockImplementation(function (this: FileHandle) {
    flushed.set(fstatSync(this.fd).ino, existsSync(dir) ? 'after' : 'before');
    return this.datasync();
  });
  try {
    await cache.place('node', '1.0.0', async (staging) => {
      await mkdir(join(staging, 'lib/empty'), { recursive: true });
      await mkdir(join(staging, 'bin'));
      await symlink('../lib/a', join(staging, 'bin/a'));
      const names = ['bin/node', 'lib/a', ...Array.from({ length: 20 }, (_, i) => `lib/${i}`)];
      for (const name of names) await writeFile(join(staging, name), 'x', { mode: 0o555 });
    });
  } finally {
    spy.mockRestore();
  }
  const inside = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  expect(inside).toHaveLength(26);
  for (const name of ['.', ...inside.filter((one) => one !== 'bin/a')]) {
    expect([name, flushed.get(statSync(join(dir, name)).ino)]).toEqual([name, 'before']);
  }
  for (const folder of [dirname(dir), join(cache.root, 'node'), cache.root]) {
    expect(flushed.get(statSync(folder).ino)).toBe('after');
  }
});
