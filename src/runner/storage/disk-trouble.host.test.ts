import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppendFile } from './append-file.ts';
import { openLogWriter } from './log-writer.ts';
import { openRunStore } from './run-store.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'trouble-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

// The device that refuses every byte for want of space.
describe.skipIf(process.platform !== 'linux')('a full disk', () => {
  test('is told from other trouble when a log is written', () => {
    const log = openLogWriter('/dev/full');
    expect(() => log.write(['x'])).toThrow(
      expect.objectContaining({ reason: 'DISK_FULL' }) as Error,
    );
    log.close();
  });

  test('refuses appends, and all later ones when what was torn cannot be cut off', async () => {
    const file = await AppendFile.open('/dev/full', 0o600);
    await expect(file.append(Buffer.from('x'))).rejects.toMatchObject({ reason: 'DISK_FULL' });
    await expect(file.append(Buffer.from('x'))).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
    });
    await file.close();
  });
});

test('an append that fails half-way leaves whole records, and smaller ones go on', async () => {
  // Files of this process may not grow beyond 64 blocks: then writes are cut short and fail.
  const source = `
    import { openRunStore } from ${JSON.stringify(new URL('run-store.ts', import.meta.url).href)};
    const store = await openRunStore({ stateDir: process.argv[1], diskFloorBytes: 0, report() {} });
    const outcomes = [];
    for (let i = 0; i < 40; i++) {
      const text = 'x'.repeat(i % 10 === 9 ? 10 : 7_000);
      const append = store.append('r', { type: 't', at: 'x', i, text });
      outcomes.push(await append.then(() => i, (error) => error.reason));
    }
    const log = store.openLog('r', 'j', 1);
    for (let i = 0; i < 40; i++) {
      try {
        log.write([i + 'x'.repeat(7_000), String(i)]);
      } catch (error) {
        if (error.reason !== 'STORE_UNAVAILABLE') throw error;
        log.write(['failed']);
        break;
      }
    }
    await store.close();
    process.stdout.write(JSON.stringify(outcomes));
  `;
  const script = `trap '' XFSZ; ulimit -f 64; exec "$0" --input-type=module -e "$1" "$2"`;
  const args = ['-c', script, process.execPath, source, dir];
  const child = spawnSync('bash', args, { encoding: 'utf8' });
  expect(child.stderr).toBe('');
  const outcomes = JSON.parse(child.stdout) as (number | string)[];
  const acknowledged = outcomes.filter((outcome) => typeof outcome === 'number');
  expect(outcomes).toContain('STORE_UNAVAILABLE');
  expect(acknowledged).toContain(39);

  const reported: string[] = [];
  const report = (event: string): unknown => reported.push(event);
  const store = await openRunStore({ stateDir: dir, diskFloorBytes: 0, report });
  const [run] = await store.recover();
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.readLog('r', 'j', 1)) chunks.push(chunk);
  const lines = Buffer.concat(chunks).toString('utf8').split('\n');
  expect(lines.slice(-4)).toEqual(['8' + 'x'.repeat(7_000), '8', 'failed', '']);
  await store.close();
  expect(run?.records.map((record) => record['i'])).toEqual(acknowledged);
  expect(reported).toEqual([]);
});
