import type { Clock } from '../../shared/time/clock.ts';
import type { HostSecretPort } from './host-port.ts';
import { MasterKey } from './key-source.ts';
import { LocalStore } from './local-store.ts';
import { DEFAULT_ENVIRONMENT, nameProblem, valueProblem } from './names.ts';
import { VariableStore } from './variable-store.ts';
import { VaultFile } from './vault-file.ts';
import { VaultIdentities } from './vault-identities.ts';

const PREFIX = 'RUNNER_SECRET_';

export type ProcessSecrets = {
  /** Name, upper case, to value; all of the default environment. */
  readonly values: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
  readonly environment: typeof DEFAULT_ENVIRONMENT;
};

/** Secrets that the process was started with: RUNNER_SECRET_<NAME>. Empty ones count as unset. Read-only. */
function processSecrets(environment: Readonly<Record<string, string | undefined>>): ProcessSecrets {
  const values = new Map<string, string>();
  const problems: string[] = [];
  for (const [key, value] of Object.entries(environment)) {
    if (!key.startsWith(PREFIX) || value === undefined || value === '') continue;
    const name = key.slice(PREFIX.length);
    const problem = nameProblem(name) ?? valueProblem(value, false);
    if (problem === undefined) values.set(name.toUpperCase(), value);
    else problems.push(`${key.slice(0, 64)}: ${problem}`);
  }
  return { values, problems, environment: DEFAULT_ENVIRONMENT };
}

export type SecretStoresOptions = {
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
  /** Find secrets of the runner that stand elsewhere: no job is given them, and no log may show them. */
  readonly ownSecrets?: SecretStores['ownSecrets'] | undefined;
  readonly clock: Clock;
};

/** Where the secrets and variables of one workspace are kept: all parts of the service work on the same. */
export type SecretStores = {
  readonly masterKey: MasterKey;
  readonly local: LocalStore;
  readonly vault: VaultFile;
  readonly process: ProcessSecrets;
  /** Undefined: the workspace has no code host. */
  readonly host: HostSecretPort | undefined;
  readonly variables: VariableStore;
  /** Each finds texts that no log may show: keys, identities, what else is the runner's own. */
  readonly ownSecrets: readonly (() => Promise<readonly string[]>)[];
};

/** Reads no file yet: each store opens its own when it is first used. Never throws. */
export function createSecretStores(options: SecretStoresOptions): SecretStores {
  const { stateDir, secretsKey, configDir, environment, vaultRecipients, host, clock } = options;
  const masterKey = new MasterKey(secretsKey, configDir);
  const identities = new VaultIdentities({ configDir, environment, recipients: vaultRecipients });
  return {
    masterKey,
    local: new LocalStore(stateDir, masterKey),
    vault: new VaultFile(stateDir, identities, clock),
    process: processSecrets(environment),
    host,
    variables: new VariableStore(stateDir),
    ownSecrets: [() => masterKey.texts(), () => identities.texts(), ...(options.ownSecrets ?? [])],
  };
}

/**
 * One change after the other, whichever part makes it: commands and pulls read the mirror, wait for a backend, and
 * write the mirror, and none may do so between the halves of another.
 */
export class ChangeTurns {
  #turn: Promise<unknown> = Promise.resolve();

  /** Runs `action` after all that were given before, also after those that failed. Errors: those of `action`. */
  take<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(action);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when all that were given before have ended. Never rejects. */
  async ended(): Promise<void> {
    await this.#turn;
  }
}
