import { createHash } from 'node:crypto';
import type { TextMask } from '../model/ports.ts';
import type { Conclusion, Job, WorkflowRun } from '../model/run.ts';
import { objectOf } from './cache-entry.ts';

export type DeploymentStatus = 'pending' | 'in_progress' | 'success' | 'failure' | 'cancelled';

/** Where the comment on the issue is, or why there is none yet. */
export type DeploymentMirror = {
  readonly issueNumber: number;
  readonly commentId?: number | undefined;
  readonly url?: string | undefined;
  readonly syncedAt?: string | undefined;
  readonly error?: string | undefined;
};

/** One line of `deployments.jsonl`, and what GET /api/deployments shows. */
export type DeploymentRecord = {
  readonly id: string;
  readonly runId: string;
  readonly workflow: string;
  readonly jobId: string;
  readonly status: DeploymentStatus;
  readonly environment: string;
  readonly ref: string;
  readonly sha: string;
  readonly url?: string | undefined;
  /** The jobs of the run as far as they were when the record was written. */
  readonly jobs: readonly {
    readonly id: string;
    readonly name: string;
    readonly conclusion?: Conclusion | undefined;
    readonly durationMs?: number | undefined;
  }[];
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly mirror?: DeploymentMirror | undefined;
};

export const DEPLOYMENT_STATUSES: readonly DeploymentStatus[] = [
  'pending',
  'in_progress',
  'success',
  'failure',
  'cancelled',
];
const ID = /^dpl-[0-9a-f]{24}$/;
/** Of a run with more, the job summary holds the first and the deploying one. */
const JOBS_MAX = 100;

/**
 * The same job of the same attempt deploying to the same environment is the same deployment, also
 * after a restart: its id follows from these.
 */
export function deploymentId(run: WorkflowRun, jobId: string, environment: string): string {
  const attempt = jobOf(run, jobId)?.attempt ?? run.attempt;
  const text = JSON.stringify([run.id, jobId, attempt, environment]);
  return `dpl-${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
}

/** The deployment as `run` says it now, what jobs can have made behind `mask`. `createdAt` and the mirror are those of `known`. */
export function recordOfRun(
  run: WorkflowRun,
  jobId: string,
  environment: string,
  status: DeploymentStatus,
  now: string,
  known: DeploymentRecord | undefined,
  mask: TextMask,
): DeploymentRecord {
  const kept = run.jobs.filter((job, index) => index < JOBS_MAX || job.id === jobId);
  return {
    id: deploymentId(run, jobId, environment),
    runId: run.id,
    workflow: run.workflow,
    jobId,
    status,
    environment: mask(environment),
    ref: run.trigger.ref,
    sha: run.trigger.sha,
    ...(known?.url === undefined ? {} : { url: known.url }),
    jobs: kept.map(({ id, name, conclusion, durationMs }) => ({
      id,
      name: mask(name),
      ...(conclusion === undefined ? {} : { conclusion }),
      ...(durationMs === undefined ? {} : { durationMs }),
    })),
    createdAt: known?.createdAt ?? now,
    updatedAt: now,
    ...(known?.mirror === undefined ? {} : { mirror: known.mirror }),
  };
}

/** What a deployment has become when its job has ended. */
export function statusOfEnd(run: WorkflowRun, jobId: string): DeploymentStatus {
  const conclusion = jobOf(run, jobId)?.conclusion ?? run.conclusion;
  // A deploying job that was skipped after all has deployed nothing.
  if (conclusion === 'skipped' || conclusion === undefined) return 'cancelled';
  return conclusion;
}

export function jobOf(run: WorkflowRun, jobId: string): Job | undefined {
  return run.jobs.find(({ id }) => id === jobId);
}

/** Whether nothing more is to come of it. */
export function isSettled(status: DeploymentStatus): boolean {
  return status !== 'pending' && status !== 'in_progress';
}

/**
 * What the lines of the ledger amount to: the last record of each id counts, an id keeps the place at
 * which it first appeared. Anything that is no record is passed to `onForeign` and left out.
 */
export function foldRecords(
  lines: Iterable<unknown>,
  onForeign: () => void,
): Map<string, DeploymentRecord> {
  const records = new Map<string, DeploymentRecord>();
  for (const line of lines) {
    if (isRecord(line)) records.set(line.id, line);
    else onForeign();
  }
  return records;
}

const TEXTS = ['runId', 'workflow', 'jobId', 'environment', 'ref', 'sha', 'createdAt', 'updatedAt'];

function isRecord(value: unknown): value is DeploymentRecord {
  const record = objectOf(value);
  if (record === undefined) return false;
  const { id, status, jobs } = record as Partial<Record<keyof DeploymentRecord, unknown>>;
  return (
    typeof id === 'string' &&
    ID.test(id) &&
    DEPLOYMENT_STATUSES.some((known) => known === status) &&
    Array.isArray(jobs) &&
    TEXTS.every((name) => typeof record[name] === 'string')
  );
}
