import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type ChildService,
  type LogLine,
  spawnService,
  watchService,
} from '../support/child-service.ts';
import { cloneDatabase } from '../support/service.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';

/** Reached by what listens on every address, and not by what listens on 127.0.0.1. */
const OTHER_ADDRESS = '127.0.0.2';

type Program = {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The credential without which it would trust everybody. */
  readonly credential: Readonly<Record<string, string>>;
  readonly hostSetting: string;
  readonly proxySetting: string;
  /** Ports of a line of its log. */
  readonly portsOf: (line: LogLine) => readonly unknown[];
  readonly portCount: number;
  /** Of the database that it gets; none: it has no use for one. */
  readonly database?: 'migrated' | 'none';
};

const PROGRAMS: Readonly<Record<string, Program>> = {
  'authorization service': {
    args: ['src/main.ts'],
    env: { GATEWAY_CONNECT_PORT: '0', GATEWAY_METRICS_PORT: '0', GATEWAY_WORKERS: '1' },
    credential: { GATEWAY_SERVICE_AUTH_TOKENS: 'a-token' },
    hostSetting: 'GATEWAY_HOST',
    proxySetting: 'GATEWAY_BEHIND_PROXY',
    portsOf: (line) => (line.msg === 'ready' ? [line['port'], line['metrics_port']] : []),
    portCount: 2,
    database: 'migrated',
  },
  'two instances': {
    args: ['src/main.ts', '--instances', '2'],
    env: { GATEWAY_CONNECT_PORT: '0', GATEWAY_METRICS_PORT: '0', GATEWAY_WORKERS: '1' },
    credential: { GATEWAY_SERVICE_AUTH_TOKENS: 'a-token' },
    hostSetting: 'GATEWAY_HOST',
    proxySetting: 'GATEWAY_BEHIND_PROXY',
    portsOf: (line) =>
      line.msg === 'ready' && Array.isArray(line['metrics_ports'])
        ? [line['port'], ...(line['metrics_ports'] as unknown[])]
        : [],
    portCount: 3,
    database: 'migrated',
  },
  'notification service': {
    args: ['src/notify/main.ts'],
    env: {
      NOTIFY_INTERNAL_PORT: '0',
      NOTIFY_CLIENT_PORT: '0',
      NOTIFY_METRICS_PORT: '0',
    },
    credential: { NOTIFY_SERVICE_AUTH_TOKENS: 'a-token' },
    hostSetting: 'NOTIFY_HOST',
    proxySetting: 'NOTIFY_BEHIND_PROXY',
    portsOf: (line) => (line.msg === 'server_listen' ? [line['port']] : []),
    portCount: 3,
    database: 'none',
  },
  runner: {
    args: ['src/runner/main.ts'],
    env: { PORT: '0', RUNNER_METRICS_PORT: '0', RUNNER_DISK_FLOOR_BYTES: '0' },
    credential: { RUNNER_API_TOKEN: 'a-token' },
    hostSetting: 'HOST',
    proxySetting: 'RUNNER_BEHIND_PROXY',
    portsOf: (line) => (line.msg === 'ready' ? [line['port'], line['metrics_port']] : []),
    portCount: 2,
  },
};

let dir: string;
const running: ChildService<readonly number[]>[] = [];
const databases: Awaited<ReturnType<typeof cloneDatabase>>[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-address-'));
  mkdirSync(join(dir, 'project/.github/workflows'), { recursive: true });
});
afterEach(async () => {
  for (const { child, exited } of running.splice(0)) {
    child.kill('SIGTERM');
    await exited;
  }
  for (const database of databases.splice(0)) await database.drop();
  rmSync(dir, { recursive: true, force: true });
});

/** Starts it, and waits for the ports that its log names. */
async function start(
  program: Program,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly ports: readonly number[]; readonly log: readonly LogLine[] }> {
  const ports: number[] = [];
  const database = program.database && (await cloneDatabase(program.database));
  if (database !== undefined) databases.push(database);
  const child = spawnService(program.args, {
    PATH: process.env['PATH'],
    DEBUG_ASSERTIONS: '',
    DATABASE_URL: database?.url,
    HOME: dir,
    GATEWAY_DATA_DIR: join(dir, 'authz'),
    GATEWAY_DRAIN_MS: '0',
    NOTIFY_DATA_DIR: join(dir, 'notify'),
    NOTIFY_DRAIN_MS: '0',
    RUNNER_WORKSPACE: join(dir, 'project'),
    ...program.env,
    ...program.credential,
    ...env,
  });
  const service = watchService(child, {
    see: (line) => {
      ports.push(...program.portsOf(line).map(Number));
      return ports.length === program.portCount ? ports : undefined;
    },
  });
  running.push(service);
  await service.ready;
  return { ports, log: service.log };
}

/** Whether a connection to the port is taken, or the error's code. */
function reach(host: string, port: number): Promise<string> {
  return new Promise<string>((settle) => {
    const socket = connect({ host, port });
    socket.once('connect', () => settle('taken'));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code ?? error.message));
  });
}

const warningsOf = (log: readonly LogLine[]): readonly LogLine[] =>
  log.filter(({ msg }) => msg === 'listens_without_tls');

/** Its instances start as the one service does. */
const TWICE = 'two instances';
/** It starts soonest: what all services do alike is shown by it. */
const SOONEST = 'runner';
const named = Object.entries(PROGRAMS).filter(([name]) => name !== byLength(TWICE, SOONEST));

describe.each(named)('%s', { timeout: 120_000 }, (name, program) => {
  const inEach = name === TWICE ? inLong(test) : inShort(test);
  inEach('a credential alone opens no address, of metrics neither', async () => {
    const { ports, log } = await start(program, {});
    for (const port of ports) {
      expect(await reach('127.0.0.1', port)).toBe('taken');
      expect(await reach(OTHER_ADDRESS, port)).toBe('ECONNREFUSED');
    }
    expect(warningsOf(log)).toEqual([]);
  });

  const inOne = name === SOONEST ? inShort(test) : inLong(test);
  inOne('a set address opens all ports, and the start warns once of plain text', async () => {
    const { ports, log } = await start(program, { [program.hostSetting]: '0.0.0.0' });
    for (const port of ports) expect(await reach(OTHER_ADDRESS, port)).toBe('taken');
    const warnings = warningsOf(log);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ level: 'warn', host: '0.0.0.0' });
    expect(warnings[0]?.['detail']).toContain(program.hostSetting);
    expect(warnings[0]?.['detail']).toContain(`${program.proxySetting}=true`);
  });

  inOne('nobody is warned where a proxy is stated', async () => {
    const env = { [program.hostSetting]: '0.0.0.0', [program.proxySetting]: 'true' };
    const { log } = await start(program, env);
    expect(warningsOf(log)).toEqual([]);
  });
});
