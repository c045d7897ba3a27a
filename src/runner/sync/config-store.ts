import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { isSealedText, type SealedText, type TextSealer } from '../secrets/text-sealer.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent, storageError } from '../storage/file-errors.ts';
import { objectOf } from './cache-entry.ts';
import {
  DEFAULT_SYNC_CONFIG,
  isSecretPlaceholder,
  parseSyncConfig,
  withoutSecret,
  type SyncConfig,
} from './sync-config.ts';

/** What the sealed text is: it opens as nothing else. */
const SEAL_CONTEXT = 'sync configuration: host.webhookSecret';
/** Beside the fields of the configuration. */
const SEALED_FIELD = 'sealedWebhookSecret';

/** Holds the sync configuration, in memory and in `config.json` of the sync folder (0600), the webhook secret sealed. */
export interface ConfigStore {
  /** As it may be shown: the webhook secret by its placeholder. */
  readonly get: () => SyncConfig;
  /** Errors: BACKEND_UNAVAILABLE when there is one and the key that opens it cannot be had. */
  webhookSecret(): Promise<string | undefined>;
  /**
   * On disk when the promise resolves. Errors: INVALID_VALUE naming the path, BACKEND_UNAVAILABLE when a
   * webhook secret cannot be sealed, DISK_FULL, STORE_UNAVAILABLE.
   */
  put(body: unknown): Promise<SyncConfig>;
}

/** `owner/name` that the configuration in a sync folder names, without a key; undefined where it names none. */
export async function configuredRepository(directory: string): Promise<string | undefined> {
  const text = await ifPresent(readFile(join(directory, 'config.json'), 'utf8'));
  const stored = text === undefined ? undefined : parseStored(text, () => undefined);
  const { owner = '', repo = '' } = stored?.config.host ?? {};
  return owner === '' || repo === '' ? undefined : `${owner}/${repo}`;
}

/** The webhook secret; `text` is absent as long as it could not be opened. */
type Secret = { readonly sealed: SealedText; readonly text?: string | undefined };
type State = { readonly shown: SyncConfig; readonly secret: Secret | undefined };

/**
 * Reads what is there. A file that cannot be understood is reported and stands for the defaults, in
 * which nothing is fetched; a webhook secret that lies there in clear, as older versions wrote it, is
 * sealed. Errors: STORE_UNAVAILABLE when the file cannot be read at all, BACKEND_UNAVAILABLE when a
 * secret in clear cannot be sealed.
 */
export async function openConfigStore(
  directory: string,
  sealer: TextSealer,
  report: ProblemReporter,
): Promise<ConfigStore> {
  const store = new FileConfigStore(join(directory, 'config.json'), sealer);
  await store.load(report);
  return {
    get: () => store.shown,
    webhookSecret: () => store.webhookSecret(),
    put: (body) => store.put(body),
  };
}

class FileConfigStore {
  readonly #path: string;
  readonly #sealer: TextSealer;
  #state: State = { shown: DEFAULT_SYNC_CONFIG, secret: undefined };
  #turn: Promise<unknown> = Promise.resolve();

  constructor(path: string, sealer: TextSealer) {
    this.#path = path;
    this.#sealer = sealer;
  }

  get shown(): SyncConfig {
    return this.#state.shown;
  }

  async load(report: ProblemReporter): Promise<void> {
    const text = await this.#read();
    const stored = text === undefined ? undefined : parseStored(text, report);
    if (stored === undefined) return;
    const { config, sealed } = stored;
    if (config.host.webhookSecret !== undefined) {
      await this.#replace(config);
      return;
    }
    if (sealed === undefined) {
      this.#state = { shown: config, secret: undefined };
      return;
    }
    const shown = withoutSecret({ ...config, host: { ...config.host, webhookSecret: 'sealed' } });
    this.#state = { shown, secret: { sealed } };
    try {
      await this.webhookSecret();
    } catch (error) {
      // Everything else works; deliveries are refused for the same reason.
      report('sync.webhook_secret_locked', error as Error);
    }
  }

  async webhookSecret(): Promise<string | undefined> {
    const { secret, shown } = this.#state;
    if (secret === undefined || secret.text !== undefined) return secret?.text;
    try {
      const text = await this.#sealer.open(SEAL_CONTEXT, secret.sealed);
      if (this.#state.secret === secret) this.#state = { shown, secret: { ...secret, text } };
      return text;
    } catch (cause) {
      const reason = cause instanceof AppError ? cause.message : 'unknown';
      const what = 'the webhook secret of the sync configuration cannot be opened';
      throw new AppError('BACKEND_UNAVAILABLE', `${what}: ${reason}`, { backend: 'local' }, cause);
    }
  }

  put(body: unknown): Promise<SyncConfig> {
    const mine = this.#turn.then(() => this.#replace(parseSyncConfig(body, this.#state.shown)));
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  /** `next` has a new secret, the placeholder of the present one, or none. */
  async #replace(next: SyncConfig): Promise<SyncConfig> {
    const { webhookSecret: text, ...host } = next.host;
    const secret = isSecretPlaceholder(text) ? this.#state.secret : await this.#sealed(text);
    const kept = secret === undefined ? {} : { [SEALED_FIELD]: secret.sealed };
    const content = JSON.stringify({ ...next, host, ...kept }, null, 2);
    await writeFileAtomic(this.#path, `${content}\n`);
    const shown = withoutSecret(next);
    this.#state = { shown, secret };
    return shown;
  }

  async #sealed(text: string | undefined): Promise<Secret | undefined> {
    if (text === undefined) return undefined;
    try {
      return { sealed: await this.#sealer.seal(SEAL_CONTEXT, text), text };
    } catch (cause) {
      const reason = cause instanceof AppError ? cause.message : 'unknown';
      const what = 'the webhook secret of the sync configuration is kept encrypted, which fails';
      throw new AppError('BACKEND_UNAVAILABLE', `${what}: ${reason}`, { backend: 'local' }, cause);
    }
  }

  async #read(): Promise<string | undefined> {
    try {
      return await ifPresent(readFile(this.#path, 'utf8'));
    } catch (error) {
      throw storageError('reading the sync configuration', error);
    }
  }
}

function parseStored(
  text: string,
  report: ProblemReporter,
): { readonly config: SyncConfig; readonly sealed: SealedText | undefined } | undefined {
  try {
    const { [SEALED_FIELD]: sealed, ...body } = objectOf(JSON.parse(text)) ?? {};
    if (sealed !== undefined && !isSealedText(sealed)) throw new TypeError(SEALED_FIELD);
    return { config: parseSyncConfig(body, DEFAULT_SYNC_CONFIG), sealed };
  } catch (cause) {
    const problem = new AppError(
      'STORE_UNAVAILABLE',
      'the sync configuration on disk cannot be understood; the defaults stand in for it',
      {},
      cause,
    );
    report('sync.config_unreadable', problem);
    return undefined;
  }
}
