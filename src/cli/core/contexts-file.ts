import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Environment } from '../../config/load-options.ts';
import { fileError, messageOf } from './files.ts';
import { isObject } from './json-values.ts';

/** A service, the default project and tenant, and the credentials for it. */
export type ServiceContext = {
  readonly url: string;
  readonly project?: string;
  readonly tenant?: string;
  readonly token?: string;
  readonly adminSecret?: string;
};

export type Contexts = {
  /** Name of the default context. */
  readonly current: string | undefined;
  readonly contexts: Readonly<Record<string, ServiceContext>>;
};

const NONE: Contexts = { current: undefined, contexts: {} };
const FIELDS = ['url', 'project', 'tenant', 'token', 'adminSecret'] as const;
/** Rights of group and others. */
const FOREIGN_RIGHTS = 0o077;
/** More bytes than a person writes. */
const BYTES_MAX = 1 << 20;

/**
 * Path of the contexts, by the XDG Base Directory Specification 0.8:
 * `~/.config/gatehouse/contexts.json`.
 */
export function contextsPath(environment: Environment): string {
  const base = environment['XDG_CONFIG_HOME'];
  // "All paths set in these environment variables must be absolute"; others are to be ignored.
  const folder =
    base?.startsWith('/') === true ? base : join(environment['HOME'] ?? homedir(), '.config');
  return join(folder, 'gatehouse', 'contexts.json');
}

/**
 * The stored contexts; none if there is no file.
 * Errors: FILE_INVALID for a file that others can read, that is too large, or that has another
 * format.
 */
export function readContexts(path: string): Contexts {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return NONE;
  if ((stats.mode & FOREIGN_RIGHTS) !== 0) {
    throw fileError(path, `holds credentials and is open to others: chmod 600 ${path}`);
  }
  if (stats.size > BYTES_MAX) throw fileError(path, `is larger than ${BYTES_MAX} bytes`);
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw fileError(path, messageOf(error));
  }
  if (!isObject(document) || !isObject(document['contexts'])) {
    throw fileError(path, 'must be an object with contexts');
  }
  const { current } = document;
  if (current !== undefined && typeof current !== 'string') {
    throw fileError(path, 'current must be the name of a context');
  }
  const contexts = Object.entries(document['contexts']).map(
    ([name, value]) => [name, contextOf(path, name, value)] as const,
  );
  return { current, contexts: Object.fromEntries(contexts) };
}

function contextOf(path: string, name: string, value: unknown): ServiceContext {
  if (!isObject(value)) throw fileError(path, `contexts.${name} must be an object`);
  for (const field of FIELDS) {
    const text = value[field];
    if (text !== undefined && typeof text !== 'string') {
      throw fileError(path, `contexts.${name}.${field} must be a text`);
    }
  }
  const url = value['url'];
  if (typeof url !== 'string') throw fileError(path, `contexts.${name}.url is missing`);
  return { ...(value as Omit<ServiceContext, 'url'>), url };
}

/**
 * Stores contexts atomically, for the user alone (0600 in a folder of 0700). Errors: FILE_INVALID
 * naming the file.
 */
export function writeContexts(path: string, contexts: Contexts): void {
  const part = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(part, `${JSON.stringify(contexts, undefined, 2)}\n`, { mode: 0o600 });
    // A umask only removes rights, and an existing part file keeps its own.
    chmodSync(part, 0o600);
    renameSync(part, path);
  } catch (error) {
    throw fileError(path, messageOf(error));
  }
}
