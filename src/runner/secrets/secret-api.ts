import type { SecretSource } from '../model/ports.ts';
import type { DotenvSkip } from './dotenv-parser.ts';
import type { KeySource } from './key-source.ts';
import type { SecretActor, SecretAuditQuery, SecretAuditRecord } from './secret-audit.ts';
import type { Variable } from './variable-store.ts';

/**
 * `local`: `.runner/secrets.json`. `vault`: `.runner/vault.json`, in the repository. `env`: the process
 * environment, read-only. `host`: the code host, write-only.
 */
export const SECRET_BACKENDS = ['local', 'vault', 'env', 'host'] as const;
export type SecretBackend = (typeof SECRET_BACKENDS)[number];

/** A secret as it is shown: never its value. */
export type SecretInfo = {
  readonly name: string;
  /** `default` for those of the whole repository. */
  readonly environment: string;
  readonly backend: SecretBackend;
  /** ISO 8601; for `env`, when the process began. */
  readonly updatedAt: string;
};

export type PutSecret = {
  readonly name: string;
  readonly value: string;
  /** Absent or '': default. */
  readonly environment?: string | undefined;
  /** Absent: local. */
  readonly backend?: string | undefined;
  readonly actor?: SecretActor | undefined;
};
export type RemoveSecret = Omit<PutSecret, 'value'>;
export type PutVariable = Omit<PutSecret, 'backend'>;
export type RemoveVariable = Omit<PutVariable, 'value'>;

export type ImportRequest = {
  readonly content: string;
  readonly environment?: string | undefined;
  /** `secret` (default) or `variable`. */
  readonly type?: string | undefined;
  /** Where secrets go; absent: local. */
  readonly backend?: string | undefined;
  /** Nothing is imported when a single line would be left out. */
  readonly isStrict?: boolean | undefined;
  readonly actor?: SecretActor | undefined;
};
export type ImportResult = {
  readonly imported: readonly string[];
  readonly updated: readonly string[];
  readonly skipped: readonly DotenvSkip[];
  readonly type: 'secret' | 'variable';
  readonly environment: string;
};

export type SyncedBackend = {
  readonly name: SecretBackend;
  readonly available: boolean;
  readonly pulled: number;
  readonly unchanged: number;
  readonly removed: number;
  readonly errors: readonly string[];
};
export type SyncResult = {
  readonly backends: readonly SyncedBackend[];
  readonly mirror: { readonly count: number; readonly updatedAt: string | null };
};

export type BackendStatus = {
  readonly name: SecretBackend;
  readonly available: boolean;
  readonly writable: boolean;
  /** Why it is not available, or what to know of it. */
  readonly reason?: string | undefined;
  readonly path?: string | undefined;
};
export type SecretStatus = {
  readonly backends: readonly BackendStatus[];
  readonly mirror: {
    readonly entries: number;
    readonly environments: readonly string[];
    readonly updatedAt: string | null;
    /** vault.json is another than at the last pull. */
    readonly stale: boolean;
  };
  readonly encryption: { readonly algorithm: 'AES-256-GCM'; readonly keySource: KeySource };
};

/**
 * Secrets and variables of one workspace: what jobs get (SecretSource) and what the endpoints do.
 * No answer and no error holds a secret's value. Changes are made one after the other, each on disk, and in the audit,
 * when its promise resolves; a refused change is in the audit as `denied`.
 * Errors of all: BACKEND_UNAVAILABLE when a file does not verify or a key is missing, DISK_FULL, STORE_UNAVAILABLE.
 */
export interface SecretService extends SecretSource {
  masksFor(
    environment: string | undefined,
    names: readonly string[] | undefined,
  ): Promise<readonly string[]>;
  /** Sorted, each name once. Absent: of all environments, of all backends. Errors: as of listSecrets. */
  listNames(environment?: string, backend?: string): Promise<readonly string[]>;
  /**
   * One entry for each backend that has the secret, by environment and name. Of the vault alone what its file
   * names, which needs no key. Errors: INVALID_NAME, INVALID_VALUE for an unknown backend.
   */
  listSecrets(environment?: string, backend?: string): Promise<readonly SecretInfo[]>;
  /** Errors: INVALID_NAME, INVALID_VALUE (also for an unknown backend), BACKEND_READ_ONLY, RESULT_TOO_LARGE, UPSTREAM_ERROR. */
  put(request: PutSecret): Promise<{ readonly isCreated: boolean; readonly secret: SecretInfo }>;
  /**
   * Without a backend: from `local` and `vault`, wherever it is.
   * Errors: INVALID_NAME, INVALID_VALUE, SECRET_NOT_FOUND, BACKEND_READ_ONLY.
   */
  remove(request: RemoveSecret): Promise<void>;
  /** Errors: INVALID_NAME, INVALID_REQUEST, INVALID_VALUE (strict, or no `.env` text at all), BODY_TOO_LARGE, as `put`. */
  importEnv(request: ImportRequest): Promise<ImportResult>;
  /** What fails in one backend is among its errors and leaves its mirror as it was. Errors: SYNC_IN_PROGRESS. */
  sync(actor?: SecretActor): Promise<SyncResult>;
  /**
   * Pulls the vault when it is another than at the last pull, as after a clone; audited as a sync. Asks no
   * other machine. Never rejects: what fails is reported and shown by `status`.
   */
  refreshVault(actor: SecretActor): Promise<void>;
  status(): Promise<SecretStatus>;
  /** By environment and name. Absent: of all environments. Errors: INVALID_NAME. */
  listVariables(environment?: string): Promise<readonly Variable[]>;
  /** Errors: INVALID_NAME, INVALID_VALUE, RESULT_TOO_LARGE. */
  putVariable(
    request: PutVariable,
  ): Promise<{ readonly isCreated: boolean; readonly variable: Variable }>;
  /** Errors: INVALID_NAME, VARIABLE_NOT_FOUND. */
  removeVariable(request: RemoveVariable): Promise<void>;
  /** Newest first. Errors: INVALID_REQUEST with metadata.field. */
  audit(query: SecretAuditQuery): Promise<readonly SecretAuditRecord[]>;
  close(): Promise<void>;
}
