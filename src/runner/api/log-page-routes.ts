import { AppError } from '../../shared/app-error.ts';
import type { LogFollower, LogPlace } from '../events/log-follower.ts';
import type { RunService } from '../model/ports.ts';
import { jsonAnswer } from './answer.ts';
import type { ApiCall } from './call.ts';
import { queryFlag, queryInteger, queryText } from './query-fields.ts';
import type { ApiRoute } from './router.ts';
import { mustFind } from './run-routes.ts';

/** Lines of one answer. */
const COUNT_MAX = 20_000;
const LINE_MAX = 1_000_000_000;
const STEP_MAX = 1_000_000;
const TEXT_CHARACTERS_MAX = 1_000;

/** Lines of a step by their numbers, and the search through all of them. */
export function logPageRoutes({
  runs,
  follower,
}: {
  readonly runs: RunService;
  readonly follower: LogFollower;
}): readonly ApiRoute[] {
  return [
    {
      method: 'GET',
      pattern: '/api/runs/:id/logs/lines',
      handle: async (call) => {
        const { query } = call;
        const first = queryInteger(query, 'first', 1, LINE_MAX) ?? 1;
        const count = queryInteger(query, 'count', 1, COUNT_MAX) ?? COUNT_MAX;
        return jsonAnswer(200, await follower.lines(placeOf(runs, call), first, count));
      },
    },
    {
      method: 'GET',
      pattern: '/api/runs/:id/logs/search',
      handle: async (call) => {
        const { query } = call;
        const text = queryText(query, 'text') ?? '';
        if (text === '' || text.length > TEXT_CHARACTERS_MAX) {
          const problem = `must have 1 to ${TEXT_CHARACTERS_MAX} characters`;
          throw new AppError('INVALID_REQUEST', `text: ${problem}`, { field: 'text' });
        }
        const from = queryInteger(query, 'from', 0, LINE_MAX) ?? 0;
        const isBackward = queryFlag(query, 'backward');
        const line = await follower.find(placeOf(runs, call), { text, from, isBackward });
        return jsonAnswer(200, { line: line ?? null });
      },
    },
  ];
}

/** Errors: RUN_NOT_FOUND, INVALID_REQUEST for a job or step that the run has not. */
function placeOf(runs: RunService, call: ApiCall): LogPlace {
  const run = mustFind(runs, call);
  const jobId = queryText(call.query, 'job');
  const job = run.jobs.find(({ id }) => id === jobId);
  if (job === undefined) {
    throw new AppError('INVALID_REQUEST', 'job: the run has no such job', { field: 'job' });
  }
  const number = queryInteger(call.query, 'step', 1, STEP_MAX);
  const step = job.steps.find((one) => one.number === number);
  // One that did not start may have lines of an earlier attempt on the disk.
  if (step?.startedAt === undefined) {
    const text = 'step: the job has no such step that has started';
    throw new AppError('INVALID_REQUEST', text, { field: 'step' });
  }
  return [run.id, job.id, step.number];
}
