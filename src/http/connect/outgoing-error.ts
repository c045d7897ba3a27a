import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues } from '@connectrpc/connect';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { kCallRecord } from './call-record.ts';
import { deadlineExceeded, internalError } from './protocol/call-errors.ts';
import { type CallerPort, kRequestId } from './protocol/caller-port.ts';
import type { ConnectErrors } from './protocol/connect-errors.ts';

/** Log entry of a failure of which the caller only sees "internal error". */
export type CallFailure = {
  readonly requestId: string;
  /** "workspace.v1.AuthzService/Check" */
  readonly rpc: string;
  /** Name of the caller; '' where it is not known. */
  readonly caller: string;
  readonly error: unknown;
};

export type ErrorPolicy = {
  /** Callback for each failure whose text the caller does not get to see. */
  readonly report: (failure: CallFailure) => void;
  /** Admits callers, and knows which methods change something. */
  readonly callers: CallerPort;
  /** How errors look on the wire. */
  readonly errors: ConnectErrors;
  /** Callback for every failed call that had a handler: its method, the failure, and the error that the caller gets. */
  readonly onFailure?: ((rpc: string, failure: unknown, shown: ConnectError) => void) | undefined;
};

/** The name of a method in logs and metrics: "workspace.v1.AuthzService/Check". */
export function rpcOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Turns any failure of a call into the error that leaves the process; unforeseen ones are reported. */
export function outgoingError(
  error: unknown,
  policy: ErrorPolicy,
  method: DescMethod,
  values: ContextValues,
): ConnectError {
  const shown = presented(error, policy, method, values);
  values.get(kCallRecord)?.failed(shown.code);
  policy.onFailure?.(rpcOf(method), error, shown);
  return shown;
}

function presented(
  error: unknown,
  policy: ErrorPolicy,
  method: DescMethod,
  values: ContextValues,
): ConnectError {
  const { errors } = policy;
  if (error instanceof ConnectError) {
    return isTimeout(error)
      ? errors.connectErrorFromAppError(deadlineExceeded())
      : withReason(error, errors);
  }
  const shown = internalError(error);
  if (shown.reason === 'INTERNAL' || !errors.isKnownReason(shown.reason)) {
    reportFailure(shown.cause ?? shown, policy, method, values);
  }
  return errors.connectErrorFromAppError(shown);
}

/** Whether Connect's own timer has ended a call. */
function isTimeout(error: ConnectError): boolean {
  return error.code === Code.DeadlineExceeded && error.rawMessage === 'the operation timed out';
}

/**
 * Reasons for the three codes that Connect's own code refuses with. The first is for an ill-formed header. The second is for
 * an encoding or a number of messages that the method does not take. The third, which gRPC demands, is for a compressed
 * message without its encoding. Each reason has its code, as everywhere.
 */
const REASON_OF_CODE: ReadonlyMap<Code, SharedReason> = new Map([
  [Code.InvalidArgument, 'BODY_MALFORMED'],
  [Code.Unimplemented, 'METHOD_UNIMPLEMENTED'],
  [Code.Internal, 'INTERNAL'],
]);

/**
 * Adds our details to an error that Connect's own code made; code, text and headers stay. An error with details, or with a
 * code that Connect does not choose by itself, was chosen by a handler and stays as it is. Changes and returns `error`. O(1).
 */
function withReason(error: ConnectError, errors: ConnectErrors): ConnectError {
  const reason = REASON_OF_CODE.get(error.code);
  if (reason !== undefined && error.details.length === 0) {
    const ours = new AppError<SharedReason>(reason, error.rawMessage);
    error.details = errors.connectErrorFromAppError(ours).details;
  }
  return error;
}

/** Reports to the log a failure of which the caller sees nothing. */
export function reportFailure(
  error: unknown,
  { report, callers }: ErrorPolicy,
  method: DescMethod,
  values: ContextValues | undefined,
): void {
  const requestId = values?.get(kRequestId) ?? '';
  const caller = values?.get(callers.key).caller.name ?? '';
  report({ requestId, rpc: rpcOf(method), caller, error });
}
