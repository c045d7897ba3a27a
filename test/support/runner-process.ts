import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

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
 * with its log when it ends instead. `uid`: as another user, where this one is root.
 */
export async function startProcess(
  workspace: string,
  env: Record<string, string> = {},
  uid?: number,
): Promise<RunnerProcess> {
  const child = spawn(process.execPath, ['src/runner/main.ts', workspace], {
    env: {
      ...process.env,
      PORT: '0',
      HOST: '127.0.0.1',
      RUNNER_DISK_FLOOR_BYTES: '0',
      XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'gatehouse-config-')),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let text = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const ready = /"port":(\d+).*"msg":"ready"/.exec(text);
      if (ready !== null) resolve(Number(ready[1]));
    });
    child.once('exit', () => reject(new Error(text)));
  });
  return { child, url: `http://127.0.0.1:${port}`, log: () => text, ended };
}
