import type { HandlerContext } from '@connectrpc/connect';
import { kRequestId } from '../../http/connect/protocol/caller-port.ts';
import { type Credential, kCredential } from '../callers/caller.ts';

/** Read once: a getter that costs more than the clock itself. */
const { timeOrigin } = performance;

/** Now on the clock of deadlines, which all threads share: milliseconds with fractions. */
export function sharedNowMs(): number {
  return timeOrigin + performance.now();
}

export type CallDefaults = {
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
};

/** The call's deadline on the shared clock. */
export function deadlineOf(context: HandlerContext, { timeoutMsMax }: CallDefaults): number {
  return sharedNowMs() + Math.min(context.timeoutMs() ?? timeoutMsMax, timeoutMsMax);
}

/** The call's deadline on the shared clock, and whether the caller stated it: that of a read, as `ScopeRequest` has it. */
export function readTimeOf(
  context: HandlerContext,
  defaults: CallDefaults,
): { readonly deadlineMs: number; readonly isDeadlineStated: boolean } {
  const isDeadlineStated = context.timeoutMs() !== undefined;
  return { deadlineMs: deadlineOf(context, defaults), isDeadlineStated };
}

/** The request id that the adapter gave the call. */
export function requestIdOfCall(context: HandlerContext): string {
  return context.values.get(kRequestId);
}

/** The credential of the call. */
export function credentialOfCall(context: HandlerContext): Credential {
  return context.values.get(kCredential);
}

/** The name of who made the call; '' where nobody is known. */
export function callerOfCall(context: HandlerContext): string {
  return context.values.get(kCredential).caller.name;
}

/** The origin of the call: the request's id and the caller's name, '' where the caller is unknown. */
export function originOf(context: HandlerContext): {
  readonly requestId: string;
  readonly caller: string;
} {
  return { requestId: requestIdOfCall(context), caller: callerOfCall(context) };
}
