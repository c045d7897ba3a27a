import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { instancesOf, shareOf } from '../../src/authz/supervisor/supervise.ts';
import { isAlive, readPidFile } from '../../src/store/embedded/embedded-postgres-process.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { ARRIVING, arrive } from '../http/arriving-clients.ts';
import {
  type ChildService,
  type LogLine,
  SOURCE_CACHE,
  spawnService,
  watchService,
} from '../support/child-service.ts';
import { TEST_TOKEN } from '../support/service.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';
import { BUSY, checkOnce, DYING_MS, failed, QUIET, startMixedLoad, summary } from './mixed-load.ts';

type Ready = {
  readonly port: number;
  readonly metricsPorts: readonly number[];
  readonly pids: readonly number[];
};

/** In short one alone: while it is replaced two share the port. */
const INSTANCES = byLength(1, 3);
let dataDir: string;
let started: ChildService<Ready>[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-supervisor-'));
});
afterEach(async () => {
  for (const { child, exited } of started.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
  }
  started = [];
  rmSync(dataDir, { recursive: true, force: true });
}, 120_000);

function supervise(
  count: number,
  env: Readonly<Record<string, string>> = {},
): ChildService<Ready> & { readonly child: ChildProcess } {
  const child = spawnService(['src/main.ts', '--instances', String(count)], {
    PATH: process.env['PATH'] ?? '',
    // The instances are not the subject here, and start sooner.
    DEBUG_ASSERTIONS: '',
    NODE_OPTIONS: `--import=${SOURCE_CACHE}`,
    GATEWAY_DATA_DIR: dataDir,
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_CONNECT_PORT: '0',
    GATEWAY_METRICS_PORT: '0',
    GATEWAY_SERVICE_AUTH_TOKENS: TEST_TOKEN,
    GATEWAY_WORKERS: '1',
    GATEWAY_PG_POOL_SIZE: '5',
    ...env,
  });
  const service = watchService<Ready>(child, { see: readyOf, timeoutMs: 110_000 });
  started.push(service);
  return service;
}

function readyOf(entry: LogLine): Ready | undefined {
  if (entry.msg !== 'ready' || entry['metrics_ports'] === undefined) return undefined;
  return {
    port: Number(entry['port']),
    metricsPorts: entry['metrics_ports'] as number[],
    pids: entry['pids'] as number[],
  };
}

const count = (service: ChildService<Ready>, event: string): number =>
  service.log.filter(({ msg }) => msg === event).length;

async function decisions(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^authz_check_duration_seconds_count\{rpc="Check"\} (\d+)$/m.exec(text)?.[1]);
}

/** As a release left it that admits no older one. */
async function makeSchemaNewer(): Promise<void> {
  const server = await startEmbeddedPostgres({ dataDirectory: dataDir });
  const client = new Client(server.target);
  await client.connect();
  await client.query(`insert into schema_migration (name, run_on) values ('9999_newer', now())`);
  await client.end();
  await server.stop();
}

describe('several instances under one supervisor', () => {
  it('answer on one port, spread, and are replaced one by one on SIGHUP without a failed request', async () => {
    const service = supervise(INSTANCES);
    const { port, metricsPorts, pids } = await service.ready;
    expect(new Set([port, ...metricsPorts]).size).toBe(INSTANCES + 1);
    expect(statSync(join(dataDir, 'database-url')).mode & 0o777).toBe(0o600);
    const load = startMixedLoad(port, TEST_TOKEN, byLength(QUIET, BUSY));
    const answering = async (): Promise<number> => {
      await checkOnce(port, TEST_TOKEN);
      const spread = await Promise.all(metricsPorts.map(decisions));
      return spread.filter((answered) => answered > 0).length;
    };
    await expect.poll(answering).toBeGreaterThan(byLength(0, 1));

    service.child.kill('SIGHUP');
    await expect.poll(() => count(service, 'instances_replaced'), { timeout: 120_000 }).toBe(1);
    await delay(500);
    const outcomes = await load.stop();
    process.stdout.write(`rolling restart of --instances ${INSTANCES}: ${summary(outcomes)}\n`);
    expect(failed(outcomes)).toEqual([]);
    expect(outcomes.length).toBeGreaterThan(byLength(30, 500));
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
    // None of them had the database for itself.
    const modes = service.log
      .filter(({ msg }) => msg === 'instance_mode')
      .map((one) => one['mode']);
    expect(modes).toContain('shared');

    const server = readPidFile(join(dataDir, 'postgres'))?.pid ?? 0;
    expect(isAlive(server)).toBe(true);
    const arriving = [
      arrive(port, '/healthz'),
      ...metricsPorts.map((at) => arrive(at, '/healthz')),
    ];
    await Promise.all(arriving.map((clients) => clients.answered(ARRIVING)));
    service.child.kill('SIGTERM');
    expect(await service.exited).toBe(0);
    expect(isAlive(server)).toBe(false);
    for (const { ended, outcomes: seen } of arriving) {
      await ended;
      expect([...seen.keys()].toSorted()).toEqual(['ECONNREFUSED', 'answered']);
    }
    expect(existsSync(join(dataDir, 'database-url'))).toBe(false);
    expect(count(service, 'stopped')).toBe(2 * INSTANCES + 1); // each twice, and the supervisor
  }, 180_000);

  inLong(it)(
    'lose only what was in flight when one is killed, which starts again',
    async () => {
      const service = supervise(2);
      const { port, pids } = await service.ready;
      const load = startMixedLoad(port, TEST_TOKEN);
      const beganMs = performance.now();
      await delay(1_500);
      const killedMs = performance.now() - beganMs;
      process.kill(pids[0] ?? 0, 'SIGKILL');
      await expect.poll(() => count(service, 'ready'), { timeout: 120_000 }).toBe(4);
      const outcomes = await load.stop();
      process.stdout.write(
        `kill of one of --instances 2: ${failed(outcomes).length} failed of ${summary(outcomes)}\n`,
      );
      for (const { startMs, tookMs } of failed(outcomes)) {
        expect(startMs).toBeLessThan(killedMs + DYING_MS);
        expect(startMs + tookMs).toBeGreaterThan(killedMs - 100);
      }
      expect(outcomes.at(-1)?.status).toBe(200);
      expect(service.log.find(({ msg }) => msg === 'instance_ended')).toMatchObject({
        process: '1',
        ended_with: 'SIGKILL',
      });
    },
    180_000,
  );

  inLong(it)(
    'end when the supervisor is killed',
    async () => {
      const service = supervise(2);
      const { pids } = await service.ready;
      service.child.kill('SIGKILL');
      await service.exited;
      await expect.poll(() => pids.some(isAlive), { timeout: 120_000 }).toBe(false);
      // The next one takes over the PostgreSQL that was left.
      const next = supervise(2);
      await next.ready;
      next.child.kill('SIGTERM');
      expect(await next.exited).toBe(0);
    },
    180_000,
  );

  inLong(it)(
    'start all or not at all',
    async () => {
      const listener = createServer();
      await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
      const { port } = listener.address() as { port: number };
      const taken = supervise(2, { GATEWAY_CONNECT_PORT: String(port) });
      await expect(taken.ready).rejects.toThrow('EADDRINUSE');
      expect(await taken.exited).toBe(1);
      await new Promise((resolve) => listener.close(resolve));
      // What only an instance notices.
      const first = supervise(2);
      await first.ready;
      first.child.kill('SIGTERM');
      await first.exited;
      await makeSchemaNewer();
      const newer = supervise(2);
      await expect(newer.ready).rejects.toThrow('before it was ready');
      expect(await newer.exited).toBe(1);
      expect(newer.rawLog.join('\n')).toContain(
        'newer schema than this release can run on (9999_newer)',
      );
      expect(isAlive(readPidFile(join(dataDir, 'postgres'))?.pid ?? 0)).toBe(false);
    },
    180_000,
  );
});

inShort(describe)('--instances', () => {
  it('is a number from 1 to 64, or absent; nothing else is taken', () => {
    expect(instancesOf([])).toBeUndefined();
    expect(instancesOf(['--instances', '3'])).toBe(3);
    expect(instancesOf(['--instances=64'])).toBe(64);
    for (const args of [
      ['--instances', '0'],
      ['--instances', '65'],
      ['--instances', '2.5'],
      ['--instances', 'x'],
    ]) {
      expect(() => instancesOf(args)).toThrow('from 1 to 64');
    }
    expect(() => instancesOf(['--instance', '3'])).toThrow('--instance');
    expect(() => instancesOf(['3'])).toThrow('3');
  });

  it('divides processors and memory, unless settings say otherwise', () => {
    const gib = 1024 ** 3;
    expect(shareOf(4, {}, 16, 64 * gib)).toEqual({
      GATEWAY_WORKERS: '3',
      GATEWAY_INDEX_BYTES: String(8 * gib),
      GATEWAY_INSTANCES: '4',
    });
    expect(shareOf(3, {}, 2, gib)['GATEWAY_WORKERS']).toBe('1');
    const set = { GATEWAY_WORKERS: '5', GATEWAY_INDEX_BYTES: '1000000000', GATEWAY_INSTANCES: '9' };
    expect(shareOf(4, set, 16, 64 * gib)).toEqual({});
  });
});
