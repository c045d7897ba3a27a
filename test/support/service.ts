import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import {
  type Launcher,
  type LogLine,
  spawnService as spawnChild,
  watchService,
} from './child-service.ts';
import { asAdmin, cloneInto, urlOf, withDatabase } from './postgres-admin.ts';

/** A running authorization service of the test's own, as a child process. */
export interface Service {
  readonly baseUrl: string;
  readonly metricsUrl: string;
  /** host:port of the RPC listener, for gRPC clients. */
  readonly address: string;
  readonly token: string;
  readonly adminSecret: string;
  readonly pid: number;
  readonly dataDir: string;
  /** Log lines so far, parsed; lines that are not JSON are left out. */
  readonly log: readonly LogLine[];
  /** Settles with the exit code when the process has ended (null: by a signal). */
  readonly exited: Promise<number | null>;
  /** Sends SIGTERM, waits for the end, and removes the data directory unless it was given. */
  stop(): Promise<number | null>;
  /** Sends a signal, SIGKILL by default, and waits for the end. Keeps the data directory. */
  kill(signal?: NodeJS.Signals): Promise<number | null>;
}

export type ServiceOptions = {
  /** Settings that replace or add to the ones of a test instance; '' unsets one. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** `shared`: a database of the run's PostgreSQL, gone after `stop`. Default: an embedded one, which takes longer. */
  readonly postgres?: 'shared' | undefined;
  /** Kept by `stop`, so that a test can start on it again. Default: a new one, removed by `stop`. */
  readonly dataDir?: string | undefined;
  readonly startTimeoutMs?: number | undefined;
  /** What starts the service, in a process group of its own; `node src/main.ts` here when absent. */
  readonly launcher?: Launcher | undefined;
};

export const TEST_TOKEN = 'test-token';
export const TEST_ADMIN_SECRET = 'test-admin-secret';

/** Settings of every service of the tests. */
export const TEST_SETTINGS: Readonly<Record<string, string>> = {
  GATEWAY_HOST: '127.0.0.1',
  GATEWAY_CONNECT_PORT: '0',
  GATEWAY_METRICS_PORT: '0',
  GATEWAY_SERVICE_AUTH_TOKENS: TEST_TOKEN,
  GATEWAY_ADMIN_API_SECRET: TEST_ADMIN_SECRET,
  GATEWAY_DRAIN_MS: '50',
};

/**
 * Starts `src/main.ts` on free ports of the loopback with its own embedded Postgres, or on
 * `env.DATABASE_URL`, and waits until it is ready.
 * Errors: throws with the last log lines when the process ends first or takes too long.
 */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'gatehouse-test-')));
  const database = options.postgres === 'shared' ? await cloneDatabase() : undefined;
  const env = { ...options.env, ...(database === undefined ? {} : { DATABASE_URL: database.url }) };
  const child = spawnService(dataDir, env, options.launcher);
  const {
    log,
    exited,
    ready: becomesReady,
  } = watchService(child, {
    see: (entry) =>
      entry.msg === 'ready'
        ? { port: Number(entry['port']), metricsPort: Number(entry['metrics_port']) }
        : undefined,
    timeoutMs: options.startTimeoutMs,
  });
  const ready = await becomesReady.catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return exited;
  };
  return {
    baseUrl: `http://127.0.0.1:${ready.port}`,
    metricsUrl: `http://127.0.0.1:${ready.metricsPort}`,
    address: `127.0.0.1:${ready.port}`,
    token: TEST_TOKEN,
    adminSecret: TEST_ADMIN_SECRET,
    pid: child.pid ?? -1,
    dataDir,
    log,
    exited,
    kill,
    async stop() {
      const code = await kill('SIGTERM');
      await database?.drop();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
      return code;
    },
  };
}

/** An empty database of the run's PostgreSQL, by default with tables. Not `createTestDatabase`, which loads a pool. */
export async function cloneDatabase(
  kind: 'migrated' | 'none' = 'migrated',
): Promise<{ readonly url: string; drop(): Promise<void> }> {
  const { admin, template } = inject('postgres');
  const source = kind === 'none' ? 'template0' : template;
  const name = `service_${randomUUID().replaceAll('-', '')}`;
  await cloneInto(name, source, admin);
  return {
    url: urlOf(withDatabase(admin, name)),
    drop: () => asAdmin(admin, `drop database if exists ${name} with (force)`),
  };
}

/** Starts the process without waiting for anything; for tests of starts that must fail. */
export function spawnService(
  dataDir: string,
  env: Readonly<Record<string, string>>,
  launcher?: Launcher,
): ChildProcess {
  const settings = {
    PATH: process.env['PATH'] ?? '',
    GATEWAY_DATA_DIR: dataDir,
    ...TEST_SETTINGS,
    ...env,
  };
  return spawnChild(['src/main.ts'], settings, { launcher });
}

/**
 * A POST of JSON to a method, with the service token; the parsed answer. Where the service has a project for the
 * file, a body that names no project asks for that.
 */
export async function call(
  service: Pick<Service, 'baseUrl' | 'token' | 'adminSecret'> & { readonly projectId?: string },
  method: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const isScoped = service.projectId !== undefined && !method.startsWith('AdminService/');
  const own = isScoped ? { project_id: service.projectId } : {};
  const response = await fetch(`${service.baseUrl}/workspace.v1.${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${service.token}`,
      ...(method.startsWith('AdminService/') ? { 'x-admin-secret': service.adminSecret } : {}),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify({ ...own, ...(body as object) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    headers: response.headers,
  };
}
