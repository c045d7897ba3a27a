import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { HostSecretPort } from './host-port.ts';
import type { LocalEntry } from './local-store.ts';
import { isDefaultEnvironment } from './names.ts';
import type { SecretBackend, SecretInfo } from './secret-api.ts';
import { secretInfoFromEntry } from './secret-lists.ts';
import { VARIABLES } from './secret-requests.ts';
import type { SecretStores } from './secret-stores.ts';

/** Name and environment as `parseName` and `parseEnvironment` return them. */
export type SecretPlace = { readonly name: string; readonly environment: string };
export type PlacedValue = SecretPlace & { readonly value: string };

/** A value that was written, and where. */
export type ValueChange = PlacedValue & {
  readonly backend: SecretBackend | typeof VARIABLES;
  /** False when it replaced another. */
  readonly isCreated: boolean;
};

/**
 * Writes to the backends, and keeps the mirror in step with what they took. Callers have checked names and values, call
 * it one at a time (ChangeTurns), and notify the audit. All is on disk when a promise resolves.
 * Errors of all methods: BACKEND_UNAVAILABLE, RESULT_TOO_LARGE, DISK_FULL, STORE_UNAVAILABLE.
 */
export class SecretWriter {
  readonly #stores: SecretStores;
  readonly #clock: Clock;

  constructor(stores: SecretStores, clock: Clock) {
    this.#stores = stores;
    this.#clock = clock;
  }

  /**
   * All or none, but for the host, which takes them one by one: what it took stays known if it refuses the next.
   * Errors also: BACKEND_READ_ONLY; INVALID_NAME for a place the vault leaves unencrypted; UPSTREAM_ERROR, REMOTE_MISSING.
   */
  async putSecrets(
    backend: SecretBackend,
    puts: readonly PlacedValue[],
  ): Promise<readonly (ValueChange & { readonly secret: SecretInfo })[]> {
    if (backend === 'env') throw readOnly();
    const { local, vault } = this.#stores;
    await local.open();
    const layer = backend;
    const isNew = new Map(
      puts.map((put) => [put.name, local.entry(put.environment, put.name, layer) === undefined]),
    );
    if (backend === 'vault' && puts.length > 0) {
      const { content } = await vault.change(puts, []);
      const mirror = { ...local.mirror, vaultDigest: content.digest };
      await local.change(this.#stamped(puts, 'vault'), [], mirror);
    } else if (backend === 'host') {
      for (const put of puts) {
        isNew.set(put.name, await this.#putOnHost(put));
        await local.change(this.#stamped([put], 'host'));
      }
    } else if (puts.length > 0) {
      await local.change(this.#stamped(puts, 'local'));
    }
    return puts.map((put) => {
      const entry = local.entry(put.environment, put.name, layer);
      const secret = secretInfoFromEntry(
        entry ?? { ...put, backend: layer, value: '', updatedAt: this.#now() },
      );
      return { ...put, backend, isCreated: isNew.get(put.name) ?? true, secret };
    });
  }

  /**
   * From `backend`; when undefined, from `local` and `vault`, wherever it is. Returns where it was.
   * Errors also: SECRET_NOT_FOUND, BACKEND_READ_ONLY, UPSTREAM_ERROR, REMOTE_MISSING.
   */
  async removeSecret(
    place: SecretPlace,
    backend: SecretBackend | undefined,
  ): Promise<readonly SecretBackend[]> {
    const { environment, name } = place;
    const { local, vault } = this.#stores;
    if (backend === 'env') throw readOnly();
    await local.open();
    const present = (layer: LocalEntry['backend']): LocalEntry[] =>
      [local.entry(environment, name, layer)].filter((entry) => entry !== undefined);
    const removals: LocalEntry[] = [];
    const from = new Set<SecretBackend>();
    let mirror = local.mirror;
    if (backend !== 'vault' && backend !== 'host') removals.push(...present('local'));
    if (backend === 'vault' || (backend === undefined && present('vault').length > 0)) {
      const { content, removed } = await vault.change([], [place]);
      if (removed > 0) from.add('vault');
      mirror = { ...mirror, vaultDigest: content.digest === '' ? null : content.digest };
      removals.push(...present('vault'));
    }
    if (backend === 'host') {
      if (await this.#usableHost().removeSecret(environment, name)) from.add('host');
      removals.push(...present('host'));
    }
    if (removals.length > 0) await local.change([], removals, mirror);
    for (const removal of removals) from.add(removal.backend);
    if (from.size === 0) throw this.#absent(place, backend);
    return [...from];
  }

  /** All or none. Errors also: INVALID_VALUE when a run would get too much. */
  async putVariables(puts: readonly PlacedValue[]): Promise<readonly ValueChange[]> {
    const { variables } = this.#stores;
    await variables.open();
    const updatedAt = this.#now();
    const changes = puts.map((put) => ({
      ...put,
      backend: VARIABLES,
      isCreated: variables.find(put.environment, put.name) === undefined,
    }));
    if (puts.length > 0) {
      await variables.change(
        puts.map(({ name, value, environment }) => ({ name, value, environment, updatedAt })),
      );
    }
    return changes;
  }

  /** Errors also: VARIABLE_NOT_FOUND. */
  async removeVariable({ name, environment }: SecretPlace): Promise<void> {
    const { variables } = this.#stores;
    await variables.open();
    const variable = variables.find(environment, name);
    if (variable === undefined) {
      throw new AppError('VARIABLE_NOT_FOUND', 'there is no such variable', { name, environment });
    }
    await variables.change([], [variable]);
  }

  /** Whether it is new there. */
  async #putOnHost(put: PlacedValue): Promise<boolean> {
    const host = this.#usableHost();
    const { keyId, key } = await host.publicKey(put.environment);
    const { sealForHost } = await import('./sealed-box.ts');
    const encryptedValue = sealForHost(key, put.value);
    const done = await host.putSecret(put.environment, put.name, { keyId, encryptedValue });
    return done === 'created';
  }

  #usableHost(): HostSecretPort {
    const { host } = this.#stores;
    const problem = host === undefined ? 'no code host is configured' : host.problem();
    if (host === undefined || problem !== undefined) {
      throw new AppError('BACKEND_UNAVAILABLE', problem ?? '', { backend: 'host' });
    }
    return host;
  }

  #absent({ environment, name }: SecretPlace, backend: SecretBackend | undefined): AppError {
    if (
      backend === undefined &&
      isDefaultEnvironment(environment) &&
      this.#stores.process.values.has(name)
    ) {
      return readOnly();
    }
    return new AppError('SECRET_NOT_FOUND', 'there is no such secret', { name, environment });
  }

  #stamped(puts: readonly PlacedValue[], backend: LocalEntry['backend']): readonly LocalEntry[] {
    const updatedAt = this.#now();
    return puts.map(({ environment, name, value }) => ({
      environment,
      name,
      backend,
      value,
      updatedAt,
    }));
  }

  #now(): string {
    return new Date(this.#clock.nowMs()).toISOString();
  }
}

function readOnly(): AppError {
  return new AppError(
    'BACKEND_READ_ONLY',
    'secrets of the process environment cannot be changed here',
    { backend: 'env' },
  );
}
