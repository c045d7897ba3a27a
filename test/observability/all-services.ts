import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  type LogLine,
  SOURCE_CACHE,
  spawnService,
  watchService,
} from '../support/child-service.ts';

/** The three services as `npm run start:all` runs them, on free ports and in folders of their own. */
export interface AllServices {
  /** The process that started them. */
  readonly pid: number | undefined;
  /** Base URLs. */
  readonly authz: string;
  readonly notifyInternal: string;
  readonly notifyClient: string;
  readonly runner: string;
  readonly metrics: Readonly<Record<'authz' | 'notify' | 'runner', string>>;
  readonly workspace: string;
  /** Log lines of one service so far, parsed. */
  readonly logOf: (name: 'authz' | 'notify' | 'runner') => readonly LogLine[];
  /** The process id of the runner. */
  readonly runnerPid: () => Promise<number>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Settles with the exit code when the whole has ended (null: by a signal). */
  readonly exited: Promise<number | null>;
  /** SIGTERM, the end, and the removal of all folders. */
  stop(): Promise<number | null>;
}

export type AllServicesOptions = {
  /** Settings beside those of a test. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files of the runner's project, path → text. */
  readonly files?: Readonly<Record<string, string>>;
};

const START_TIMEOUT_MS = 120_000;
const LINE = /^(authz|notify|runner|all) *\| (.*)$/;
export const TOKEN = 'all-services-token';
export const ADMIN_SECRET = 'all-services-secret';

/**
 * Starts scripts/start-all.ts and waits until every port is there.
 * Errors: throws with the last lines when it ends first or takes too long.
 */
export async function startAllServices(options: AllServicesOptions = {}): Promise<AllServices> {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-all-'));
  const workspace = join(dir, 'project');
  await mkdir(workspace);
  for (const [path, text] of Object.entries(options.files ?? {})) {
    await mkdir(dirname(join(workspace, path)), { recursive: true });
    await writeFile(join(workspace, path), text);
  }
  const env = { ...settingsOf(dir), ...options.env };
  const child = spawnService(['scripts/start-all.ts', workspace], env);
  const lines: { readonly name: string; readonly entry: LogLine }[] = [];
  const found = new Map<string, number>();
  const { exited, ready } = watchService(child, {
    textOf: (line) => LINE.exec(line)?.[2] ?? '',
    see: (entry, line) => {
      const name = LINE.exec(line)?.[1] ?? '';
      lines.push({ name, entry });
      for (const [key, port] of portsOf(name, entry)) found.set(key, port);
      return found.size === PORT_COUNT ? true : undefined;
    },
    timeoutMs: START_TIMEOUT_MS,
  });
  await ready.catch(async (error: unknown) => {
    child.kill('SIGTERM');
    await exited;
    await rm(dir, { recursive: true, force: true });
    throw error;
  });
  const urlOf = (key: string): string => `http://127.0.0.1:${found.get(key)}`;
  return {
    authz: urlOf('authz'),
    notifyInternal: urlOf('notify internal'),
    notifyClient: urlOf('notify client'),
    runner: urlOf('runner'),
    metrics: {
      authz: urlOf('authz metrics'),
      notify: urlOf('notify metrics'),
      runner: urlOf('runner metrics'),
    },
    workspace,
    logOf: (name) => lines.filter((line) => line.name === name).map(({ entry }) => entry),
    runnerPid: async () => {
      const text = await readFile(join(workspace, '.runner', 'endpoint.json'), 'utf8');
      return (JSON.parse(text) as { pid: number }).pid;
    },
    pid: child.pid,
    signal: (signal) => child.kill(signal),
    exited,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      const code = await exited;
      await rm(dir, { recursive: true, force: true });
      return code;
    },
  };
}

const PORT_COUNT = 7;

/** The ports that a line of the log tells of. */
function portsOf(name: string, entry: LogLine): readonly (readonly [string, number])[] {
  if (name === 'notify' && entry.msg === 'server_listen') {
    return [[`notify ${String(entry['listener'])}`, Number(entry['port'])]];
  }
  if (name === 'notify' || entry.msg !== 'ready') return [];
  return [
    [name, Number(entry['port'])],
    [`${name} metrics`, Number(entry['metrics_port'])],
  ];
}

function settingsOf(dir: string): Readonly<Record<string, string>> {
  return {
    PATH: process.env['PATH'] ?? '',
    NODE_OPTIONS: `--import=${SOURCE_CACHE}`,
    HOME: dir,
    GATEWAY_CONNECT_PORT: '0',
    GATEWAY_METRICS_PORT: '0',
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_DATA_DIR: join(dir, 'authz'),
    GATEWAY_SERVICE_AUTH_TOKENS: TOKEN,
    GATEWAY_ADMIN_API_SECRET: ADMIN_SECRET,
    GATEWAY_WORKERS: '1',
    GATEWAY_INDEX_BYTES: String(256 * 1024 * 1024),
    GATEWAY_DRAIN_MS: '50',
    NOTIFY_INTERNAL_PORT: '0',
    NOTIFY_CLIENT_PORT: '0',
    NOTIFY_METRICS_PORT: '0',
    NOTIFY_HOST: '127.0.0.1',
    NOTIFY_DATA_DIR: join(dir, 'notify'),
    NOTIFY_SERVICE_AUTH_TOKENS: TOKEN,
    NOTIFY_STREAM_SECRET: 'all-services-stream-secret',
    NOTIFY_DRAIN_MS: '50',
    PORT: '0',
    HOST: '127.0.0.1',
    RUNNER_METRICS_PORT: '0',
    RUNNER_API_TOKEN: TOKEN,
  };
}
