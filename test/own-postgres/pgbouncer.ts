import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../rollout/balancer.ts';

/** The PgBouncer of this machine; Debian keeps it where only root's PATH leads. */
export const pgbouncerPath = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'pgbouncer'))
  .find((path) => existsSync(path));

export type PgBouncer = {
  readonly port: number;
  stop(): Promise<void>;
};

const START_TIMEOUT_MS = 30_000;

/** A PgBouncer with its own settings alone: it lets everybody in, as who is stated here. */
export async function startPgBouncer(options: {
  readonly mode: 'session' | 'transaction' | 'statement';
  readonly server: { readonly host: string; readonly port: number };
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly poolSize: number;
  readonly settings?: readonly string[];
}): Promise<PgBouncer> {
  const { mode, server, user, password, database, poolSize } = options;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-pgbouncer-'));
  const [port = 0] = await freePorts(1);
  const file = join(folder, 'pgbouncer.ini');
  const lines = [
    '[databases]',
    `${database} = host=${server.host} port=${server.port} user=${user} password=${password}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    'max_client_conn = 500',
    ...(options.settings ?? []),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  // It does not run as root, and reads its settings as the user that it becomes.
  chmodSync(folder, 0o755);
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn(pgbouncerPath ?? 'pgbouncer', [...asUser, file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString()));
  const stop = async (): Promise<void> => {
    await ended(child);
    rmSync(folder, { recursive: true, force: true });
  };
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      await stop();
      throw new Error(`PgBouncer did not start: ${said.join('')}`);
    }
    await sleep(20);
  }
  return { port, stop };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

async function accepts(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
