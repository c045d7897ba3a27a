import { createIncidentLog } from '../../observability/incident-log.ts';
import { eventLogOf, type Logger } from '../../observability/logger.ts';
import type { HotCounter } from '../../observability/metric-store.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { UserKey } from '../model/notification.ts';
import type { NotifyErrorReason } from '../model/reasons.ts';
import type { ListenerName } from './event-log.ts';

/**
 * Why a stream was not opened, from `connection_limit` on why a connection was closed unheard; and
 * `host_refused`, a request of any port that was addressed to another name.
 */
export const REFUSAL_REASONS = [
  'instance_limit',
  'tenant_limit',
  'user_limit',
  'token_invalid',
  'origin_not_allowed',
  'place_invalid',
  'streams_disabled',
  'shutting_down',
  'error',
  'connection_limit',
  'sniffing_limit',
  'descriptor_limit',
  'host_refused',
] as const;
type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** What refusals count. */
export interface RefusalMetrics {
  readonly refused: Readonly<Record<RefusalReason, HotCounter>>;
}

/** Notifies operators of what is refused at the door: a counter for each, lines at a bounded rate. */
export interface Refusals {
  /** A request for a stream is answered with `error`. `user`: whose, once its token was good. O(1). */
  stream(error: unknown, user: UserKey | undefined): void;
  /** What a listener reports connections that no request can be notified of. */
  incidentOf(listener: ListenerName): (event: string, detail: string) => void;
}

const REASON_OF_ERROR: Readonly<Record<string, RefusalReason | undefined>> = {
  STREAM_TOKEN_INVALID: 'token_invalid',
  ORIGIN_NOT_ALLOWED: 'origin_not_allowed',
  FIELD_INVALID: 'place_invalid',
  STREAMS_DISABLED: 'streams_disabled',
  SHUTTING_DOWN: 'shutting_down',
} satisfies Partial<Record<NotifyErrorReason, RefusalReason>>;
const INCIDENT_REASONS = [
  'connection_limit',
  'sniffing_limit',
  'descriptor_limit',
  'host_refused',
] as const;

/** Clients cause these at will: `stream_refused` is at most one line a second for each reason. */
export function createRefusals(
  logger: Logger,
  metrics: RefusalMetrics,
  clock: Pick<Clock, 'monotonicMs'>,
): Refusals {
  const log = eventLogOf(logger);
  const streamRefused = createIncidentLog(
    (level, reason, fields) => log(level, 'stream_refused', { reason, ...fields }),
    clock,
  );
  return {
    stream: (error, user) => {
      const reason = refusalReasonOf(error);
      metrics.refused[reason].add();
      const text = error instanceof AppError ? error.message : 'internal error';
      streamRefused(reason, user === undefined ? text : `${user.tenantId}/${user.userId}: ${text}`);
    },
    incidentOf: (listener) => {
      const incident = createIncidentLog(
        (level, event, fields) => log(level, event, { listener, ...fields }),
        clock,
      );
      return (event, detail) => {
        const reason = INCIDENT_REASONS.find((known) => known === event);
        if (reason !== undefined) metrics.refused[reason].add();
        incident(event, detail);
      };
    },
  };
}

function refusalReasonOf(error: unknown): RefusalReason {
  if (!(error instanceof AppError)) return 'error';
  if (error.reason !== 'STREAM_LIMIT') return REASON_OF_ERROR[error.reason] ?? 'error';
  const { limit } = error.metadata;
  if (limit === 'tenant') return 'tenant_limit';
  return limit === 'user' ? 'user_limit' : 'instance_limit';
}
