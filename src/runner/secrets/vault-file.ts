import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import {
  environmentKey,
  environmentProblem,
  isDefaultEnvironment,
  DEFAULT_ENVIRONMENT,
  nameProblem,
  valueProblem,
} from './names.ts';
import { readPlainFile } from './plain-file.ts';
import { METADATA_KEY, SopsDocument, type SopsLeaf } from './sops-document.ts';
import type { VaultIdentities } from './vault-identities.ts';

export type VaultEntry = {
  readonly environment: string;
  /** Upper case. */
  readonly name: string;
  readonly value: string;
};
export type VaultContent = {
  readonly entries: readonly VaultEntry[];
  /** What stands in the file and is no secret of the runner; without values. */
  readonly problems: readonly string[];
  readonly lastModifiedMs: number;
  /** SHA-256 of the file, hexadecimal. */
  readonly digest: string;
};
/** What a vault shows to everybody. */
export type VaultNames = {
  readonly secrets: readonly Omit<VaultEntry, 'value'>[];
  readonly lastModifiedMs: number;
};
type VaultPlace = { readonly path: readonly string[]; readonly entry: VaultEntry };

const FILE_NAME = 'vault.json';
const DATA_KEY_BYTES = 32;
/** The committed file's readers are named by its recipients, not by its mode; others need not see it before. */
const FILE_MODE = 0o600;

/**
 * `.runner/vault.json`: secrets that live in the repository, as a SOPS file with age recipients:
 * `{ "<environment>": { "NAME": "ENC[…]" }, "sops": {…} }`. Anybody with `sops` can read and edit it. age does not
 * say who encrypted: whoever may commit can replace the whole file by another for the same recipients.
 */
export class VaultFile {
  readonly path: string;
  readonly #identities: VaultIdentities;
  readonly #clock: Clock;

  constructor(stateDir: string, identities: VaultIdentities, clock: Clock) {
    this.path = join(stateDir, FILE_NAME);
    this.#identities = identities;
    this.#clock = clock;
  }

  /** SHA-256 of the file; undefined when there is none. Errors: BACKEND_UNAVAILABLE. */
  async digest(): Promise<string | undefined> {
    const text = await readPlainFile(this.path, 'vault');
    return text === undefined ? undefined : digestOf(text);
  }

  /**
   * The names in it, which stand there in clear: no key is needed, and nothing is verified. Undefined when there is
   * no vault. Errors: BACKEND_UNAVAILABLE for a file that is no vault.
   */
  async names(): Promise<VaultNames | undefined> {
    const text = await readPlainFile(this.path, 'vault');
    if (text === undefined) return undefined;
    try {
      const { leaves, lastModifiedMs } = SopsDocument.outline(text);
      const secrets = placesOf(leaves).places.map(({ entry: { environment, name } }) => ({
        environment,
        name,
      }));
      return { secrets, lastModifiedMs };
    } catch (error) {
      const problem = error instanceof Error ? error.message : 'unknown';
      throw unavailable(`vault.json: ${problem}`, error);
    }
  }

  /** Everything in it, verified; undefined when there is no vault. Errors: BACKEND_UNAVAILABLE. */
  async read(): Promise<VaultContent | undefined> {
    const text = await readPlainFile(this.path, 'vault');
    if (text === undefined) return undefined;
    return contentOf(await this.#open(text), digestOf(text));
  }

  /**
   * Sets and removes values, all or none; makes the file (and an identity, if there is none) when it is not
   * there. `removed` counts the removals that were there.
   * Errors: INVALID_NAME for an environment that the file leaves unencrypted, BACKEND_UNAVAILABLE (also
   * when the file changed meanwhile), DISK_FULL, STORE_UNAVAILABLE.
   */
  async change(
    puts: readonly VaultEntry[],
    removals: readonly Omit<VaultEntry, 'value'>[],
  ): Promise<{ readonly content: VaultContent; readonly removed: number }> {
    const text = await readPlainFile(this.path, 'vault');
    if (text === undefined && puts.length === 0) return { content: EMPTY, removed: 0 };
    const document = text === undefined ? await this.#create() : await this.#open(text);
    const { places } = placesOf(document.leaves());
    const removed = removals.filter((removal) => {
      const place = findPlace(places, removal);
      return place !== undefined && document.remove(place.path);
    }).length;
    for (const put of puts) {
      const path = findPlace(places, put)?.path ?? [environmentPart(places, put), put.name];
      if (path[0] === METADATA_KEY || !document.encrypts(path)) {
        throw new AppError('INVALID_NAME', 'the vault cannot hold this environment encrypted', {
          field: 'environment',
        });
      }
      document.set(path, put.value);
    }
    const sealed = document.sealed(this.#clock.nowMs());
    // What another program wrote since it was read is not overwritten.
    if ((await readPlainFile(this.path, 'vault')) !== text) {
      throw unavailable('vault.json was changed by another program just now; try again');
    }
    await writeFileAtomic(this.path, sealed, FILE_MODE);
    return { content: contentOf(document, digestOf(sealed)), removed };
  }

  async #create(): Promise<SopsDocument> {
    const dataKey = randomBytes(DATA_KEY_BYTES);
    return SopsDocument.create(dataKey, await this.#identities.wrap(dataKey));
  }

  async #open(text: string): Promise<SopsDocument> {
    try {
      return await SopsDocument.open(text, (wrapped) => this.#identities.unwrap(wrapped));
    } catch (error) {
      if (error instanceof AppError) throw error;
      const problem = error instanceof Error ? error.message : 'unknown';
      throw unavailable(`vault.json: ${problem}`, error);
    }
  }
}

const EMPTY: VaultContent = { entries: [], problems: [], lastModifiedMs: 0, digest: '' };

function contentOf(document: SopsDocument, digest: string): VaultContent {
  const { places, problems } = placesOf(document.leaves());
  return {
    entries: places.map(({ entry }) => entry),
    problems,
    lastModifiedMs: document.lastModifiedMs,
    digest,
  };
}

function placesOf(leaves: readonly SopsLeaf[]): {
  readonly places: readonly VaultPlace[];
  readonly problems: readonly string[];
} {
  const places = new Map<string, VaultPlace>();
  const problems: string[] = [];
  for (const leaf of leaves) {
    const { path, text } = leaf;
    const [environment = '', name = ''] = path;
    const where = path.map((part) => part.slice(0, 64)).join('.');
    const problem = leafProblem(leaf);
    const key = `${environmentKey(environment)}:${name.toUpperCase()}`;
    if (problem !== undefined) problems.push(`${where}: ${problem}`);
    else if (places.has(key))
      problems.push(`${where}: the same name in another case stands before it`);
    else {
      const shown = isDefaultEnvironment(environment) ? DEFAULT_ENVIRONMENT : environment;
      places.set(key, {
        path,
        entry: { environment: shown, name: name.toUpperCase(), value: text },
      });
    }
  }
  return { places: [...places.values()], problems };
}

function leafProblem({ path, isEncrypted, isItem, text }: SopsLeaf): string | undefined {
  const [environment, name] = path;
  if (path.length !== 2 || isItem || environment === undefined || name === undefined) {
    return 'a secret stands below its environment, two levels deep';
  }
  if (!isEncrypted) return 'it is not encrypted';
  return environmentProblem(environment) ?? nameProblem(name) ?? valueProblem(text, false);
}

function findPlace(
  places: readonly VaultPlace[],
  wanted: Omit<VaultEntry, 'value'>,
): VaultPlace | undefined {
  return places.find(
    ({ entry }) =>
      entry.name === wanted.name &&
      environmentKey(entry.environment) === environmentKey(wanted.environment),
  );
}

/** An environment that is there in another case goes on under its own spelling. */
function environmentPart(places: readonly VaultPlace[], put: VaultEntry): string {
  const place = places.find(
    ({ entry }) => environmentKey(entry.environment) === environmentKey(put.environment),
  );
  return place?.path[0] ?? put.environment;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function unavailable(text: string, cause?: unknown): AppError {
  return new AppError('BACKEND_UNAVAILABLE', text, { backend: 'vault' }, cause);
}
