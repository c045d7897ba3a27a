import { Code, type ConnectError } from '@connectrpc/connect';
import { AppError } from '../../../shared/app-error.ts';
import type { ConnectReason } from './connect-reason.ts';

/**
 * Connect's protocol handlers refuse with three codes only: an ill-formed header or envelope, an
 * encoding or a number of messages that the method does not take, and a compressed message without
 * its encoding, for which gRPC demands `internal`. Each reason has its code, as everywhere.
 */
const REASON_OF_CODE: ReadonlyMap<Code, ConnectReason> = new Map([
  [Code.InvalidArgument, 'BODY_MALFORMED'],
  [Code.Unimplemented, 'METHOD_UNIMPLEMENTED'],
  [Code.Internal, 'INTERNAL'],
]);

/**
 * Gives an error that Connect's own code made the details that `present` gives to ours; code, text
 * and headers stay. One that has details, or a code that Connect does not choose by itself, was
 * chosen by a handler and stays as it is. Changes and returns `error`. O(1).
 */
export function withReason(
  error: ConnectError,
  present: (error: AppError) => ConnectError,
): ConnectError {
  const reason = REASON_OF_CODE.get(error.code);
  if (reason !== undefined && error.details.length === 0) {
    error.details = present(new AppError<ConnectReason>(reason, error.rawMessage)).details;
  }
  return error;
}
