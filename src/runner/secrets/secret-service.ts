import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { HostSecretPort } from './host-port.ts';
import { MasterKey } from './key-source.ts';
import { LocalStore, type LocalEntry } from './local-store.ts';
import {
  checkValue,
  DEFAULT_ENVIRONMENT,
  environmentKey,
  isDefaultEnvironment,
  parseEnvironment,
  parseName,
} from './names.ts';
import { processSecrets, type ProcessSecrets } from './process-secrets.ts';
import { sealForHost } from './sealed-box.ts';
import {
  type ImportRequest,
  type ImportResult,
  type PutSecret,
  type PutVariable,
  type RemoveSecret,
  type RemoveVariable,
  type SecretBackend,
  type SecretInfo,
  type SecretService,
  type SecretStatus,
  type SyncResult,
} from './secret-api.ts';
import {
  SecretAudit,
  type SecretAction,
  type SecretActor,
  type SecretAuditEvent,
  type SecretAuditQuery,
  type SecretAuditRecord,
} from './secret-audit.ts';
import { effectiveEntry } from './secret-mirror.ts';
import { pullAll, pullStaleVault } from './secret-pull.ts';
import {
  deniedEvent,
  parseBackend,
  parseImportType,
  readImport,
  VARIABLES,
} from './secret-requests.ts';
import { statusOf } from './secret-status.ts';
import { VariableStore, type Variable } from './variable-store.ts';
import { VaultFile } from './vault-file.ts';
import { VaultIdentities } from './vault-identities.ts';

export type SecretServiceOptions = {
  /** Absolute path of `.runner`, which exists. */
  readonly stateDir: string;
  /** RUNNER_SECRETS_KEY: 64 hexadecimal digits, base64 of 32 bytes, or a passphrase. */
  readonly secretsKey: string | undefined;
  /** Where `runner.key` is made and read (`userConfigDir`). */
  readonly configDir: string;
  /** The process environment: RUNNER_SECRET_*, SOPS_AGE_*, HOME, XDG_CONFIG_HOME. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `age1…` for a vault made here; default SOPS_AGE_RECIPIENTS, else the own identities. */
  readonly vaultRecipients?: readonly string[] | undefined;
  readonly host?: HostSecretPort | undefined;
  readonly clock: Clock;
  /** Told of `secrets.audit_broken`, `secrets.audit_failed`, `secrets.masks_incomplete`, `secrets.vault_pull`, and of torn lines. */
  readonly report: ProblemReporter;
};

/**
 * Opens the secrets of a workspace. Damaged stores do not keep it from starting: each is reported by `status`
 * and refuses its own operations. Errors: DISK_FULL, STORE_UNAVAILABLE when the audit cannot be opened.
 */
export async function createSecretService(options: SecretServiceOptions): Promise<SecretService> {
  const audit = await SecretAudit.open(options.stateDir, options.clock, options.report);
  return new Secrets(options, audit);
}

type Subject = { readonly name: string; readonly environment: string };

class Secrets implements SecretService {
  readonly #clock: Clock;
  readonly #audit: SecretAudit;
  readonly #local: LocalStore;
  readonly #vault: VaultFile;
  readonly #process: ProcessSecrets;
  readonly #host: HostSecretPort | undefined;
  readonly #variables: VariableStore;
  readonly #masterKey: MasterKey;
  readonly #startedAt: string;
  readonly #report: ProblemReporter;
  #turn: Promise<unknown> = Promise.resolve();
  #isSyncing = false;
  #seenProcessNames: ReadonlySet<string> = new Set();

  constructor(options: SecretServiceOptions, audit: SecretAudit) {
    const { stateDir, clock, configDir, environment } = options;
    this.#clock = clock;
    this.#audit = audit;
    this.#masterKey = new MasterKey(options.secretsKey, configDir);
    this.#local = new LocalStore(stateDir, this.#masterKey);
    const identities = new VaultIdentities({
      configDir,
      environment,
      recipients: options.vaultRecipients,
    });
    this.#vault = new VaultFile(stateDir, identities, clock);
    this.#process = processSecrets(environment);
    this.#host = options.host;
    this.#variables = new VariableStore(stateDir);
    this.#startedAt = this.#now();
    this.#report = options.report;
  }

  async listNames(environment?: string): Promise<readonly string[]> {
    const secrets = await this.listSecrets(environment);
    return [...new Set(secrets.map(({ name }) => name))].sort();
  }

  async listSecrets(environment?: string): Promise<readonly SecretInfo[]> {
    const key =
      environment === undefined ? undefined : environmentKey(parseEnvironment(environment));
    await this.#local.open();
    const fromProcess = [...this.#process.values.keys()].map((name): SecretInfo => ({
      name,
      environment: DEFAULT_ENVIRONMENT,
      backend: 'env',
      updatedAt: this.#startedAt,
    }));
    return [...this.#local.entries().map(infoOf), ...fromProcess]
      .filter((secret) => key === undefined || environmentKey(secret.environment) === key)
      .sort(byPlace);
  }

  async put(
    request: PutSecret,
  ): Promise<{ readonly isCreated: boolean; readonly secret: SecretInfo }> {
    return await this.#audited('set', request, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      const backend = parseBackend(request.backend);
      checkValue(request.value, false);
      const [change] = await this.#putAll(backend, [{ name, environment, value: request.value }]);
      if (change === undefined) throw new AppError('INTERNAL', 'a secret was not put');
      await this.#audit.append([this.#event('set', change, request.actor)]);
      const { isCreated, secret } = change;
      return { isCreated, secret };
    });
  }

  async remove(request: RemoveSecret): Promise<void> {
    await this.#audited('delete', request, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      const backend = request.backend === undefined ? undefined : parseBackend(request.backend);
      const removed = await this.#removeFrom({ name, environment }, backend);
      await this.#audit.append(
        removed.map((from) => ({
          action: 'delete',
          name,
          environment,
          backend: from,
          actor: request.actor,
          result: 'deleted',
        })),
      );
    });
  }

  async importEnv(request: ImportRequest): Promise<ImportResult> {
    return await this.#audited('import', { ...request, name: '' }, async () => {
      const environment = parseEnvironment(request.environment);
      const type = parseImportType(request.type);
      const backend = parseBackend(request.backend);
      const { entries, skipped } = readImport(request, type);
      const puts = entries.map(({ name, value }) => ({ name, environment, value }));
      const changes =
        type === 'variable' ? await this.#putVariables(puts) : await this.#putAll(backend, puts);
      await this.#audit.append(
        changes.map((change) => this.#event('import', change, request.actor)),
      );
      const names = (isCreated: boolean): string[] =>
        changes.filter((change) => change.isCreated === isCreated).map((change) => change.name);
      return { imported: names(true), updated: names(false), skipped, type, environment };
    });
  }

  async sync(actor?: SecretActor): Promise<SyncResult> {
    if (this.#isSyncing) {
      throw new AppError('SYNC_IN_PROGRESS', 'secrets are being synchronised already');
    }
    this.#isSyncing = true;
    try {
      return await this.#inTurn(async () => {
        const pulled = await pullAll({
          local: this.#local,
          vault: this.#vault,
          process: this.#process,
          seenProcessNames: this.#seenProcessNames,
          host: this.#host,
          nowMs: this.#clock.nowMs(),
        });
        this.#seenProcessNames = new Set(this.#process.values.keys());
        await this.#audit.append(pulled.events.map((event) => ({ ...event, actor })));
        return pulled.result;
      });
    } finally {
      this.#isSyncing = false;
    }
  }

  async refreshVault(actor: SecretActor): Promise<void> {
    try {
      await this.#inTurn(async () => {
        const pulled = await pullStaleVault({
          local: this.#local,
          vault: this.#vault,
          nowMs: this.#clock.nowMs(),
        });
        await this.#audit.append((pulled?.events ?? []).map((event) => ({ ...event, actor })));
        for (const problem of pulled?.backend.errors ?? []) {
          this.#report('secrets.vault_pull', new AppError('BACKEND_UNAVAILABLE', problem));
        }
      });
    } catch (error) {
      this.#report('secrets.vault_pull', errorOf(error));
    }
  }

  async status(): Promise<SecretStatus> {
    return await statusOf({
      local: this.#local,
      vault: this.#vault,
      process: this.#process,
      host: this.#host,
      keySource: this.#masterKey.source,
    });
  }

  async listVariables(environment?: string): Promise<readonly Variable[]> {
    const key =
      environment === undefined ? undefined : environmentKey(parseEnvironment(environment));
    await this.#variables.open();
    return this.#variables
      .list()
      .filter((variable) => key === undefined || environmentKey(variable.environment) === key);
  }

  async putVariable(
    request: PutVariable,
  ): Promise<{ readonly isCreated: boolean; readonly variable: Variable }> {
    return await this.#audited('set', { ...request, backend: VARIABLES }, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      checkValue(request.value, true);
      const [change] = await this.#putVariables([{ name, environment, value: request.value }]);
      const variable = this.#variables.find(environment, name);
      if (change === undefined || variable === undefined) {
        throw new AppError('INTERNAL', 'a variable was not put');
      }
      await this.#audit.append([this.#event('set', change, request.actor)]);
      return { isCreated: change.isCreated, variable };
    });
  }

  async removeVariable(request: RemoveVariable): Promise<void> {
    await this.#audited('delete', { ...request, backend: VARIABLES }, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      await this.#variables.open();
      const variable = this.#variables.find(environment, name);
      if (variable === undefined) {
        throw new AppError('VARIABLE_NOT_FOUND', 'there is no such variable', {
          name,
          environment,
        });
      }
      await this.#variables.change([], [variable]);
      const { actor } = request;
      await this.#audit.append([
        { action: 'delete', name, environment, backend: VARIABLES, actor, result: 'deleted' },
      ]);
    });
  }

  async audit(query: SecretAuditQuery): Promise<readonly SecretAuditRecord[]> {
    return await this.#audit.query(query);
  }

  async secretsFor(request: {
    readonly runId: string;
    readonly jobId: string;
    readonly environment: string;
    readonly names: readonly string[] | undefined;
  }): Promise<Readonly<Record<string, string>>> {
    if (request.names?.length === 0) return {};
    const environment = parseEnvironment(request.environment);
    await this.#local.open();
    const wanted = request.names?.map((name) => name.toUpperCase()) ?? this.#allNames(environment);
    const values: Record<string, string> = {};
    const events: SecretAuditEvent[] = [];
    for (const name of new Set(wanted)) {
      const found = this.#lookUp(environment, name);
      if (found === undefined) continue;
      values[name] = found.value;
      const { environment: from, backend, value } = found;
      const fingerprint = this.#local.fingerprint(from, name, value);
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

  async variablesFor(environment: string): Promise<Readonly<Record<string, string>>> {
    await this.#variables.open();
    return this.#variables.merged(parseEnvironment(environment));
  }

  async masksFor(environment: string): Promise<readonly string[]> {
    const values = new Set(this.#process.values.values());
    try {
      await this.#local.open();
      for (const entry of this.#entriesFor(environment)) {
        if (entry.backend !== 'host') values.add(this.#local.valueOf(entry));
      }
    } catch (error) {
      // What cannot be opened is given to no job either, which is then told why.
      this.#report('secrets.masks_incomplete', errorOf(error));
    }
    return [...values];
  }

  async environments(): Promise<readonly string[]> {
    const [secrets, variables] = [await this.listSecrets(), await this.listVariables()];
    const shown = new Map<string, string>();
    for (const { environment } of [...secrets, ...variables]) {
      const key = environmentKey(environment);
      if (!shown.has(key)) shown.set(key, environment);
    }
    return [...shown.values()].sort();
  }

  async close(): Promise<void> {
    await this.#turn;
    await this.#audit.close();
  }

  #lookUp(
    environment: string,
    name: string,
  ):
    | { readonly environment: string; readonly backend: string; readonly value: string }
    | undefined {
    for (const place of new Set([environment, DEFAULT_ENVIRONMENT])) {
      const entry = effectiveEntry(this.#local, place, name);
      if (entry !== undefined) {
        return { environment: place, backend: entry.backend, value: this.#local.valueOf(entry) };
      }
      const given = isDefaultEnvironment(place) ? this.#process.values.get(name) : undefined;
      if (given !== undefined) return { environment: place, backend: 'env', value: given };
    }
    return undefined;
  }

  #allNames(environment: string): readonly string[] {
    const stored = this.#entriesFor(environment).map(({ name }) => name);
    return [...stored, ...this.#process.values.keys()];
  }

  /** Those of the environment and of all. */
  #entriesFor(environment: string): readonly LocalEntry[] {
    const key = environmentKey(environment);
    return this.#local
      .entries()
      .filter(
        (entry) =>
          isDefaultEnvironment(entry.environment) || environmentKey(entry.environment) === key,
      );
  }

  async #putAll(
    backend: SecretBackend,
    puts: readonly (Subject & { readonly value: string })[],
  ): Promise<readonly Change[]> {
    if (backend === 'env') throw readOnly();
    await this.#local.open();
    const layer = backend;
    const isNew = new Map(
      puts.map((put) => [
        put.name,
        this.#local.entry(put.environment, put.name, layer) === undefined,
      ]),
    );
    if (backend === 'vault' && puts.length > 0) {
      const { content } = await this.#vault.change(puts, []);
      const mirror = { ...this.#local.mirror, vaultDigest: content.digest };
      await this.#local.change(this.#stamped(puts, 'vault'), [], mirror);
    } else if (backend === 'host') {
      // One by one: what the host took is known even if it refuses the next.
      for (const put of puts) {
        isNew.set(put.name, await this.#putOnHost(put));
        await this.#local.change(this.#stamped([put], 'host'));
      }
    } else if (puts.length > 0) {
      await this.#local.change(this.#stamped(puts, 'local'));
    }
    return puts.map((put) => {
      const entry = this.#local.entry(put.environment, put.name, layer);
      return {
        ...put,
        backend,
        isCreated: isNew.get(put.name) ?? true,
        secret: infoOf(entry ?? { ...put, backend: layer, value: '', updatedAt: this.#now() }),
      };
    });
  }

  async #putOnHost(put: Subject & { readonly value: string }): Promise<boolean> {
    const host = this.#usableHost();
    const { keyId, key } = await host.publicKey(put.environment);
    const encryptedValue = sealForHost(key, put.value);
    const done = await host.putSecret(put.environment, put.name, { keyId, encryptedValue });
    return done === 'created';
  }

  async #removeFrom(
    subject: Subject,
    backend: SecretBackend | undefined,
  ): Promise<readonly SecretBackend[]> {
    const { environment, name } = subject;
    if (backend === 'env') throw readOnly();
    await this.#local.open();
    const present = (layer: LocalEntry['backend']): LocalEntry[] =>
      [this.#local.entry(environment, name, layer)].filter((entry) => entry !== undefined);
    const removals: LocalEntry[] = [];
    const from = new Set<SecretBackend>();
    let mirror = this.#local.mirror;
    if (backend !== 'vault' && backend !== 'host') removals.push(...present('local'));
    if (backend === 'vault' || (backend === undefined && present('vault').length > 0)) {
      const { content, removed } = await this.#vault.change([], [subject]);
      if (removed > 0) from.add('vault');
      mirror = { ...mirror, vaultDigest: content.digest === '' ? null : content.digest };
      removals.push(...present('vault'));
    }
    if (backend === 'host') {
      if (await this.#usableHost().removeSecret(environment, name)) from.add('host');
      removals.push(...present('host'));
    }
    if (removals.length > 0) await this.#local.change([], removals, mirror);
    for (const removal of removals) from.add(removal.backend);
    if (from.size === 0) throw this.#absent(subject, backend);
    return [...from];
  }

  #absent(subject: Subject, backend: SecretBackend | undefined): AppError {
    const { environment, name } = subject;
    if (
      backend === undefined &&
      isDefaultEnvironment(environment) &&
      this.#process.values.has(name)
    ) {
      return readOnly();
    }
    return new AppError('SECRET_NOT_FOUND', 'there is no such secret', { name, environment });
  }

  async #putVariables(
    puts: readonly (Subject & { readonly value: string })[],
  ): Promise<readonly Change[]> {
    await this.#variables.open();
    const updatedAt = this.#now();
    const changes = puts.map((put) => ({
      ...put,
      backend: VARIABLES,
      isCreated: this.#variables.find(put.environment, put.name) === undefined,
    }));
    if (puts.length > 0) {
      await this.#variables.change(
        puts.map(({ name, value, environment }) => ({ name, value, environment, updatedAt })),
      );
    }
    return changes.map((change) => ({
      ...change,
      secret: { name: change.name, environment: change.environment, backend: 'local', updatedAt },
    }));
  }

  #stamped(
    puts: readonly (Subject & { readonly value: string })[],
    backend: LocalEntry['backend'],
  ): readonly LocalEntry[] {
    const updatedAt = this.#now();
    return puts.map(({ environment, name, value }) => ({
      environment,
      name,
      backend,
      value,
      updatedAt,
    }));
  }

  #usableHost(): HostSecretPort {
    const problem = this.#host === undefined ? 'no code host is configured' : this.#host.problem();
    if (this.#host === undefined || problem !== undefined) {
      throw new AppError('BACKEND_UNAVAILABLE', problem ?? '', { backend: 'host' });
    }
    return this.#host;
  }

  #event(action: SecretAction, change: Change, actor: SecretActor | undefined): SecretAuditEvent {
    const { name, environment, backend, value, isCreated } = change;
    const fingerprint =
      backend === VARIABLES ? undefined : this.#local.fingerprint(environment, name, value);
    const result = isCreated ? 'created' : 'updated';
    return { action, name, environment, backend, actor, result, fingerprint };
  }

  /** Runs a change in its turn; what is refused is in the audit, with names only if they are some. */
  async #audited<T>(
    action: SecretAction,
    request: {
      readonly name: string;
      readonly environment?: string | undefined;
      readonly backend?: string | undefined;
      readonly actor?: SecretActor | undefined;
    },
    change: () => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#inTurn(change);
    } catch (error) {
      const reason = error instanceof AppError ? error.reason : 'INTERNAL';
      await this.#audit.append([deniedEvent(action, request, reason)]).catch((failure: unknown) => {
        this.#report('secrets.audit_failed', errorOf(failure));
      });
      throw error;
    }
  }

  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(action);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  #now(): string {
    return new Date(this.#clock.nowMs()).toISOString();
  }
}

type Change = Subject & {
  readonly value: string;
  readonly backend: SecretBackend | typeof VARIABLES;
  readonly isCreated: boolean;
  readonly secret: SecretInfo;
};

function infoOf(entry: LocalEntry): SecretInfo {
  const { name, environment, backend, updatedAt } = entry;
  return { name, environment, backend, updatedAt };
}

function byPlace(left: SecretInfo, right: SecretInfo): number {
  const [leftKey, rightKey] = [left, right].map(
    ({ environment, name, backend }) => `${environmentKey(environment)}/${name}/${backend}`,
  ) as [string, string];
  return leftKey < rightKey ? -1 : leftKey > rightKey ? 1 : 0;
}

function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

function readOnly(): AppError {
  return new AppError(
    'BACKEND_READ_ONLY',
    'secrets of the process environment cannot be changed here',
    { backend: 'env' },
  );
}
