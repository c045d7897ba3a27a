import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { withFolderLimit } from './folder-size.ts';

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'folder-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

/** Goes on until it is stopped. */
function untilStopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(new Error('stopped'));
    });
  });
}

test('what grows too large is stopped', async () => {
  const dir = await folder();
  const { signal } = new AbortController();
  await expect(
    withFolderLimit(dir, 1000, signal, async (inner) => {
      await writeFile(join(dir, 'pack'), Buffer.alloc(1001));
      return await untilStopped(inner);
    }),
  ).rejects.toMatchObject({ reason: 'RESULT_TOO_LARGE' });
});

test('what stays below ends as it ends, and follows the other signal', async () => {
  const dir = await folder();
  const stop = new AbortController();
  expect(await withFolderLimit(dir, 1000, stop.signal, () => Promise.resolve(7))).toBe(7);
  const running = withFolderLimit(join(dir, 'absent'), 1000, stop.signal, untilStopped);
  stop.abort();
  await expect(running).rejects.toThrow('stopped');
});
