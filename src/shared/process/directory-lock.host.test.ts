import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockDirectory } from './directory-lock.ts';

/** A shell that takes the lock, writes its id, and starts a program that shares its descriptor for so long. */
function holder(lockPath: string, seconds: number, end: string) {
  const script = `exec 9>>"$1"; flock -n 9; echo $$ >"$1"; sleep ${seconds} & echo locked; ${end}`;
  return spawn('bash', ['-c', script, 'holder', lockPath], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

function lockPathOfTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'directory-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'lock');
}

test('a holder that was killed, and left the lock with what it had started for a moment', async () => {
  const lockPath = lockPathOfTest();
  const killed = holder(lockPath, 0.5, 'kill -9 $$');
  await once(killed, 'exit');
  const lock = lockDirectory(lockPath, 'the folder');
  expect(() => lockDirectory(lockPath, 'the folder')).toThrow(`(pid ${process.pid})`);
  lock.release();
});

test('a holder that is there is named at once', async () => {
  const lockPath = lockPathOfTest();
  const there = holder(lockPath, 0, 'wait; sleep 60');
  onTestFinished(() => void there.kill('SIGKILL'));
  await once(there.stdout, 'data');
  expect(() => lockDirectory(lockPath, 'the folder')).toThrow(
    `the folder is in use by another process (pid ${there.pid})`,
  );
});
