import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { atEnd } from './cleanup.ts';

export type Service = {
  readonly baseUrl: string;
  readonly metricsUrl: string;
  readonly token: string;
  readonly adminSecret: string;
  readonly pid: number;
  /** Milliseconds from spawn to ready. */
  readonly startMs: number;
  stop(): Promise<void>;
};

type Ports = { readonly port: number; readonly metricsPort: number };
type LogLine = {
  readonly msg?: string;
  readonly port?: number;
  readonly metrics_port?: number;
};

/**
 * A service of its own on free ports with an empty data directory; `env` adds settings. Stopped by `stop`, or at the end of `withCleanup`.
 * LOAD_NODE_ARGS are arguments of its Node.js, such as --trace-gc; what that prints goes to stderr. `directory` is
 * another checkout, whose code runs; `node` another Node.js, which runs it.
 */
export async function startService(
  env: Readonly<Record<string, string>> = {},
  directory = process.cwd(),
  node = process.execPath,
): Promise<Service> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-load-'));
  const [token, adminSecret] = ['load-token', 'load-admin-secret'];
  const startedMs = performance.now();
  const nodeArgs = (process.env['LOAD_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
  const child = spawn(node, [...nodeArgs, 'src/main.ts'], {
    cwd: directory,
    // Ctrl-C of a terminal is for the program that started it, which stops it.
    detached: true,
    stdio: ['ignore', nodeArgs.length > 0 ? process.stderr : 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      GATEWAY_DATA_DIR: dataDir,
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_CONNECT_PORT: '0',
      GATEWAY_METRICS_PORT: '0',
      GATEWAY_SERVICE_AUTH_TOKENS: token,
      GATEWAY_ADMIN_API_SECRET: adminSecret,
      ...env,
    },
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
    await rm(dataDir, { recursive: true, force: true });
  };
  atEnd(stop);
  const { port, metricsPort } = await readyPorts(child);
  const startMs = performance.now() - startedMs;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}`,
    token,
    adminSecret,
    pid: child.pid as number,
    startMs,
    stop,
  };
}

/** Waits for the log line `ready`, which names the ports. Errors: throws with the last lines if the process ends before. */
function readyPorts(child: ChildProcess): Promise<Ports> {
  const { promise, resolve, reject } = Promise.withResolvers<Ports>();
  const last: string[] = [];
  const lines = createInterface({ input: child.stderr as NonNullable<ChildProcess['stderr']> });
  lines.on('line', (line) => {
    last.push(line);
    if (last.length > 20) last.shift();
    if (!line.startsWith('{')) return;
    const entry = JSON.parse(line) as LogLine;
    const { msg, port, metrics_port: metricsPort } = entry;
    if (msg === 'ready' && port !== undefined && metricsPort !== undefined) {
      resolve({ port, metricsPort });
    }
  });
  child.once('error', reject);
  child.once('exit', (code) =>
    reject(new Error(`the service ended (${code}):\n${last.join('\n')}`)),
  );
  return promise;
}
