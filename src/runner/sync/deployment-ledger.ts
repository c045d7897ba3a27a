import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { DeploymentRecorder, ProblemReporter, TextMask } from '../model/ports.ts';
import type { RunnerErrorReason } from '../model/reasons.ts';
import type { WorkflowRun } from '../model/run.ts';
import { openJsonlFile, type JsonlFile } from '../storage/jsonl-file.ts';
import {
  DEPLOYMENT_STATUSES,
  deploymentId,
  foldRecords,
  isSettled,
  jobOf,
  recordOfRun,
  statusOfEnd,
  type DeploymentMirror,
  type DeploymentRecord,
} from './deployment-record.ts';
import type { IssueMirror } from './issue-mirror.ts';
import type { SyncConfig } from './sync-config.ts';

/** A full file is set aside as `deployments.jsonl.1`…; what is older than all of them is forgotten. */
const ROTATE_BYTES = 16 * 1024 * 1024;
const KEEP_FILES = 3;
/** In memory; older ones stay in the files. */
const DEPLOYMENTS_MAX = 10_000;

export type DeploymentQuery = {
  readonly environment?: string | undefined;
  /** Errors when it is none: INVALID_REQUEST. */
  readonly status?: string | undefined;
  readonly limit?: number | undefined;
};

/** The deployments of this workspace: recorded as jobs notify them, shown newest first. */
export interface DeploymentLedger extends DeploymentRecorder {
  query(query: DeploymentQuery): readonly DeploymentRecord[];
  /** Ends deployments that were in progress in runs which no longer are, as `cancelled`. */
  settleOrphans(isRunActive: (runId: string) => boolean): void;
  /** Resolves when all that was recorded so far is on disk. For tests and shutdown. */
  flush(): Promise<void>;
  /** How many deployments still have to be mirrored. */
  pendingMirrors(): number;
  close(): Promise<void>;
}

export type DeploymentLedgerOptions = {
  /** `.runner`: the file is `deployments.jsonl` in it. */
  readonly stateDir: string;
  readonly config: () => SyncConfig;
  /** Writes a deployment's comment; undefined without credentials for the code host. */
  readonly mirror: IssueMirror | undefined;
  readonly clock: Clock;
  readonly report: ProblemReporter;
};

/**
 * Opens the ledger. A line torn by a crash is cut off and reported, the rest folded by id.
 * Errors: STORE_UNAVAILABLE, DISK_FULL. Cost: reads all of it, at most 64 MiB.
 */
export async function createDeploymentLedger(
  options: DeploymentLedgerOptions,
): Promise<DeploymentLedger> {
  const { stateDir, report } = options;
  const file = await openJsonlFile({
    path: join(stateDir, 'deployments.jsonl'),
    rotateBytes: ROTATE_BYTES,
    keepFiles: KEEP_FILES,
    report,
  });
  const lines: unknown[] = [];
  for await (const line of file.oldestFirst()) lines.push(line);
  const records = foldRecords(lines, () => {
    report('deployments.foreign_line', problem('STORE_UNAVAILABLE', 'a line is no deployment'));
  });
  const ledger = new FileDeploymentLedger(options, file, records);
  ledger.resumeMirrors();
  return ledger;
}

class FileDeploymentLedger implements DeploymentLedger {
  readonly #options: DeploymentLedgerOptions;
  readonly #file: JsonlFile;
  /** Oldest first. */
  readonly #records: Map<string, DeploymentRecord>;
  #writes: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(
    options: DeploymentLedgerOptions,
    file: JsonlFile,
    records: Map<string, DeploymentRecord>,
  ) {
    this.#options = options;
    this.#file = file;
    this.#records = records;
    this.#dropOldest();
  }

  isRecorded(run: WorkflowRun, jobId: string, environment: string): boolean {
    // What was begun is ended, also when the settings have changed meanwhile.
    const isBegun = this.#records.has(deploymentId(run, jobId, environment));
    return isBegun || this.#isWatched(environment);
  }

  deploymentStarted(run: WorkflowRun, jobId: string, environment: string, mask: TextMask): void {
    this.#safely(() => {
      if (!this.#isWatched(environment)) return;
      const status = jobOf(run, jobId)?.status === 'queued' ? 'pending' : 'in_progress';
      const known = this.#records.get(deploymentId(run, jobId, environment));
      this.#store(recordOfRun(run, jobId, environment, status, this.#now(), known, mask));
    });
  }

  deploymentEnded(
    run: WorkflowRun,
    jobId: string,
    environment: string,
    url: string | undefined,
    mask: TextMask,
  ): void {
    this.#safely(() => {
      if (!this.isRecorded(run, jobId, environment)) return;
      const known = this.#records.get(deploymentId(run, jobId, environment));
      const status = statusOfEnd(run, jobId);
      const record = recordOfRun(run, jobId, environment, status, this.#now(), known, mask);
      this.#store(url === undefined || url === '' ? record : { ...record, url: mask(url) });
    });
  }

  settleOrphans(isRunActive: (runId: string) => boolean): void {
    for (const record of this.#records.values()) {
      if (isSettled(record.status) || isRunActive(record.runId)) continue;
      this.#store({ ...record, status: 'cancelled', updatedAt: this.#now() });
    }
  }

  query(query: DeploymentQuery): readonly DeploymentRecord[] {
    const { environment, status, limit } = query;
    if (status !== undefined && !DEPLOYMENT_STATUSES.some((known) => known === status)) {
      throw new AppError(
        'INVALID_REQUEST',
        `status must be one of ${DEPLOYMENT_STATUSES.join(', ')}`,
        {
          field: 'status',
        },
      );
    }
    const found = [...this.#records.values()].filter(
      (record) =>
        (environment === undefined || record.environment === environment) &&
        (status === undefined || record.status === status),
    );
    // Sorting is stable: of two with the same time the later recorded one comes first.
    return found
      .toReversed()
      .sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0))
      .slice(0, limit);
  }

  async flush(): Promise<void> {
    let seen: unknown;
    do {
      seen = this.#writes;
      await seen;
    } while (seen !== this.#writes);
  }

  pendingMirrors(): number {
    return this.#options.mirror?.pending() ?? 0;
  }

  async close(): Promise<void> {
    await this.#options.mirror?.close();
    await this.flush();
    this.#isClosed = true;
    await this.#file.close();
  }

  /** Comments that were owed when the process ended. */
  resumeMirrors(): void {
    for (const record of this.#records.values()) {
      const { mirror } = record;
      const isBehind =
        mirror !== undefined &&
        (mirror.syncedAt === undefined || mirror.syncedAt < record.updatedAt);
      if (isBehind) this.#mirror(record);
    }
  }

  #isWatched(environment: string): boolean {
    const { enabled, environments } = this.#options.config().deploymentLog;
    return enabled && (environments.length === 0 || environments.includes(environment));
  }

  /** The recorder never throws: a job must not fail because of its record. */
  #safely(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.report('deployments.record_failed', error as Error);
    }
  }

  #store(record: DeploymentRecord): void {
    const { issueNumber, enabled } = this.#options.config().deploymentLog;
    const isMirrored = enabled && issueNumber > 0 && this.#options.mirror !== undefined;
    const withMirror: DeploymentRecord =
      isMirrored && record.mirror?.issueNumber !== issueNumber
        ? { ...record, mirror: { issueNumber } }
        : record;
    this.#put(withMirror);
    if (isMirrored) this.#mirror(withMirror);
  }

  #put(record: DeploymentRecord): void {
    if (this.#isClosed) throw problem('SHUTTING_DOWN', 'the ledger is closed');
    this.#records.set(record.id, record);
    this.#dropOldest();
    const write = this.#file.append(record).catch((error: unknown) => {
      this.#options.report('deployments.append_failed', error as Error);
    });
    this.#writes = Promise.all([this.#writes, write]);
  }

  #mirror(record: DeploymentRecord): void {
    this.#options.mirror?.show(record, (mirror) => this.#mirrored(record.id, mirror));
  }

  #mirrored(id: string, mirror: DeploymentMirror): void {
    this.#safely(() => {
      const current = this.#records.get(id);
      if (current !== undefined && !this.#isClosed) this.#put({ ...current, mirror });
    });
  }

  #dropOldest(): void {
    for (const id of this.#records.keys()) {
      if (this.#records.size <= DEPLOYMENTS_MAX) return;
      this.#records.delete(id);
    }
  }

  #now(): string {
    return new Date(this.#options.clock.nowMs()).toISOString();
  }
}

function problem(reason: RunnerErrorReason, text: string): AppError {
  return new AppError(reason, `deployments.jsonl: ${text}`);
}
