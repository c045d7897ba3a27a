import type { LocalEntry } from './local-store.ts';
import { DEFAULT_ENVIRONMENT, environmentKey, parseEnvironment } from './names.ts';
import type { SecretInfo } from './secret-api.ts';
import { parseBackend } from './secret-requests.ts';
import type { SecretStores } from './secret-stores.ts';
import type { Variable } from './variable-store.ts';
import type { VaultNames } from './vault-file.ts';

const NO_NAMES: VaultNames = { secrets: [], lastModifiedMs: 0 };

/**
 * What the endpoints show of secrets and variables; decrypts nothing. Contract and errors of the methods: those of
 * SecretService. Cost: O(n log n) of what is stored, which is limited and in memory.
 */
export class SecretLists {
  readonly #stores: SecretStores;
  readonly #startedAt: string;

  /** `startedAt`: ISO 8601, when the process began, and so the time of what its environment holds. */
  constructor(stores: SecretStores, startedAt: string) {
    this.#stores = stores;
    this.#startedAt = startedAt;
  }

  /** Sorted, each name once. Errors: INVALID_NAME. */
  async names(environment?: string, backend?: string): Promise<readonly string[]> {
    const secrets = await this.secrets(environment, backend);
    return [...new Set(secrets.map(({ name }) => name))].sort();
  }

  /**
   * One entry for each backend that has the secret, by environment and name; `backend`: those of one. Of the vault
   * alone what its file names, which needs no key, also before anything was pulled.
   * Errors: INVALID_NAME, INVALID_VALUE naming `backend`, BACKEND_UNAVAILABLE for a vault that is none.
   */
  async secrets(environment?: string, backend?: string): Promise<readonly SecretInfo[]> {
    const key = keyOf(environment);
    const wanted = backend === undefined ? undefined : parseBackend(backend);
    const all = wanted === 'vault' ? await this.#inVault() : await this.#kept();
    return all
      .filter((secret) => key === undefined || environmentKey(secret.environment) === key)
      .filter((secret) => wanted === undefined || secret.backend === wanted)
      .toSorted(byPlace);
  }

  async #inVault(): Promise<readonly SecretInfo[]> {
    const { secrets, lastModifiedMs } = (await this.#stores.vault.names()) ?? NO_NAMES;
    const updatedAt = new Date(lastModifiedMs).toISOString();
    return secrets.map((place) => ({ ...place, backend: 'vault', updatedAt }));
  }

  async #kept(): Promise<readonly SecretInfo[]> {
    const { local, process } = this.#stores;
    await local.open();
    const fromProcess = [...process.values.keys()].map((name): SecretInfo => ({
      name,
      environment: DEFAULT_ENVIRONMENT,
      backend: 'env',
      updatedAt: this.#startedAt,
    }));
    return [...local.entries().map(secretInfoFromEntry), ...fromProcess];
  }

  /** By environment and name. Errors: INVALID_NAME. */
  async variables(environment?: string): Promise<readonly Variable[]> {
    const key = keyOf(environment);
    const { variables } = this.#stores;
    await variables.open();
    return variables
      .list()
      .filter((variable) => key === undefined || environmentKey(variable.environment) === key);
  }

  /**
   * Those with a secret or a variable of their own, each in the spelling that was met first. What belongs to the
   * whole repository makes no environment.
   */
  async environments(): Promise<readonly string[]> {
    const [secrets, variables] = [await this.secrets(), await this.variables()];
    const shown = new Map<string, string>();
    for (const { environment } of [...secrets, ...variables]) {
      const key = environmentKey(environment);
      if (key !== DEFAULT_ENVIRONMENT && !shown.has(key)) shown.set(key, environment);
    }
    return [...shown.values()].sort();
  }
}

/** An entry as it is shown: without its value. */
export function secretInfoFromEntry(entry: LocalEntry): SecretInfo {
  const { name, environment, backend, updatedAt } = entry;
  return { name, environment, backend, updatedAt };
}

function keyOf(environment: string | undefined): string | undefined {
  return environment === undefined ? undefined : environmentKey(parseEnvironment(environment));
}

function byPlace(left: SecretInfo, right: SecretInfo): number {
  const [leftKey, rightKey] = [left, right].map(
    ({ environment, name, backend }) => `${environmentKey(environment)}/${name}/${backend}`,
  ) as [string, string];
  return leftKey < rightKey ? -1 : leftKey > rightKey ? 1 : 0;
}
