import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues, type Interceptor } from '@connectrpc/connect';
import { AppError } from '../../shared/app-error.ts';
import { kCallRecord } from './call-record.ts';
import { cancelled } from './messages/adapter-body.ts';
import { kRequestId } from './protocol/adapter-request-id.ts';
import {
  deadlineExceeded,
  foreseenError,
  type MalformedError,
  outcomeUnknown,
} from './protocol/call-errors.ts';
import type { CallerPort } from './protocol/caller-port.ts';
import type { ConnectErrors } from './protocol/connect-errors.ts';
import { withReason } from './protocol/protocol-error.ts';

/** What the log learns of a failure that the caller is only reported "internal error" about. */
export type CallFailure = {
  readonly requestId: string;
  /** "workspace.v1.AuthzService/Check" */
  readonly rpc: string;
  /** Who called; '' where nobody is known. */
  readonly caller: string;
  readonly error: unknown;
};

export type ErrorPolicy = {
  readonly readMaxBytes: number;
  readonly report: (failure: CallFailure) => void;
  readonly callers: CallerPort;
  readonly errors: ConnectErrors;
  readonly malformed: MalformedError;
  /** Notified of every failed call: its method, what failed, and the error that the caller gets. */
  readonly onFailure?: ((rpc: string, failure: unknown, shown: ConnectError) => void) | undefined;
};

/** The name of a method in logs and metrics: "workspace.v1.AuthzService/Check". */
export function rpcOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Any failure of a call as the error that leaves the process; unforeseen ones are reported. */
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
  const foreseen = foreseenError(error, policy, method.input);
  const present = errors.connectErrorFromAppError;
  if (foreseen instanceof ConnectError) return withReason(foreseen, present);
  if (foreseen.reason === 'INTERNAL' || !errors.isKnownReason(foreseen.reason)) {
    reportFailure(foreseen.cause ?? foreseen, policy, method, values);
  }
  return present(foreseen);
}

/** Notifies the log of a failure that the caller learns nothing of. */
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

/** A change that is notified its own outcome by then is answered with it, although its deadline has passed. */
const LAST_WORD_MS = 150;

/**
 * Settles as `work` does, or rejects as soon as `signal` is aborted, so that a handler that does not
 * listen to its signal cannot hold an answer back beyond the deadline. Of a change "the deadline has passed" would
 * say that nothing was done: once LAST_WORD_MS more have passed it rejects with WRITE_OUTCOME_UNKNOWN.
 */
export function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  mayChange = false,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      const reason = abortReason(signal);
      if (!mayChange || !isDeadline(reason)) reject(reason);
      else timer = setTimeout(() => reject(outcomeUnknown()), LAST_WORD_MS);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    // Removed before the result goes on: the call's own end aborts its signal, too.
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/**
 * Interceptor around every streamed or enveloped call: maps errors of decoding, of the handler and
 * of the deadline in one place, and ends long-lived streams when `drainSignal` is aborted, and streams of any kind
 * when the credential that opened them is revoked.
 */
export function createGuard(
  policy: ErrorPolicy,
  drainSignal: AbortSignal | undefined,
): Interceptor {
  return (next) => async (request) => {
    const { method, contextValues } = request;
    const { revoked } = contextValues.get(policy.callers.key);
    const mapped = (error: unknown): ConnectError =>
      outgoingError(error, policy, method, contextValues);
    const { methodKind } = method;
    const isStream = methodKind !== 'unary';
    const held = isStream ? AbortSignal.any([request.signal, revoked]) : request.signal;
    const mayChange = policy.callers.isChange(`/${rpcOf(method)}`);
    try {
      const response = await untilAborted(next(request), held, mayChange);
      if (!response.stream) return response;
      const isLongLived = methodKind === 'server_streaming' || methodKind === 'bidi_streaming';
      const signal =
        drainSignal === undefined || !isLongLived ? held : AbortSignal.any([held, drainSignal]);
      return { ...response, message: guarded(response.message, signal, mayChange, mapped) };
    } catch (error) {
      throw mapped(error);
    }
  };
}

async function* guarded<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  mayChange: boolean,
  mapped: (error: unknown) => ConnectError,
): AsyncGenerator<T> {
  const iterator = messages[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await untilAborted(iterator.next(), signal, mayChange);
      if (step.done === true) return;
      yield step.value;
    }
  } catch (error) {
    throw mapped(error);
  } finally {
    // Not awaited: a handler that is stuck would never release.
    iterator.return?.().catch(ignoreLateFailure);
  }
}

function abortReason(signal: AbortSignal): unknown {
  const reason: unknown = signal.reason;
  if (reason instanceof AppError || reason instanceof ConnectError) return reason;
  if (reason instanceof Error && reason.name === 'TimeoutError') return deadlineExceeded();
  return cancelled();
}

function isDeadline(reason: unknown): boolean {
  return reason instanceof ConnectError
    ? reason.code === Code.DeadlineExceeded
    : reason instanceof AppError && reason.reason === 'DEADLINE_EXCEEDED';
}

function ignoreLateFailure(): void {
  // The answer was given when the signal was aborted; what the work says after that has no reader.
}
