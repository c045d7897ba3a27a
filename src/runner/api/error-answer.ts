import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import type { RunnerReason } from '../model/reasons.ts';
import { jsonAnswer, type Answer } from './answer.ts';

/** Seconds after which a refused caller may try again. */
const RETRY_AFTER_SECONDS = '1';

type Mapping = { readonly status: number; readonly code?: string };

/**
 * The only mapping from reasons to statuses (design §2.0). The code is the reason in lower case
 * unless the entry says another one.
 */
const OF_RUNNER: Readonly<Record<RunnerReason, Mapping>> = {
  INVALID_JSON: { status: 400 },
  INVALID_REQUEST: { status: 400 },
  UNAUTHORIZED: { status: 401 },
  INVALID_SIGNATURE: { status: 401 },
  ORIGIN_NOT_ALLOWED: { status: 403 },
  ORIGIN_NEEDS_TOKEN: { status: 403 },
  NOT_FOUND: { status: 404 },
  RUN_NOT_FOUND: { status: 404 },
  WORKFLOW_NOT_FOUND: { status: 404 },
  ARTIFACT_NOT_FOUND: { status: 404 },
  SECRET_NOT_FOUND: { status: 404 },
  VARIABLE_NOT_FOUND: { status: 404 },
  METHOD_NOT_ALLOWED: { status: 405 },
  RUN_NOT_CANCELLABLE: { status: 409 },
  RUN_NOT_FINISHED: { status: 409 },
  RUN_NOT_WAITING: { status: 409 },
  MERGE_CONFLICT: { status: 409 },
  FORKS_REFUSED: { status: 403 },
  AMBIGUOUS_WORKFLOW: { status: 409 },
  DUPLICATE_ARTIFACT: { status: 409 },
  SYNC_IN_PROGRESS: { status: 409 },
  BACKEND_READ_ONLY: { status: 409 },
  LEASE_FAILED: { status: 409 },
  SYNC_DISABLED: { status: 412 },
  WEBHOOK_SECRET_MISSING: { status: 412 },
  REMOTE_MISSING: { status: 412 },
  UNSUPPORTED_MEDIA_TYPE: { status: 415 },
  RANGE_NOT_SATISFIABLE: { status: 416 },
  // The draft of the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07, §2.7).
  IDEMPOTENCY_CONFLICT: { status: 422 },
  INVALID_INPUTS: { status: 422 },
  INVALID_WORKFLOW: { status: 422 },
  INVALID_NAME: { status: 422 },
  INVALID_VALUE: { status: 422 },
  INVALID_REF: { status: 422 },
  EVENT_NOT_MATCHED: { status: 422 },
  NOTHING_TO_PUSH: { status: 422 },
  TOO_MANY_SUBSCRIBERS: { status: 429 },
  UPSTREAM_ERROR: { status: 502 },
  GIT_FAILED: { status: 500, code: 'internal' },
  BACKEND_UNAVAILABLE: { status: 503 },
  DISK_FULL: { status: 507 },
};

/** Reasons of all services that the runner's parts use; any other one would be a fault of ours. */
const OF_ALL: Partial<Record<SharedReason, Mapping>> = {
  HOST_NOT_ALLOWED: { status: 403 },
  FIELD_INVALID: { status: 400, code: 'invalid_request' },
  FIELD_REQUIRED: { status: 400, code: 'invalid_request' },
  BODY_TOO_LARGE: { status: 413 },
  BODY_MEMORY_EXHAUSTED: { status: 429 },
  BODY_IN_CRUMBS: { status: 400 },
  RESULT_TOO_LARGE: { status: 413 },
  QUEUE_FULL: { status: 429 },
  STORE_UNAVAILABLE: { status: 503, code: 'backend_unavailable' },
  SHUTTING_DOWN: { status: 503 },
  DEADLINE_EXCEEDED: { status: 504 },
};
const MAPPINGS: Readonly<Record<string, Mapping | undefined>> = { ...OF_ALL, ...OF_RUNNER };

/** What a failed call is answered, and whether it was a fault of ours, which belongs into the log. */
export type ApiErrorAnswer = {
  readonly answer: Answer;
  readonly code: string;
  readonly isFault: boolean;
};

/**
 * Any failure as `{"error":{code,message,details?,requestId}}`. An error that is not foreseen is
 * `internal`, without its text. `extra` are headers that go with the reason (Allow, WWW-Authenticate).
 */
export function errorAnswer(
  error: unknown,
  requestId: string,
  extra: readonly string[] = [],
): ApiErrorAnswer {
  const known = error instanceof AppError ? MAPPINGS[error.reason] : undefined;
  if (known === undefined || !(error instanceof AppError)) {
    const body = { error: { code: 'internal', message: 'internal error', requestId } };
    return { answer: jsonAnswer(500, body), code: 'internal', isFault: true };
  }
  const code = known.code ?? error.reason.toLowerCase();
  const hasDetails = Object.keys(error.metadata).length > 0;
  const details = hasDetails ? { details: error.metadata } : {};
  const headers = [...extra];
  if (known.status === 429 || known.status === 503)
    headers.push('retry-after', RETRY_AFTER_SECONDS);
  if (known.status === 416) {
    headers.push('content-range', `bytes */${error.metadata['size'] ?? '*'}`);
  }
  if (known.status === 401) headers.push('www-authenticate', 'Bearer');
  const body = { error: { code, message: error.message, ...details, requestId } };
  return { answer: jsonAnswer(known.status, body, headers), code, isFault: false };
}
