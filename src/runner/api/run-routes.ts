import { AppError } from '../../shared/app-error.ts';
import type { LogFollower } from '../events/log-follower.ts';
import type { RunService } from '../model/ports.ts';
import { isRunId, type RunStatus, type WorkflowRun } from '../model/run.ts';
import { emptyAnswer, etagOf, jsonAnswer, type Answer } from './answer.ts';
import { BodyFields } from './body-fields.ts';
import { headerOf, parameterOf, type ApiCall } from './call.ts';
import type { IdempotencyKeys, Started } from './idempotency.ts';
import { queryChoice, queryFlag, queryInteger, queryText } from './query-fields.ts';
import type { ApiRoute } from './router.ts';
import { parseStart } from './start-body.ts';

export type RunRoutesOptions = {
  readonly runs: RunService;
  readonly keys: IdempotencyKeys;
  readonly follower: LogFollower;
  /** Notified of every call that starts, changes or removes a run. */
  readonly audit: (
    action: string,
    fields: Readonly<Record<string, unknown>>,
    call: ApiCall,
  ) => void;
};

const STATUSES: readonly RunStatus[] = [
  'queued',
  'in_progress',
  'completed',
  'failed',
  'cancelled',
];
const LIST_LIMIT_DEFAULT = 100;
const LIST_LIMIT_MAX = 1_000;
const TAIL_MAX = 1_000_000;
const NAME_LENGTH_MAX = 1_000;
const WARNINGS_MAX = 10;
const TEXT_TYPE = 'text/plain; charset=utf-8';
const MARKDOWN_TYPE = 'text/markdown; charset=utf-8';

/** Runs: start, list, read, approve, cancel, rerun, remove. Artifacts are in artifact-routes.ts. */
export function runRoutes(options: RunRoutesOptions): readonly ApiRoute[] {
  const { runs } = options;
  const optionalJson = { kind: 'json', isRequired: false } as const;
  return [
    {
      method: 'POST',
      pattern: '/api/runs',
      body: { kind: 'json', isRequired: true },
      handle: (call) => start(options, call),
    },
    { method: 'GET', pattern: '/api/runs', handle: (call) => list(runs, call) },
    {
      method: 'GET',
      pattern: '/api/runs/:id',
      handle: async (call) => {
        const { id } = mustFind(runs, call);
        return jsonAnswer(200, await runs.getWithLogs(id), [], true);
      },
    },
    { method: 'GET', pattern: '/api/runs/:id/logs', handle: (call) => logs(options, call) },
    {
      method: 'GET',
      pattern: '/api/runs/:id/annotations',
      handle: (call) => jsonAnswer(200, runs.annotations(mustFind(runs, call).id), [], true),
    },
    {
      method: 'GET',
      pattern: '/api/runs/:id/summary',
      handle: (call) => {
        const body = runs.summary(mustFind(runs, call).id);
        const etag = etagOf(body);
        return { kind: 'whole', status: 200, contentType: MARKDOWN_TYPE, body, headers: [], etag };
      },
    },
    {
      method: 'POST',
      pattern: '/api/runs/:id/cancel',
      body: optionalJson,
      handle: (call) => cancel(options, call),
    },
    {
      method: 'POST',
      pattern: '/api/runs/:id/approve',
      body: optionalJson,
      handle: (call) => approve(options, call),
    },
    {
      method: 'POST',
      pattern: '/api/runs/:id/rerun',
      body: optionalJson,
      handle: (call) => rerun(options, call),
    },
    {
      method: 'DELETE',
      pattern: '/api/runs/:id',
      handle: async (call) => {
        const { id } = mustFind(runs, call);
        await runs.remove(id);
        options.audit('run.removed', { run_id: id }, call);
        return emptyAnswer(204);
      },
    },
  ];
}

/** The run that the path names. Errors: RUN_NOT_FOUND. */
export function mustFind(runs: RunService, call: ApiCall): WorkflowRun {
  const id = parameterOf(call, 'id');
  const run = isRunId(id) ? runs.get(id) : undefined;
  if (run === undefined) throw new AppError('RUN_NOT_FOUND', 'no run with this id');
  return run;
}

async function start({ runs, keys, audit }: RunRoutesOptions, call: ApiCall): Promise<Answer> {
  const request = parseStart(call.json);
  const begin = async (): Promise<Started> => {
    const { run, warnings } = await runs.start(request);
    audit('run.started', { run_id: run.id, workflow: run.fileName }, call);
    return { run, headers: warnings.slice(0, WARNINGS_MAX).flatMap(warningHeader) };
  };
  const key = headerOf(call.headers, 'idempotency-key');
  // The parsed form is compared: a retry may write its fields in another way.
  const { run, headers } =
    key === ''
      ? await begin()
      : await keys.once(key, JSON.stringify(request), begin, (id) => {
          const known = runs.get(id);
          return known && { run: known, headers: ['idempotent-replayed', 'true'] };
        });
  return jsonAnswer(201, run, ['location', `/api/runs/${run.id}`, ...headers]);
}

/** A warning as a header's value: text of workflows may hold anything. */
function warningHeader(warning: string): readonly string[] {
  const text = warning.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, 500);
  return ['x-runner-warning', text];
}

function list(runs: RunService, { query }: ApiCall): Answer {
  const before = queryText(query, 'before');
  if (before !== undefined && !isRunId(before)) {
    throw new AppError('INVALID_REQUEST', 'before: is no run id', { field: 'before' });
  }
  const isSummary = queryChoice(query, 'fields', ['summary', 'all']) === 'summary';
  const found = runs.list({
    status: queryChoice(query, 'status', STATUSES),
    workflow: queryText(query, 'workflow'),
    limit: queryInteger(query, 'limit', 1, LIST_LIMIT_MAX) ?? LIST_LIMIT_DEFAULT,
    before,
  });
  return jsonAnswer(200, isSummary ? found.map(withoutSteps) : found, [], true);
}

function withoutSteps(run: WorkflowRun): WorkflowRun {
  return { ...run, jobs: run.jobs.map((job) => ({ ...job, steps: [] })) };
}

function logs({ runs, follower }: RunRoutesOptions, call: ApiCall): Answer {
  const { query } = call;
  const run = mustFind(runs, call);
  const wanted = {
    jobId: queryText(query, 'job'),
    stepNumber: queryInteger(query, 'step', 1, 1_000_000),
    tail: queryInteger(query, 'tail', 0, TAIL_MAX),
    isNumbered: queryFlag(query, 'numbered'),
  };
  if (wanted.jobId !== undefined && !run.jobs.some(({ id }) => id === wanted.jobId)) {
    throw new AppError('INVALID_REQUEST', 'job: the run has no such job', { field: 'job' });
  }
  const isEnded = run.completedAt !== undefined;
  if ((queryFlag(query, 'follow') && !isEnded) || wanted.isNumbered) {
    const parts = follower.follow(run.id, wanted);
    return { kind: 'parts', contentType: TEXT_TYPE, parts, headers: ['cache-control', 'no-cache'] };
  }
  // A log that ended changes only with its run; hashing all of it would cost a second reading.
  const etag = isEnded
    ? etagOf(JSON.stringify([run.id, run.attempt, run.updatedAt, wanted]))
    : undefined;
  const parts = runs.logs(run.id, wanted);
  return { kind: 'parts', contentType: TEXT_TYPE, parts, headers: [], etag };
}

async function cancel({ runs, audit }: RunRoutesOptions, call: ApiCall): Promise<Answer> {
  new BodyFields(call.json).end();
  const { id } = mustFind(runs, call);
  const answer = await runs.cancel(id);
  audit('run.cancel_requested', { run_id: id }, call);
  return jsonAnswer(202, answer);
}

async function approve({ runs, audit }: RunRoutesOptions, call: ApiCall): Promise<Answer> {
  new BodyFields(call.json).end();
  const { id } = mustFind(runs, call);
  const run = await runs.approve(id);
  audit('run.approved', { run_id: id }, call);
  return jsonAnswer(200, run);
}

async function rerun({ runs, audit }: RunRoutesOptions, call: ApiCall): Promise<Answer> {
  const fields = new BodyFields(call.json);
  const which = { failedOnly: fields.flag('failedOnly'), job: fields.text('job', NAME_LENGTH_MAX) };
  fields.end();
  if (which.failedOnly === true && which.job !== undefined) {
    throw new AppError('INVALID_REQUEST', 'job: cannot be combined with failedOnly', {
      field: 'job',
    });
  }
  const { id } = mustFind(runs, call);
  const run = await runs.rerun(id, which);
  audit('run.rerun', { run_id: id, attempt: run.attempt }, call);
  return jsonAnswer(201, run, ['location', `/api/runs/${id}`]);
}
