import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, readPidFile } from '../../src/store/embedded/embedded-postgres-process.ts';
import type { Launcher } from '../support/child-service.ts';
import { call, startService, type Service } from '../support/service.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const COPIED = ['src', 'test', 'scripts', 'migrations', 'package.json', 'package-lock.json'];
/** What a container's root has left by default, without a right to gain more. */
const CAPABILITIES =
  'chown dac_override fsetid fowner mknod net_raw setgid setuid setfcap setpcap net_bind_service sys_chroot kill audit_write';
const bounds = `-all,${CAPABILITIES.replaceAll(/\w+/g, '+$&').replaceAll(' ', ',')}`;
/** Runs a command as in a plain container. */
const CONTAINER = ['setpriv', `--bounding-set=${bounds}`, `--inh-caps=${bounds}`, '--no-new-privs'];

const isRoot = process.getuid?.() === 0;
const hasNamespaces =
  spawnSync('unshare', ['--user', '--map-user=1', 'true'], { stdio: 'ignore' }).status === 0;

/* PostgreSQL does not run as root, and nobody else may enter root's home. */
describe.skipIf(!isRoot)('root in a directory closed to others', { timeout: 120_000 }, () => {
  let home: string;
  let project: string;
  const started: Service[] = [];

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'gatehouse-closed-'));
    chmodSync(home, 0o700);
    project = join(home, 'gatehouse');
    mkdirSync(project);
    for (const name of [...COPIED, 'vitest.config.ts', '.npmrc']) {
      await cp(join(ROOT, name), join(project, name), { recursive: true });
    }
    linkTree(realpathSync(join(ROOT, 'node_modules')), join(project, 'node_modules'));
  }, 120_000);

  afterAll(async () => {
    for (const service of started) await service.stop();
    rmSync(home, { recursive: true, force: true });
  });

  /** `npm start` there, with nothing said about where the data is. */
  async function start(prefix: readonly string[] = [], path = process.env['PATH'] ?? '') {
    const [program, ...words] = [...prefix, 'npm', 'start'];
    const launcher: Launcher = { command: [program, ...words], cwd: project };
    const dataDir = join(project, '.data');
    const env = { GATEWAY_DATA_DIR: '', HOME: home, PATH: path };
    const service = await startService({ dataDir, env, launcher });
    started.push(service);
    return service;
  }

  async function walk(prefix: readonly string[], path?: string): Promise<void> {
    const dataDir = join(project, '.data');
    rmSync(dataDir, { recursive: true, force: true });
    const first = await start(prefix, path);
    expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(0o700);
    expect(await grant(first)).toBe(200);
    expect(await mayRead(first)).toBe(true);
    expect(await first.stop()).toBe(0);
    expect(readPidFile(join(dataDir, 'postgres'))).toBeUndefined();

    const second = await start(prefix, path);
    expect(await mayRead(second)).toBe(true);
    // The service alone: its database is left behind.
    const owner = Number(readFileSync(join(dataDir, 'postgres.lock'), 'utf8'));
    const orphan = readPidFile(join(dataDir, 'postgres'))?.pid ?? 0;
    process.kill(owner, 'SIGKILL');
    await second.exited;
    expect(isAlive(orphan)).toBe(true);

    const third = await start(prefix, path);
    expect(third.log.map(({ msg }) => msg)).toContain('postgres_orphan_stopped');
    expect(isAlive(orphan)).toBe(false);
    expect(await mayRead(third)).toBe(true);
    expect(await third.stop()).toBe(0);
  }

  it('npm start works, and its data outlives restarts and kill -9', () => walk([]));

  it('npm start works with the rights of a plain container', () => walk(CONTAINER));

  it.skipIf(!hasNamespaces)(
    'npm start works where root may only make a user namespace',
    async () => {
      expect.hasAssertions();
      await walk([], await pathWithout(['setpriv']));
      expect(statSync(join(project, '.data/postgres')).uid).toBe(0);
      // Whoever may do more later finds the data as it is.
      const later = await start();
      expect(await mayRead(later)).toBe(true);
      expect(await later.stop()).toBe(0);
    },
  );

  it('says what to do where there is no way at all', async () => {
    rmSync(join(project, '.data'), { recursive: true, force: true });
    const starting = start([], await pathWithout(['setpriv', 'unshare']));
    await expect(starting).rejects.toThrow(
      /PostgreSQL cannot run as root, .* may not enter .*; start as another user, .*DATABASE_URL/,
    );
  });

  it('the installation prepares the empty database', () => {
    const cache = join(project, 'node_modules/.cache/gatehouse');
    rmSync(cache, { recursive: true, force: true });
    execFileSync(process.execPath, ['scripts/prepare-postgres.ts'], { cwd: project });
    expect(readdirSync(cache)).toContainEqual(expect.stringMatching(/^postgres-17\./));
  });

  it('npm test works', () => {
    const run = spawnSync('npm', ['test', '--', 'src/store/migrations/migrate.pg.test.ts'], {
      cwd: project,
      env: { PATH: process.env['PATH'] ?? '', HOME: home, NO_COLOR: '1' },
      encoding: 'utf8',
    });
    expect(`${run.stdout}${run.stderr}`).toMatch(/^[1-9]\d* passed, 0 failed/m);
    expect(run.status).toBe(0);
  });

  /** A PATH on which these programs fail, as where the kernel refuses them. */
  async function pathWithout(names: readonly string[]): Promise<string> {
    const folder = mkdtempSync(join(home, 'path-'));
    for (const name of names) {
      await writeFile(join(folder, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    }
    return `${folder}:${process.env['PATH']}`;
  }
});

/** A copy whose files are links to the same data where the file system is the same. */
function linkTree(from: string, to: string): void {
  const { status } = spawnSync('cp', ['-al', from, to], { stdio: 'ignore' });
  if (status === 0) return;
  rmSync(to, { recursive: true, force: true });
  execFileSync('cp', ['-a', from, to]);
}

const tuple = { namespace: 'resource', object_id: 'plan', relation: 'viewer' };

async function grant(service: Service): Promise<number> {
  const updates = [{ op: 'OP_INSERT', tuple: { ...tuple, subject: { user_id: 'anne' } } }];
  return (await call(service, 'AuthzService/WriteRelationTuples', { updates })).status;
}

async function mayRead(service: Service): Promise<unknown> {
  const { body } = await call(service, 'AuthzService/Check', { ...tuple, subject_user_id: 'anne' });
  return body['allowed'];
}
