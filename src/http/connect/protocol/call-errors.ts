import type { DescMessage } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { AppError } from '../../../shared/app-error.ts';
import type { ConnectReason } from './connect-reason.ts';

/** A message that could not be built. */
export type MalformedMessage = {
  /** What it was to be; absent where Connect's own handlers do not say it. */
  readonly input: DescMessage | undefined;
  readonly isBinary: boolean;
  /** Absent where Connect decoded it. */
  readonly bytes?: Uint8Array | undefined;
};

/** Makes the error of what protobuf's readers threw about a message: a service's own words for it. */
export type MalformedError = (thrown: Error, message: MalformedMessage) => AppError;

/** Begins the text of what Connect throws about a binary message. */
const PARSE_BINARY = 'parse binary: ';

/**
 * Turns whatever a call failed with into an AppError, or returns it unchanged if it is a
 * ConnectError that a handler or the protocol chose itself (its text was written for the caller).
 * Anything unforeseen becomes INTERNAL with the original as its cause: report that one.
 */
export function foreseenError(
  error: unknown,
  service: { readonly readMaxBytes: number; readonly malformed: MalformedError },
  input?: DescMessage,
): AppError | ConnectError {
  if (error instanceof AppError) return error;
  if (!(error instanceof ConnectError)) return unforeseen(error);
  const text = error.rawMessage;
  if (error.code === Code.DeadlineExceeded && text === 'the operation timed out') {
    return deadlineExceeded();
  }
  if (error.code === Code.Internal && text.startsWith(PARSE_BINARY)) {
    return service.malformed(error, { input, isBinary: true });
  }
  if (error.code === Code.Internal && text.startsWith('serialize ')) return unforeseen(error);
  if (error.code === Code.InvalidArgument && text.startsWith('cannot decode ')) {
    return service.malformed(error, { input, isBinary: false });
  }
  if (error.code === Code.ResourceExhausted && text.includes('configured readMaxBytes')) {
    const metadata = { limit_bytes: String(service.readMaxBytes) };
    const problem = `the body is larger than ${service.readMaxBytes} bytes`;
    return new AppError<ConnectReason>('BODY_TOO_LARGE', problem, metadata, error);
  }
  return error;
}

/** The error of a change whose deadline, set by the caller, has passed before it said what came of it. */
export function outcomeUnknown(): AppError {
  return new AppError<ConnectReason>(
    'WRITE_OUTCOME_UNKNOWN',
    'the deadline of the request passed while the change was under way: it may be applied or not',
  );
}

/** The error of a call whose deadline, set by the caller, has passed. */
export function deadlineExceeded(): AppError {
  return new AppError<ConnectReason>('DEADLINE_EXCEEDED', 'the deadline of the request has passed');
}

/** An AppError as it is; anything else becomes INTERNAL with the original as its cause. */
export function internalError(cause: unknown): AppError {
  return cause instanceof AppError ? cause : unforeseen(cause);
}

function unforeseen(error: unknown): AppError {
  return new AppError<ConnectReason>('INTERNAL', 'internal error', {}, error);
}

/** What protobuf's reader said of a message, without what Connect puts before it. */
export function problemTextOf(thrown: Error): string {
  const text = thrown instanceof ConnectError ? thrown.rawMessage : thrown.message;
  return text.startsWith(PARSE_BINARY) ? text.slice(PARSE_BINARY.length) : text;
}
