import type { SharedReason } from '../../shared/reasons.ts';

/**
 * Reasons of the workflow runner alone. On its wire a reason is spelled in lower case
 * (`run_not_found`); runner/api/error-answer.ts holds the only mapping to statuses.
 */
export type RunnerReason =
  | 'INVALID_JSON'
  | 'INVALID_REQUEST' // metadata.field names the field
  | 'UNAUTHORIZED'
  | 'INVALID_SIGNATURE'
  | 'ORIGIN_NOT_ALLOWED'
  | 'ORIGIN_NEEDS_TOKEN' // a page of another origin may change nothing without the API token
  | 'NOT_FOUND'
  | 'RUN_NOT_FOUND'
  | 'WORKFLOW_NOT_FOUND'
  | 'ARTIFACT_NOT_FOUND'
  | 'SECRET_NOT_FOUND'
  | 'VARIABLE_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'RUN_NOT_CANCELLABLE'
  | 'RUN_NOT_WAITING' // approval of a run that does not wait for it
  | 'MERGE_CONFLICT' // a pull request that cannot be merged with its base
  | 'FORKS_REFUSED' // runs of forks are switched off, or cannot be kept apart here
  | 'RUN_NOT_FINISHED' // rerun or removal of a run that is still going on
  | 'AMBIGUOUS_WORKFLOW'
  | 'DUPLICATE_ARTIFACT'
  | 'SYNC_IN_PROGRESS'
  | 'IDEMPOTENCY_CONFLICT' // the key was used with another body
  | 'BACKEND_READ_ONLY'
  | 'LEASE_FAILED' // the remote branch moved since it was last seen
  | 'SYNC_DISABLED'
  | 'WEBHOOK_SECRET_MISSING'
  | 'REMOTE_MISSING' // no remote or no credentials for the code host
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'RANGE_NOT_SATISFIABLE' // metadata.size: bytes of the whole
  | 'INVALID_INPUTS' // metadata: one entry an input
  | 'INVALID_WORKFLOW'
  | 'INVALID_NAME'
  | 'INVALID_VALUE'
  | 'INVALID_REF'
  | 'EVENT_NOT_MATCHED' // metadata.event, and metadata.filter where it is a filter
  | 'NOTHING_TO_PUSH'
  | 'GIT_FAILED' // metadata.command, metadata.exitCode; git's words are in the cause
  | 'TOO_MANY_SUBSCRIBERS'
  | 'UPSTREAM_ERROR'
  | 'BACKEND_UNAVAILABLE'
  | 'DISK_FULL'; // less than the minimum is free

export type RunnerErrorReason = RunnerReason | SharedReason;
