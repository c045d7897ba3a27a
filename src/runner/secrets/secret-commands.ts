import { AppError } from '../../shared/app-error.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { checkValue, parseEnvironment, parseName } from './names.ts';
import type {
  ImportRequest,
  ImportResult,
  PutSecret,
  PutVariable,
  RemoveSecret,
  RemoveVariable,
  SecretInfo,
} from './secret-api.ts';
import type { SecretAction, SecretActor, SecretAudit, SecretAuditEvent } from './secret-audit.ts';
import {
  deniedEvent,
  parseBackend,
  parseImportType,
  readImport,
  VARIABLES,
} from './secret-requests.ts';
import type { ChangeTurns, SecretStores } from './secret-stores.ts';
import type { SecretWriter, ValueChange } from './secret-writer.ts';
import type { Variable } from './variable-store.ts';

export type SecretCommandsOptions = {
  readonly stores: SecretStores;
  readonly writer: SecretWriter;
  readonly audit: SecretAudit;
  readonly turns: ChangeTurns;
  /** Notified of `secrets.audit_failed`. */
  readonly report: ProblemReporter;
};

/**
 * What people change: each request is checked and carried out in its turn, and is in the audit, done or denied, when
 * its promise settles. Contract and errors of the methods: those of SecretService.
 */
export class SecretCommands {
  readonly #stores: SecretStores;
  readonly #writer: SecretWriter;
  readonly #audit: SecretAudit;
  readonly #turns: ChangeTurns;
  readonly #report: ProblemReporter;

  constructor(options: SecretCommandsOptions) {
    this.#stores = options.stores;
    this.#writer = options.writer;
    this.#audit = options.audit;
    this.#turns = options.turns;
    this.#report = options.report;
  }

  /** Sets a secret in one backend. */
  async put(
    request: PutSecret,
  ): Promise<{ readonly isCreated: boolean; readonly secret: SecretInfo }> {
    return await this.#audited('set', request, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      const backend = parseBackend(request.backend);
      checkValue(request.value, false);
      const [change] = await this.#writer.putSecrets(backend, [
        { name, environment, value: request.value },
      ]);
      if (change === undefined) throw new AppError('INTERNAL', 'a secret was not put');
      await this.#audit.append([this.#event('set', change, request.actor)]);
      const { isCreated, secret } = change;
      return { isCreated, secret };
    });
  }

  /** Removes a secret from one backend, or from `local` and `vault`. */
  async remove(request: RemoveSecret): Promise<void> {
    await this.#audited('delete', request, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      const backend = request.backend === undefined ? undefined : parseBackend(request.backend);
      const removed = await this.#writer.removeSecret({ name, environment }, backend);
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

  /** Sets every secret or variable of a `.env` text. */
  async importEnv(request: ImportRequest): Promise<ImportResult> {
    return await this.#audited('import', { ...request, name: '' }, async () => {
      const environment = parseEnvironment(request.environment);
      const type = parseImportType(request.type);
      const backend = parseBackend(request.backend);
      const { entries, skipped } = readImport(request, type);
      const puts = entries.map(({ name, value }) => ({ name, environment, value }));
      const changes =
        type === 'variable'
          ? await this.#writer.putVariables(puts)
          : await this.#writer.putSecrets(backend, puts);
      await this.#audit.append(
        changes.map((change) => this.#event('import', change, request.actor)),
      );
      const names = (isCreated: boolean): string[] =>
        changes.filter((change) => change.isCreated === isCreated).map((change) => change.name);
      return { imported: names(true), updated: names(false), skipped, type, environment };
    });
  }

  /** Sets a variable. */
  async putVariable(
    request: PutVariable,
  ): Promise<{ readonly isCreated: boolean; readonly variable: Variable }> {
    return await this.#audited('set', { ...request, backend: VARIABLES }, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      checkValue(request.value, true);
      const [change] = await this.#writer.putVariables([
        { name, environment, value: request.value },
      ]);
      const variable = this.#stores.variables.find(environment, name);
      if (change === undefined || variable === undefined) {
        throw new AppError('INTERNAL', 'a variable was not put');
      }
      await this.#audit.append([this.#event('set', change, request.actor)]);
      return { isCreated: change.isCreated, variable };
    });
  }

  /** Removes a variable. */
  async removeVariable(request: RemoveVariable): Promise<void> {
    await this.#audited('delete', { ...request, backend: VARIABLES }, async () => {
      const name = parseName(request.name);
      const environment = parseEnvironment(request.environment);
      await this.#writer.removeVariable({ name, environment });
      const { actor } = request;
      await this.#audit.append([
        { action: 'delete', name, environment, backend: VARIABLES, actor, result: 'deleted' },
      ]);
    });
  }

  #event(
    action: SecretAction,
    change: ValueChange,
    actor: SecretActor | undefined,
  ): SecretAuditEvent {
    const { name, environment, backend, value, isCreated } = change;
    const fingerprint =
      backend === VARIABLES ? undefined : this.#stores.local.fingerprint(environment, name, value);
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
      return await this.#turns.take(change);
    } catch (error) {
      const reason = error instanceof AppError ? error.reason : 'INTERNAL';
      await this.#audit.append([deniedEvent(action, request, reason)]).catch((failure: unknown) => {
        const cause = failure instanceof Error ? failure : new Error(String(failure));
        this.#report('secrets.audit_failed', cause);
      });
      throw error;
    }
  }
}
