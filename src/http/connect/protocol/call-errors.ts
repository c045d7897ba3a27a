import type { DescMessage } from '@bufbuild/protobuf';
import { AppError } from '../../../shared/app-error.ts';
import type { SharedReason } from '../../../shared/reasons.ts';

/** A message that could not be built. */
export type MalformedMessage = {
  /** Type of the message that was to be built. */
  readonly input: DescMessage;
  readonly isBinary: boolean;
  readonly bytes: Uint8Array;
};

/** Makes an error, in a service's own words, of what protobuf's readers threw about a message. */
export type MalformedError = (thrown: Error, message: MalformedMessage) => AppError;

/** The error of a call whose client has gone. */
export function cancelled(): AppError {
  return new AppError<SharedReason>('CANCELLED', 'the caller cancelled the request');
}

/** The error of a change whose deadline, set by the caller, has passed before its outcome was known. */
export function outcomeUnknown(): AppError {
  return new AppError<SharedReason>(
    'WRITE_OUTCOME_UNKNOWN',
    'the deadline of the request passed while the change was under way: it may be applied or not',
  );
}

/** The error of a call whose deadline, set by the caller, has passed. */
export function deadlineExceeded(): AppError {
  return new AppError<SharedReason>('DEADLINE_EXCEEDED', 'the deadline of the request has passed');
}

/** Returns an AppError as it is; anything else becomes INTERNAL with the original as its cause. */
export function internalError(cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  return new AppError<SharedReason>('INTERNAL', 'internal error', {}, cause);
}
