import { AppError } from '../../shared/app-error.ts';

/** What GET and PUT /api/sync/config exchange (spec 001 "Sync configuration"). */
export type SyncConfig = {
  readonly enabled: boolean;
  readonly host: {
    /** '' while none is set. */
    readonly owner: string;
    readonly repo: string;
    readonly syncIssues: boolean;
    readonly syncDiscussions: boolean;
    readonly syncWiki: boolean;
    readonly syncReleases: boolean;
    /** 0: no polling; else at least 5,000. */
    readonly pollIntervalMs: number;
    readonly webhookSecret?: string | undefined;
  };
  readonly deploymentLog: {
    readonly enabled: boolean;
    /** 0: no mirror. */
    readonly issueNumber: number;
    /** Empty: all. */
    readonly environments: readonly string[];
  };
};

export const DEFAULT_SYNC_CONFIG: SyncConfig = {
  enabled: false,
  host: {
    owner: '',
    repo: '',
    syncIssues: true,
    syncDiscussions: true,
    syncWiki: true,
    syncReleases: true,
    pollIntervalMs: 60_000,
  },
  deploymentLog: { enabled: true, issueNumber: 0, environments: [] },
};

/** Stands for a secret that is set; sent back, it keeps that secret. */
const SECRET_PLACEHOLDER = '********';
const SECRET_CHARS_MAX = 1024;
const POLL_INTERVAL_MS_MIN = 5000;
const POLL_INTERVAL_MS_MAX = 7 * 24 * 3600 * 1000;
const ENVIRONMENTS_MAX = 100;
const OWNER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;
/** May begin with a dot (`.github`), never with a dash: it becomes part of URLs that git is given. */
const REPO = /^(?!\.{1,2}$)[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}$/;
const ENVIRONMENT = /^[^/\p{C}]{1,255}$/u;

export function isSecretPlaceholder(text: string | undefined): boolean {
  return text === SECRET_PLACEHOLDER;
}

/** `config` as it may be shown: the secret by its placeholder. */
export function withoutSecret(config: SyncConfig): SyncConfig {
  const { webhookSecret, ...host } = config.host;
  if (webhookSecret === undefined) return config;
  return { ...config, host: { ...host, webhookSecret: SECRET_PLACEHOLDER } };
}

/**
 * The configuration that `body` asks for: a full replacement, what is absent is the default, at every
 * depth. The placeholder keeps `previous`'s secret; '' removes it.
 * Errors: INVALID_VALUE with metadata.field = the path of the first bad field.
 */
export function parseSyncConfig(body: unknown, previous: SyncConfig): SyncConfig {
  const root = new ConfigFields(body, '');
  const host = new ConfigFields(root.take('host') ?? {}, 'host');
  const log = new ConfigFields(root.take('deploymentLog') ?? {}, 'deploymentLog');
  const defaults = DEFAULT_SYNC_CONFIG;
  const webhookSecret = secretOf(host, previous.host.webhookSecret);
  const config: SyncConfig = {
    enabled: root.boolean('enabled', defaults.enabled),
    host: {
      owner: host.text('owner', OWNER),
      repo: host.text('repo', REPO),
      syncIssues: host.boolean('syncIssues', defaults.host.syncIssues),
      syncDiscussions: host.boolean('syncDiscussions', defaults.host.syncDiscussions),
      syncWiki: host.boolean('syncWiki', defaults.host.syncWiki),
      syncReleases: host.boolean('syncReleases', defaults.host.syncReleases),
      pollIntervalMs: intervalOf(host),
      ...(webhookSecret === undefined ? {} : { webhookSecret }),
    },
    deploymentLog: {
      enabled: log.boolean('enabled', defaults.deploymentLog.enabled),
      issueNumber: log.integer('issueNumber', defaults.deploymentLog.issueNumber),
      environments: environmentsOf(log),
    },
  };
  for (const fields of [root, host, log]) fields.assertNoOthers();
  for (const name of ['owner', 'repo'] as const) {
    if (config.enabled && config.host[name] === '') {
      throw invalid(`host.${name}`, 'is needed while sync is enabled');
    }
  }
  return config;
}

function secretOf(host: ConfigFields, previous: string | undefined): string | undefined {
  const value = host.take('webhookSecret');
  if (value === undefined || value === null || value === '') return undefined;
  if (value === SECRET_PLACEHOLDER) return previous;
  if (typeof value !== 'string') throw invalid('host.webhookSecret', 'must be a string');
  if (value.length > SECRET_CHARS_MAX) {
    throw invalid('host.webhookSecret', `must not be longer than ${SECRET_CHARS_MAX} characters`);
  }
  return value;
}

function intervalOf(host: ConfigFields): number {
  const value = host.integer('pollIntervalMs', DEFAULT_SYNC_CONFIG.host.pollIntervalMs);
  if (value === 0 || (value >= POLL_INTERVAL_MS_MIN && value <= POLL_INTERVAL_MS_MAX)) return value;
  throw invalid(
    'host.pollIntervalMs',
    `must be 0 or ${POLL_INTERVAL_MS_MIN} to ${POLL_INTERVAL_MS_MAX}`,
  );
}

function environmentsOf(log: ConfigFields): readonly string[] {
  const value = log.take('environments') ?? [];
  if (!Array.isArray(value) || value.length > ENVIRONMENTS_MAX) {
    throw invalid('deploymentLog.environments', `must be a list of at most ${ENVIRONMENTS_MAX}`);
  }
  return value.map((item: unknown, index) => {
    if (typeof item === 'string' && ENVIRONMENT.test(item)) return item;
    throw invalid(
      `deploymentLog.environments[${index}]`,
      'must be the name of an environment: 1 to 255 characters without /',
    );
  });
}

function invalid(path: string, problem: string): AppError {
  return new AppError('INVALID_VALUE', `${path === '' ? 'the body' : path} ${problem}`, {
    field: path,
  });
}

/** Reads the fields of one object, each once, and then says which were not asked for. */
class ConfigFields {
  readonly #values: Map<string, unknown>;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw invalid(path, 'must be an object');
    }
    this.#values = new Map(Object.entries(value));
    this.#path = path;
  }

  take(name: string): unknown {
    const value = this.#values.get(name);
    this.#values.delete(name);
    return value;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.take(name) ?? fallback;
    if (typeof value !== 'boolean') throw invalid(this.#pathOf(name), 'must be true or false');
    return value;
  }

  /** At least 0. */
  integer(name: string, fallback: number): number {
    const value = this.take(name) ?? fallback;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
      throw invalid(this.#pathOf(name), 'must be a whole number of at least 0');
    }
    return value;
  }

  /** '' or what matches. */
  text(name: string, pattern: RegExp): string {
    const value = this.take(name) ?? '';
    if (typeof value !== 'string') throw invalid(this.#pathOf(name), 'must be a string');
    if (value !== '' && !pattern.test(value)) {
      throw invalid(this.#pathOf(name), 'is not a name that a code host can have given');
    }
    return value;
  }

  assertNoOthers(): void {
    for (const name of this.#values.keys()) {
      throw invalid(this.#pathOf(name.slice(0, 100)), 'is not known');
    }
  }

  #pathOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }
}
