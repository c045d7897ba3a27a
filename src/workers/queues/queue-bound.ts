import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** Requests queued or in flight, and their bytes, of one worker. */
export type SlotLimits = {
  readonly queueDepthMax: number;
  readonly queueBytesMax: number;
};

/** The bounds of the queues before the workers. */
export const QUEUE_BOUNDS = [
  'worker_requests',
  'worker_bytes',
  'tenant_requests',
  'tenant_bytes',
  'deadline',
] as const;
export type QueueBound = (typeof QUEUE_BOUNDS)[number];

const MESSAGES: Readonly<Record<QueueBound, string>> = {
  worker_requests: 'the queue of this decision worker is full',
  worker_bytes: 'the requests that wait for this decision worker hold as many bytes as they may',
  tenant_requests: 'the queue of this tenant is full',
  tenant_bytes: 'the requests of this tenant that wait hold as many bytes as they may',
  deadline: 'the queue of this tenant is longer than the time that the request has',
};

/** The QUEUE_FULL of a request that exceeds a bound; its metadata name the bound. */
export function refusalOf(bound: QueueBound): AppError {
  return new AppError<AuthzReason>('QUEUE_FULL', MESSAGES[bound], { bound });
}
