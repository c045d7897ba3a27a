import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type PostgresBinaries,
  findPostgresBinaries,
  systemCode,
} from './embedded-postgres-binaries.ts';
import { type ServerCommand, runToEnd } from './embedded-postgres-process.ts';
import { type ServerUser, chooseServerUser, giveTo } from './embedded-postgres-user.ts';
import type { StoreLog } from './store-log.ts';

export const SUPERUSER = 'gatehouse';
export const DATABASE = 'gatehouse';

const INITDB_ARGS = [
  `--username=${SUPERUSER}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--data-checksums',
  '--no-instructions',
] as const;
/** One system call in place of one for every file; 70 ms. */
const SYNC_ARGS = process.platform === 'linux' ? ['--sync-method=syncfs'] : [];
/** Where packages leave what they make; an installation from scratch empties it. */
const CACHE = resolve(import.meta.dirname, '../../node_modules/.cache/gatehouse');
/** A template in the making that is older was left behind. */
const LEFTOVER_AGE_MS = 600_000;

/** What runs the programs of one cluster. */
export type ClusterTools = {
  readonly binaries: PostgresBinaries;
  readonly user: ServerUser;
  /** Where their output goes. */
  readonly logPath: string;
  readonly log: StoreLog;
  /** Where the installation keeps its template; another place for tests. */
  readonly cache?: string | undefined;
};

/**
 * Makes a cluster with the superuser and the empty database of the service in `directory`, which is absent. It
 * is on disk when this resolves. A copy of the template where the installation has one (about 0.2 s), else
 * a new one (0.7-2 s). Errors: STORE_UNAVAILABLE.
 */
export async function createCluster(
  tools: ClusterTools,
  directory: string,
  password: string,
): Promise<void> {
  const template = templatePath(tools.binaries, tools.cache);
  if (existsSync(template)) {
    try {
      await copyTemplate(tools, template, directory, password);
      return;
    } catch (error) {
      // Of another user, or damaged: what follows needs no template.
      tools.log('warn', 'postgres_template_unusable', { template, error: String(error) });
      rmSync(directory, { recursive: true, force: true });
    }
  }
  await initialize(tools, directory, password);
}

/**
 * Makes the template that `createCluster` copies, unless it is there. For the end of an installation.
 * Errors: STORE_UNAVAILABLE. Cost: 1-3 s, 40 MB on disk.
 */
export async function prepareTemplate(cache = CACHE): Promise<void> {
  mkdirSync(cache, { recursive: true });
  removeLeftovers(cache);
  const binaries = findPostgresBinaries(join(cache, 'lib'));
  const template = templatePath(binaries, cache);
  if (existsSync(template)) return;
  const fresh = `${template}.${randomUUID()}`;
  const tools: ClusterTools = {
    binaries,
    user: chooseServerUser(fresh, binaries),
    logPath: `${fresh}.log`,
    log: () => undefined,
  };
  try {
    // Nobody knows this password; every copy gets its own.
    await initialize(tools, fresh, randomBytes(24).toString('base64url'));
    await rename(fresh, template);
  } catch (error) {
    // Another process was faster.
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error))) throw error;
  } finally {
    for (const path of [fresh, tools.logPath]) rmSync(path, { recursive: true, force: true });
  }
}

/** Named by what went into it, so that another release never takes it for its own. */
function templatePath({ version }: PostgresBinaries, cache = CACHE): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([INITDB_ARGS, DATABASE]))
    .digest('hex');
  return join(cache, `postgres-${version}-${digest.slice(0, 8)}`);
}

function removeLeftovers(cache: string): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const isInTheMaking = /^postgres-.*\.[-0-9a-f]{36}/.test(name);
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (isInTheMaking && ageMs > LEFTOVER_AGE_MS) rmSync(path, { recursive: true, force: true });
  }
}

async function initialize(tools: ClusterTools, directory: string, password: string) {
  makeDirectory(tools, directory);
  const passwordFile = `${directory}.password`;
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  giveTo(tools.user, passwordFile);
  const { initdb } = tools.binaries;
  const args = [`--pgdata=${directory}`, `--pwfile=${passwordFile}`, ...INITDB_ARGS, '--no-sync'];
  try {
    await runToEnd(commandOf(tools, initdb, args), 'creating the cluster');
  } finally {
    rmSync(passwordFile, { force: true });
  }
  await runAlone(tools, directory, `create database ${DATABASE}`);
  await sync(tools, directory);
}

async function copyTemplate(
  tools: ClusterTools,
  template: string,
  directory: string,
  password: string,
): Promise<void> {
  makeDirectory(tools, directory);
  const args = ['-R', `${template}/.`, directory];
  await runToEnd(commandOf(tools, 'cp', args), 'copying the empty cluster');
  await setPassword(tools, directory, password);
}

/** Gives the superuser of a cluster that no server runs on a password; on disk when it resolves. */
export async function setPassword(
  tools: ClusterTools,
  directory: string,
  password: string,
): Promise<void> {
  const quoted = `'${password.replaceAll("'", "''")}'`;
  await runAlone(tools, directory, `alter role ${SUPERUSER} password ${quoted}`);
  await sync(tools, directory);
}

function makeDirectory(tools: ClusterTools, directory: string): void {
  mkdirSync(directory, { mode: 0o700 });
  giveTo(tools.user, directory);
}

/** Runs one statement in a cluster that no server runs on. */
function runAlone(tools: ClusterTools, directory: string, statement: string): Promise<void> {
  const args = ['--single', '-D', directory, '-c', 'fsync=off', 'postgres'];
  const command = commandOf(tools, tools.binaries.postgres, args);
  return runToEnd({ ...command, input: `${statement}\n` }, 'preparing the cluster');
}

function sync(tools: ClusterTools, directory: string): Promise<void> {
  const args = ['--sync-only', `--pgdata=${directory}`, ...SYNC_ARGS];
  return runToEnd(commandOf(tools, tools.binaries.initdb, args), 'writing the cluster to disk');
}

function commandOf(tools: ClusterTools, command: string, args: readonly string[]): ServerCommand {
  const { binaries, user, logPath } = tools;
  return { command, args, user, env: binaries.env, logPath };
}
