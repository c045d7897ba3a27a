// Starts a service beside a PostgreSQL of its own and reads what both take; yields nothing by itself.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts';

/** Of the measured services, which serve this machine only. */
export const ADMIN_SECRET = 'bench-admin-secret';
const TICKS_PER_SECOND = 100;

/** A service from some checkout, whose CPU and that of its PostgreSQL can be read apart. */
export type MeasuredService = {
  readonly directory: string;
  readonly postgres: EmbeddedPostgres;
  port(): number;
  /** CPU seconds so far: of the service's process, and of PostgreSQL with all its sessions. */
  cpu(): { readonly service: number; readonly postgres: number };
  /** CPU seconds of each thread of the service so far, by its id; that of the gateway's thread is `pid`. */
  threads(): ReadonlyMap<number, number>;
  pid(): number;
  /** Ends the process and starts another one on the same database; returns milliseconds until it was ready. */
  restart(): Promise<number>;
  stop(): Promise<void>;
};

/**
 * A service from the checkout `directory`, on one worker; `env` adds settings. PostgreSQL is started by this
 * program in a directory of its own.
 */
export async function startMeasured(
  directory: string,
  env: Readonly<Record<string, string>> = {},
): Promise<MeasuredService> {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  const postgres = await startEmbeddedPostgres({ dataDirectory });
  const service = await startMeasuredOn(postgres, directory, env);
  return {
    ...service,
    stop: async () => {
      await service.stop();
      await postgres.stop();
      rmSync(dataDirectory, { recursive: true, force: true });
    },
  };
}

/** As `startMeasured`, on a PostgreSQL that is there, and stays. */
export async function startMeasuredOn(
  postgres: EmbeddedPostgres,
  directory: string,
  env: Readonly<Record<string, string>> = {},
): Promise<MeasuredService> {
  const { user, password, database, host } = postgres.target;
  const settings = {
    PATH: process.env['PATH'] ?? '',
    DATABASE_URL: `postgres://${user}:${password}@/${database}?host=${host}`,
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_CONNECT_PORT: '0',
    GATEWAY_METRICS_PORT: '0',
    GATEWAY_DRAIN_MS: '0',
    GATEWAY_WORKERS: '1',
    GATEWAY_ADMIN_API_SECRET: ADMIN_SECRET,
    GATEWAY_WARM_UP_SECONDS: '0',
    ...env,
  };
  const nodeArgs = (process.env['BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
  const cgroup = process.env['BENCH_CGROUP'];
  let child: ChildProcess;
  let port = 0;
  const start = async (): Promise<number> => {
    const startMs = performance.now();
    const [command, ...args] = [...joining(cgroup), process.execPath, ...nodeArgs, 'src/main.ts'];
    child = spawn(command, args, {
      cwd: directory,
      env: settings,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    port = await readyPort(child);
    return performance.now() - startMs;
  };
  const end = async (): Promise<void> => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await gone;
  };
  await start();
  return {
    directory,
    postgres,
    port: () => port,
    cpu: () => ({ service: cpuSeconds(child.pid ?? 0), postgres: treeCpuSeconds(postgres.pid) }),
    threads: () => threadSeconds(child.pid ?? 0),
    pid: () => child.pid ?? 0,
    restart: async () => {
      await end();
      return start();
    },
    stop: end,
  };
}

/** What runs a command within a control group, which bounds its memory or CPU: a directory below /sys/fs/cgroup, made beforehand. */
function joining(cgroup: string | undefined): string[] {
  if (cgroup === undefined) return [];
  return ['/bin/sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup];
}

async function readyPort(child: ChildProcess): Promise<number> {
  const lines = createInterface({ input: child.stderr as NonNullable<ChildProcess['stderr']> });
  const last: string[] = [];
  return await new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      last.push(line);
      if (last.length > 20) last.shift();
      if (!line.startsWith('{')) return;
      const entry = JSON.parse(line) as { readonly msg?: string; readonly port?: number };
      if (entry.msg === 'ready' && entry.port !== undefined) resolve(entry.port);
    });
    child.once('exit', (code) =>
      reject(new Error(`the service ended (${code}):\n${last.join('\n')}`)),
    );
  });
}

/** User and system time of a process's own threads so far; with `children`, of those that ended, too. */
function cpuSeconds(pid: number, children = false): number {
  const fields = statOf(pid);
  if (fields === undefined) return 0;
  const own = Number(fields[11]) + Number(fields[12]);
  return (own + (children ? Number(fields[13]) + Number(fields[14]) : 0)) / TICKS_PER_SECOND;
}

function threadSeconds(pid: number): ReadonlyMap<number, number> {
  const seconds = new Map<number, number>();
  for (const name of readdirSync(`/proc/${pid}/task`)) {
    const fields = statOf(`${pid}/task/${name}`);
    if (fields === undefined) continue;
    seconds.set(Number(name), (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND);
  }
  return seconds;
}

/** The fields of /proc/PID/stat, or that of a thread, from the state on; undefined for one that is gone. */
function statOf(pid: number | string): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

/** CPU seconds of a process, of its children, and of those that have ended. */
function treeCpuSeconds(pid: number): number {
  let seconds = cpuSeconds(pid, true);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = statOf(Number(name))?.[1];
    if (parent === String(pid)) seconds += cpuSeconds(Number(name), true);
  }
  return seconds;
}
