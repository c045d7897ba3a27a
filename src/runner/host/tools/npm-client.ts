import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import {
  type ClientEnvironment,
  type ClientOptions,
  findOnPath,
  mustRunClient,
} from './run-client.ts';

/** A failure shows within seconds, not minutes: a job waits. */
const FLAGS: readonly string[] = [
  '--fetch-retries=2',
  '--fetch-retry-mintimeout=500',
  '--fetch-retry-maxtimeout=4000',
  '--fetch-timeout=120000',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--ignore-scripts',
  '--loglevel=error',
];
const INTEGRITY = /^(sha512|sha384|sha256)-([A-Za-z0-9+/]+={0,2})$/;

export type NpmPackage = { readonly name: string; readonly version: string };

/** A package registry of npm, asked through npm itself: its settings, credentials and proxies count. */
export class NpmClient {
  readonly #env: ClientEnvironment;

  constructor(env: ClientEnvironment) {
    this.#env = env;
  }

  /** Why it cannot be used. */
  get whyNot(): string | undefined {
    return this.#program === undefined ? 'there is no npm on the PATH' : undefined;
  }

  /** All that are published; none for a package that is not there. Errors: UPSTREAM_ERROR. */
  async versionsOf(name: string, place: ToolPlace): Promise<string[]> {
    const text = await this.#run(['view', name, 'versions', '--json'], place);
    const versions: unknown = JSON.parse(text === '' ? '[]' : text);
    return [versions].flat().filter((version) => typeof version === 'string');
  }

  /** What a version needs of Node. Errors: UPSTREAM_ERROR. */
  async enginesOf(name: string, range: string, place: ToolPlace): Promise<Map<string, string>> {
    const fields = ['version', 'engines.node'];
    const text = await this.#run(['view', `${name}@${range}`, ...fields, '--json'], place);
    const found: unknown = JSON.parse(text === '' ? '[]' : text);
    const all: unknown[] = Array.isArray(found) ? found : [found];
    const engines = new Map<string, string>();
    for (const one of all) {
      // npm leaves out what a version does not have, and the names with it.
      if (typeof one === 'string') engines.set(one, '*');
      if (typeof one !== 'object' || one === null) continue;
      const { version, 'engines.node': node } = one as Readonly<Record<string, unknown>>;
      if (typeof version === 'string') engines.set(version, typeof node === 'string' ? node : '*');
    }
    return engines;
  }

  /**
   * Unpacks a package into `target`, which is made, after its bytes were compared with the checksum that
   * the registry publishes for it, or with `expected` (`sha512-<base64>`). No script of it is run.
   * Errors: UPSTREAM_ERROR, also for a wrong checksum.
   */
  async unpack(
    { name, version }: NpmPackage,
    target: string,
    place: ToolPlace,
    expected?: string,
  ): Promise<void> {
    const spec = `${name}@${version}`;
    const published = await this.#run(['view', spec, 'dist.integrity', '--json'], place);
    const integrity = expected ?? integrityIn(published);
    if (integrity === undefined || !INTEGRITY.test(integrity)) {
      throw new AppError('UPSTREAM_ERROR', `the registry publishes no checksum for ${spec}`);
    }
    const packed = join(place.dir, 'packed');
    mkdirSync(packed, { recursive: true });
    const text = await this.#run(['pack', spec, '--json', '--pack-destination', packed], place);
    const file = join(packed, fileNameIn(text, spec));
    await mustMatch(file, integrity, spec);
    mkdirSync(target, { recursive: true });
    const args = ['-xzf', file, '-C', target, '--strip-components=1', '--no-same-owner'];
    await mustRunClient('tar', args, this.#options(place));
    await rm(file, { force: true });
  }

  get #program(): string | undefined {
    return findOnPath('npm', this.#env['PATH']);
  }

  async #run(args: readonly string[], place: ToolPlace): Promise<string> {
    const program = this.#program;
    if (program === undefined) throw new AppError('UPSTREAM_ERROR', this.whyNot ?? '');
    // A cache of its own: that of the user is open to every step.
    const all = [...args, ...FLAGS, '--cache', join(place.dir, 'npm-cache')];
    return (await mustRunClient(program, all, this.#options(place))).trim();
  }

  #options({ dir, signal }: ToolPlace): ClientOptions {
    return { cwd: dir, env: this.#env, signal };
  }
}

/** Where a client may leave files, which are removed by the caller, and when it is to stop. */
export type ToolPlace = { readonly dir: string; readonly signal?: AbortSignal | undefined };

function integrityIn(text: string): string | undefined {
  const value: unknown = text === '' ? undefined : JSON.parse(text);
  return typeof value === 'string' ? value : undefined;
}

function fileNameIn(text: string, spec: string): string {
  const found: unknown = JSON.parse(text);
  // npm 12 lists packages by their names.
  const all = Array.isArray(found) ? (found as unknown[]) : Object.values(found ?? {});
  const [one] = all as { readonly filename?: unknown }[];
  const name = one?.filename;
  if (typeof name !== 'string') throw new AppError('UPSTREAM_ERROR', `npm packed no ${spec}`);
  return name.replace(/^@/, '').replaceAll('/', '-');
}

async function mustMatch(file: string, integrity: string, what: string): Promise<void> {
  const [, algorithm = 'sha512', digest] = INTEGRITY.exec(integrity) ?? [];
  const actual = createHash(algorithm)
    .update(await readFile(file))
    .digest('base64');
  if (actual === digest) return;
  throw new AppError('UPSTREAM_ERROR', `the checksum of ${what} is not the published one`);
}
