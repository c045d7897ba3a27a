import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { type DirectoryLock, lockDirectory } from '../../src/shared/process/directory-lock.ts';
import {
  isAlive,
  readPidFile,
  stopServer,
} from '../../src/store/embedded/embedded-postgres-process.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { migrate } from '../../src/store/migrations/migrate.ts';
import type { PostgresTarget } from '../../src/store/postgres/pool.ts';
import { asAdmin, withDatabase } from './postgres-admin.ts';

const PREFIX = 'gatehouse-test-';
/** Younger directories may belong to a run that is just starting. */
const LEFTOVER_AGE_MS = 60_000;

/**
 * One server for a run of the tests: TEST_DATABASE_URL (a superuser's), or the embedded one in a
 * temporary directory, with a migrated template database that createTestDatabase clones.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const template = `template_${process.pid}`;
  const { admin, stop } = await startServer();
  await asAdmin(admin, `create database ${template} template template0 encoding 'UTF8'`);
  await migrate(withDatabase(admin, template));
  project.provide('postgres', { admin, template });
  return async () => {
    await asAdmin(admin, `drop database if exists ${template} with (force)`);
    await stop();
  };
}

async function startServer(): Promise<{ admin: PostgresTarget; stop: () => Promise<void> }> {
  const url = process.env['TEST_DATABASE_URL'];
  if (url !== undefined) {
    return { admin: { connectionString: url }, stop: () => Promise.resolve() };
  }
  await removeLeftovers();
  const dataDirectory = mkdtempSync(join(tmpdir(), PREFIX));
  const server = await startEmbeddedPostgres({
    dataDirectory,
    maxConnections: 200,
    // Nothing here outlives the run; tests of durability start servers of their own.
    settings: { fsync: 'off', shared_buffers: '64MB' },
  });
  return {
    admin: server.target,
    stop: async () => {
      await server.stop();
      rmSync(dataDirectory, { recursive: true, force: true });
    },
  };
}

/** Runs that were killed leave a server and its directory; nobody holds the lock of those. */
async function removeLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const directory = join(tmpdir(), name);
    const modified = statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (!name.startsWith(PREFIX) || Date.now() - modified < LEFTOVER_AGE_MS) continue;
    let lock: DirectoryLock;
    try {
      lock = lockDirectory(join(directory, 'postgres.lock'), directory);
    } catch {
      continue; // In use.
    }
    const file = readPidFile(join(directory, 'postgres'));
    if (file !== undefined && isAlive(file.pid)) await stopServer(file.pid);
    rmSync(directory, { recursive: true, force: true });
    lock.release();
  }
}
