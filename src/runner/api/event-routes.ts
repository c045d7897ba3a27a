import { AppError } from '../../shared/app-error.ts';
import type { EventHub } from '../events/event-hub.ts';
import type { RunnerEventType } from '../model/events.ts';
import type { RunService } from '../model/ports.ts';
import { isRunId } from '../model/run.ts';
import { headerOf } from './call.ts';
import { queryText } from './query-fields.ts';
import type { ApiRoute } from './router.ts';

export const EVENTS_PATH = '/api/events';

/** Of RunnerEvent; what the stream itself makes cannot be filtered out. */
const TYPES: readonly RunnerEventType[] = [
  'run.started',
  'run.completed',
  'job.started',
  'job.completed',
  'step.started',
  'step.completed',
  'step.log',
];
/** Exactly as the contract writes them; the last one keeps proxies from collecting the stream. */
const HEADERS = [
  'cache-control',
  'no-cache',
  'connection',
  'keep-alive',
  'x-accel-buffering',
  'no',
];

/**
 * The event stream. `Last-Event-ID` wins over `?lastEventId=`, as a reconnecting browser sends both. Events have
 * the ids of runs; `runs` knows them by their numbers, too.
 */
export function eventRoutes(hub: EventHub, runs: Pick<RunService, 'get'>): readonly ApiRoute[] {
  return [
    {
      method: 'GET',
      pattern: EVENTS_PATH,
      handle: ({ query, headers, isHead }) => {
        const named = queryText(query, 'runId');
        if (named !== undefined && !isRunId(named)) throw wrong('runId', 'is no run id');
        const runId = named === undefined ? undefined : (runs.get(named)?.id ?? named);
        const filter = { runId, types: typesOf(queryText(query, 'types')) };
        const lastEventId =
          headerOf(headers, 'last-event-id') || (queryText(query, 'lastEventId') ?? '');
        if (!isHead) hub.reserve();
        return {
          kind: 'stream',
          contentType: 'text/event-stream',
          headers: HEADERS,
          take: (exchange, head) => hub.subscribe(exchange, head, filter, lastEventId),
        };
      },
    },
  ];
}

function typesOf(text: string | undefined): ReadonlySet<RunnerEventType> | undefined {
  if (text === undefined) return undefined;
  const types = text.split(',').map((name) => {
    const type = TYPES.find((known) => known === name.trim());
    if (type === undefined) throw wrong('types', `may hold ${TYPES.join(', ')}`);
    return type;
  });
  return new Set(types);
}

function wrong(field: string, problem: string): AppError {
  return new AppError('INVALID_REQUEST', `${field}: ${problem}`, { field });
}
