import type { ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Launcher, spawnService, watchService } from './child-service.ts';

/** A runner in a process of its own. */
export type RunnerProcess = {
  readonly child: ChildProcess;
  readonly url: string;
  /** Its log so far. */
  readonly log: () => string;
  /** Its exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
};

/**
 * The real process, on a free port, killed when the test ends. `env` are settings by variable. Rejects
 * with its log when it ends instead. `uid`: as another user, where this one is root. Outside of a test `whenDone` takes what kills it.
 * `launcher`: what is started instead of the checkout's.
 */
export async function startProcess(
  workspace: string,
  env: Record<string, string> = {},
  uid?: number,
  whenDone: (undo: () => void) => void = onTestFinished,
  launcher?: Launcher,
): Promise<RunnerProcess> {
  const settings = {
    ...process.env,
    PORT: '0',
    HOST: '127.0.0.1',
    RUNNER_DISK_FLOOR_BYTES: '0',
    XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'gatehouse-config-')),
    ...env,
  };
  const child = spawnService(['src/runner/main.ts', workspace], settings, { uid, launcher });
  whenDone(() => {
    child.kill('SIGKILL');
  });
  const { rawLog, exited, ready } = watchService(child, {
    see: (entry) => (entry.msg === 'ready' ? Number(entry['port']) : undefined),
  });
  const url = `http://127.0.0.1:${await ready}`;
  return { child, url, log: () => rawLog.join('\n'), ended: exited };
}
