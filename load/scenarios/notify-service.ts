import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { atEnd } from '../../bench/harness/cleanup.ts';

export type NotifyService = {
  readonly internalUrl: string;
  readonly clientPort: number;
  readonly token: string;
  readonly pid: number;
  /** The sum of all series of a metric. */
  metric(name: string): Promise<number>;
  stop(): Promise<void>;
};

/** A notification service of its own on free ports; its data is removed by `stop`. Errors: throws when it does not start. */
export async function startNotifyService(): Promise<NotifyService> {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-notify-load-'));
  const token = 'load-token';
  const child = spawn(process.execPath, ['src/notify/main.ts'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    env: {
      PATH: process.env['PATH'],
      NOTIFY_DATA_DIR: directory,
      NOTIFY_HOST: '127.0.0.1',
      NOTIFY_INTERNAL_PORT: '0',
      NOTIFY_CLIENT_PORT: '0',
      NOTIFY_METRICS_PORT: '0',
      NOTIFY_SERVICE_AUTH_TOKENS: token,
    },
  });
  const exited = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    await rm(directory, { recursive: true, force: true });
  };
  atEnd(stop);
  const ports: Record<string, number> = {};
  const last: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    last.push(line);
    if (!line.includes('"server_listen"')) continue;
    const { listener, port } = JSON.parse(line) as { listener: string; port: number };
    ports[listener] = port;
    if (Object.keys(ports).length === 3) break;
  }
  // What it logs from now on is not read.
  child.stderr.resume();
  const { internal, client = 0, metrics } = ports;
  if (metrics === undefined) throw new Error(`the service ended:\n${last.join('\n')}`);
  return {
    internalUrl: `http://127.0.0.1:${internal}`,
    clientPort: client,
    token,
    pid: child.pid ?? 0,
    metric: async (name) => {
      const answer = await fetch(`http://127.0.0.1:${metrics}/metrics`);
      return (await answer.text())
        .split('\n')
        .filter((line) => line.startsWith(name))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
    stop,
  };
}
