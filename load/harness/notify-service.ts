import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export type NotifyService = {
  readonly internalUrl: string;
  readonly clientPort: number;
  readonly metricsUrl: string;
  readonly token: string;
  readonly pid: number;
  stop(): Promise<void>;
};

/** A notification service of its own on free ports; its data is removed by `stop`. */
export async function startNotifyService(
  env: Readonly<Record<string, string>>,
): Promise<NotifyService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-notify-load-'));
  const token = 'load-token';
  const child = spawn(process.execPath, ['src/notify/main.ts'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      NOTIFY_DATA_DIR: dataDir,
      NOTIFY_HOST: '127.0.0.1',
      NOTIFY_INTERNAL_PORT: '0',
      NOTIFY_CLIENT_PORT: '0',
      NOTIFY_METRICS_PORT: '0',
      NOTIFY_SERVICE_AUTH_TOKENS: token,
      ...env,
    },
  });
  const ports = await listeningPorts(child);
  const stop = async (): Promise<void> => {
    if (child.exitCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
    await rm(dataDir, { recursive: true, force: true });
  };
  return {
    internalUrl: `http://127.0.0.1:${ports.get('internal')}`,
    clientPort: ports.get('client') ?? 0,
    metricsUrl: `http://127.0.0.1:${ports.get('metrics')}`,
    token,
    pid: child.pid as number,
    stop,
  };
}

/** Errors: throws with the last lines if the process ends before all three listen. */
function listeningPorts(child: ChildProcess): Promise<ReadonlyMap<string, number>> {
  const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, number>>();
  const ports = new Map<string, number>();
  const last: string[] = [];
  const lines = createInterface({ input: child.stderr as NonNullable<ChildProcess['stderr']> });
  lines.on('line', (line) => {
    last.push(line);
    if (last.length > 20) last.shift();
    if (!line.includes('"server_listen"')) return;
    const { listener, port } = JSON.parse(line) as { listener: string; port: number };
    ports.set(listener, port);
    if (ports.size === 3) resolve(ports);
  });
  child.once('exit', (code) =>
    reject(new Error(`the service ended (${code}):\n${last.join('\n')}`)),
  );
  return promise;
}

/** Resident bytes of a process, from the proc file system; NaN where there is none. */
export async function residentBytes(pid: number): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  } catch {
    return Number.NaN;
  }
}

/** The sum of all samples of a metric whose labels hold `labelText`. */
export async function metricSum(
  service: NotifyService,
  name: string,
  labelText = '',
): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith(name) && line.includes(labelText))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
