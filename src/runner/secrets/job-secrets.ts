import type { ProblemReporter } from '../model/ports.ts';
import type { LocalEntry } from './local-store.ts';
import {
  DEFAULT_ENVIRONMENT,
  environmentKey,
  isDefaultEnvironment,
  parseEnvironment,
} from './names.ts';
import type { SecretAudit, SecretAuditEvent } from './secret-audit.ts';
import { effectiveEntry } from './secret-mirror.ts';
import type { SecretStores } from './secret-stores.ts';

type FoundSecret = {
  readonly environment: string;
  readonly backend: string;
  readonly value: string;
};

/**
 * What jobs are given, and the masks that hide it: the only part that hands out values. A value that a job gets is in
 * the audit before. An environment's own go before those of the whole repository. Contract of the methods: SecretSource.
 */
export class JobSecrets {
  readonly #stores: SecretStores;
  readonly #audit: SecretAudit;
  readonly #report: ProblemReporter;

  /** `report` is notified of `secrets.masks_incomplete`. */
  constructor(stores: SecretStores, audit: SecretAudit, report: ProblemReporter) {
    this.#stores = stores;
    this.#audit = audit;
    this.#report = report;
  }

  /**
   * Only `names` (all when undefined); those that nobody set are left out. Cost: decrypts each, one write of the audit.
   * Errors: INVALID_NAME, BACKEND_UNAVAILABLE, DISK_FULL, STORE_UNAVAILABLE.
   */
  async secretsFor(request: {
    readonly runId: string;
    readonly jobId: string;
    readonly environment: string;
    readonly names: readonly string[] | undefined;
  }): Promise<Readonly<Record<string, string>>> {
    if (request.names?.length === 0) return {};
    const environment = parseEnvironment(request.environment);
    const { local } = this.#stores;
    await local.open();
    const wanted = request.names?.map((name) => name.toUpperCase()) ?? this.#allNames(environment);
    const values: Record<string, string> = {};
    const events: SecretAuditEvent[] = [];
    for (const name of new Set(wanted)) {
      const found = this.#lookUp(environment, name);
      if (found === undefined) continue;
      values[name] = found.value;
      const { environment: from, backend, value } = found;
      const fingerprint = local.fingerprint(from, name, value);
      const { runId, jobId } = request;
      events.push({
        action: 'read',
        name,
        environment: from,
        backend,
        runId,
        jobId,
        result: 'ok',
        fingerprint,
      });
    }
    await this.#audit.append(events);
    return values;
  }

  /** Not audited: variables are no secrets. Errors: INVALID_NAME, BACKEND_UNAVAILABLE. */
  async variablesFor(environment: string): Promise<Readonly<Record<string, string>>> {
    const { variables } = this.#stores;
    await variables.open();
    return variables.merged(parseEnvironment(environment));
  }

  /**
   * Every value of these names (all when undefined), that of an environment and the one of all that it hides, and
   * the runner's own secrets. Never rejects; reports what it leaves out. Cost: decrypts each; a read for each file with keys.
   */
  async masksFor(
    environment: string | undefined,
    names: readonly string[] | undefined,
  ): Promise<readonly string[]> {
    const { local, process, ownSecrets } = this.#stores;
    const isNamed = (name: string): boolean => names?.includes(name) ?? true;
    const values = new Set<string>();
    for (const [name, value] of process.values) if (isNamed(name)) values.add(value);
    for (const own of await Promise.allSettled(ownSecrets.map((find) => find()))) {
      if (own.status === 'fulfilled') for (const value of own.value) values.add(value);
      else this.#reportIncomplete(own.reason);
    }
    try {
      await local.open();
      for (const entry of this.#entriesFor(environment)) {
        if (entry.backend !== 'host' && isNamed(entry.name)) values.add(local.valueOf(entry));
      }
    } catch (error) {
      // What cannot be opened is given to no job either, which is then reported why.
      this.#reportIncomplete(error);
    }
    return [...values].filter((value) => value !== '');
  }

  #reportIncomplete(error: unknown): void {
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#report('secrets.masks_incomplete', cause);
  }

  #lookUp(environment: string, name: string): FoundSecret | undefined {
    const { local, process } = this.#stores;
    for (const place of new Set([environment, DEFAULT_ENVIRONMENT])) {
      const entry = effectiveEntry(local, place, name);
      if (entry !== undefined) {
        return { environment: place, backend: entry.backend, value: local.valueOf(entry) };
      }
      const given = isDefaultEnvironment(place) ? process.values.get(name) : undefined;
      if (given !== undefined) return { environment: place, backend: 'env', value: given };
    }
    return undefined;
  }

  #allNames(environment: string): readonly string[] {
    const stored = this.#entriesFor(environment).map(({ name }) => name);
    return [...stored, ...this.#stores.process.values.keys()];
  }

  /** Those of the environment and of all; undefined: of every one. */
  #entriesFor(environment: string | undefined): readonly LocalEntry[] {
    if (environment === undefined) return this.#stores.local.entries();
    const key = environmentKey(environment);
    return this.#stores.local
      .entries()
      .filter(
        (entry) =>
          isDefaultEnvironment(entry.environment) || environmentKey(entry.environment) === key,
      );
  }
}
