import type { ProblemReporter } from '../model/ports.ts';
import { JobSecrets } from './job-secrets.ts';
import type { SecretService } from './secret-api.ts';
import { SecretAudit } from './secret-audit.ts';
import { SecretCommands } from './secret-commands.ts';
import { SecretLists } from './secret-lists.ts';
import { statusOf } from './secret-status.ts';
import { ChangeTurns, createSecretStores, type SecretStoresOptions } from './secret-stores.ts';
import { SecretSync } from './secret-sync.ts';
import { SecretWriter } from './secret-writer.ts';

export type SecretServiceOptions = SecretStoresOptions & {
  /** Notified of `secrets.audit_broken`, `secrets.audit_failed`, `secrets.masks_incomplete`, `secrets.vault_pull`, and of torn lines. */
  readonly report: ProblemReporter;
};

/**
 * Opens the secrets of a workspace. Damaged stores do not keep it from starting: each is reported by `status`
 * and refuses its own operations. Errors: DISK_FULL, STORE_UNAVAILABLE when the audit cannot be opened.
 */
export async function createSecretService(options: SecretServiceOptions): Promise<SecretService> {
  const { stateDir, clock, report } = options;
  const audit = await SecretAudit.open(stateDir, clock, report);
  const stores = createSecretStores(options);
  const turns = new ChangeTurns();
  const writer = new SecretWriter(stores, clock);
  const commands = new SecretCommands({ stores, writer, audit, turns, report });
  const synced = new SecretSync({ stores, audit, turns, clock, report });
  const lists = new SecretLists(stores, new Date(clock.nowMs()).toISOString());
  const jobs = new JobSecrets(stores, audit, report);
  return {
    listNames: (environment, backend) => lists.names(environment, backend),
    listSecrets: (environment, backend) => lists.secrets(environment, backend),
    listVariables: (environment) => lists.variables(environment),
    environments: () => lists.environments(),
    put: (request) => commands.put(request),
    remove: (request) => commands.remove(request),
    importEnv: (request) => commands.importEnv(request),
    putVariable: (request) => commands.putVariable(request),
    removeVariable: (request) => commands.removeVariable(request),
    sync: (actor) => synced.sync(actor),
    refreshVault: (actor) => synced.refreshVault(actor),
    secretsFor: (request) => jobs.secretsFor(request),
    variablesFor: (environment) => jobs.variablesFor(environment),
    masksFor: (environment, names) => jobs.masksFor(environment, names),
    status: () => statusOf({ ...stores, keySource: stores.masterKey.source }),
    audit: (query) => audit.query(query),
    close: async () => {
      await turns.ended();
      await audit.close();
    },
  };
}
