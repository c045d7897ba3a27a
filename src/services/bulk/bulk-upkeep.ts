import type { Pool } from 'pg';
import { type LoopReport, reportedRun } from '../../shared/loop-report.ts';
import type { SharedWork } from '../../store/postgres/shared-work.ts';
import {
  deleteImport,
  retireImport,
  selectOldImports,
} from '../../store/sql/writes/tuple-imports.ts';
import { deleteWriteKeys } from '../../store/sql/writes/tuple-write-keys.ts';
import { cleanImport } from './tuple-import.ts';

export type BulkUpkeepOptions = {
  readonly pool: Pool;
  /** Runs on one instance at a time. */
  readonly shared: SharedWork;
  /** How long keys of writes are kept: as long as changes. */
  readonly keyAgeMaxMs: number;
  /** How long an import is kept that no caller continues. */
  readonly importAgeMaxMs: number;
  readonly intervalMs: number;
  readonly report: LoopReport;
};

const KEYS_PER_STATEMENT = 5_000;
const IMPORTS_PER_RUN = 100;

/** Forgets keys of writes and imports when they are old enough. */
export class BulkUpkeep {
  readonly #options: BulkUpkeepOptions;
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: BulkUpkeepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      const { shared, report } = this.#options;
      this.#running ??= reportedRun(report, () =>
        shared.run('bulk', (lost) => this.run(AbortSignal.any([lost, this.#abort.signal]))),
      ).finally(() => (this.#running = undefined));
    }, this.#options.intervalMs).unref();
  }

  /** Resolves when no run is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#abort.abort();
    await this.#running;
  }

  /** One run, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { pool, keyAgeMaxMs, importAgeMaxMs } = this.#options;
    for (;;) {
      if (signal.aborted) return;
      const deleted = await deleteWriteKeys(pool, keyAgeMaxMs, KEYS_PER_STATEMENT);
      if (deleted < KEYS_PER_STATEMENT) break;
    }
    for (const importNo of await selectOldImports(pool, importAgeMaxMs, IMPORTS_PER_RUN)) {
      await retireImport(pool, importNo, null);
      await cleanImport(pool, importNo, signal);
      if (signal.aborted) return;
      await deleteImport(pool, importNo);
    }
  }
}
