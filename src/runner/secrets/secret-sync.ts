import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { SyncResult } from './secret-api.ts';
import type { SecretActor, SecretAudit } from './secret-audit.ts';
import { pullAll, pullStaleVault } from './secret-pull.ts';
import type { ChangeTurns, SecretStores } from './secret-stores.ts';

export type SecretSyncOptions = {
  readonly stores: SecretStores;
  readonly audit: SecretAudit;
  readonly turns: ChangeTurns;
  readonly clock: Clock;
  /** Notified of `secrets.vault_pull`. */
  readonly report: ProblemReporter;
};

/** When the mirror is brought up to date, and what the audit hears of it. What a pull does: `secret-pull.ts`. */
export class SecretSync {
  readonly #stores: SecretStores;
  readonly #audit: SecretAudit;
  readonly #turns: ChangeTurns;
  readonly #clock: Clock;
  readonly #report: ProblemReporter;
  #isSyncing = false;
  #seenProcessNames: ReadonlySet<string> = new Set();

  constructor(options: SecretSyncOptions) {
    this.#stores = options.stores;
    this.#audit = options.audit;
    this.#turns = options.turns;
    this.#clock = options.clock;
    this.#report = options.report;
  }

  /** Pulls from every backend. Errors: SYNC_IN_PROGRESS, and those of the local store and of the audit. */
  async sync(actor?: SecretActor): Promise<SyncResult> {
    if (this.#isSyncing) {
      throw new AppError('SYNC_IN_PROGRESS', 'secrets are being synchronised already');
    }
    this.#isSyncing = true;
    try {
      return await this.#turns.take(async () => {
        const { local, vault, process, host } = this.#stores;
        const seenProcessNames = this.#seenProcessNames;
        const nowMs = this.#clock.nowMs();
        const pulled = await pullAll({ local, vault, process, seenProcessNames, host, nowMs });
        this.#seenProcessNames = new Set(process.values.keys());
        await this.#audit.append(pulled.events.map((event) => ({ ...event, actor })));
        return pulled.result;
      });
    } finally {
      this.#isSyncing = false;
    }
  }

  /** Pulls the vault when it is another than at the last pull; asks no other machine. Never rejects. */
  async refreshVault(actor: SecretActor): Promise<void> {
    try {
      await this.#turns.take(async () => {
        const { local, vault } = this.#stores;
        const pulled = await pullStaleVault({ local, vault, nowMs: this.#clock.nowMs() });
        await this.#audit.append((pulled?.events ?? []).map((event) => ({ ...event, actor })));
        for (const problem of pulled?.backend.errors ?? []) {
          this.#report('secrets.vault_pull', new AppError('BACKEND_UNAVAILABLE', problem));
        }
      });
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      this.#report('secrets.vault_pull', cause);
    }
  }
}
