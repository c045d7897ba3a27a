import type { DescMethod } from '@bufbuild/protobuf';
import { type ContextKey, createContextKey } from '@connectrpc/connect';
import type { Admit } from '../../../decoding/message-decoder.ts';
import type { AppError } from '../../../shared/app-error.ts';

/** A caller that was admitted. */
export type Admitted = {
  /** Caller whose bodies and unread answers count together. Its name is '' where it is not known. */
  readonly caller: { readonly name: string };
  /** Aborted, with its reason, when the credential ends: its streams end then. */
  readonly revoked: AbortSignal;
};

/** Reads a header of the request, '' when absent. Only within the listener's handler. */
export type HeaderOf = (lowerCaseName: string) => string;

/**
 * Port by which a service admits the callers of the adapter. The adapter passes back what `admit` returned, so a service may
 * put more into it than the adapter knows.
 */
export interface CallerPort {
  /** Context key of the caller in `HandlerContext.values` and `request.contextValues`. */
  readonly key: ContextKey<Admitted>;
  /**
   * Returns the caller, or the error for which the call is refused; a promise where that takes a lookup. Called before all
   * other checks.
   */
  admit(path: string, header: HeaderOf): Admitted | AppError | Promise<Admitted | AppError>;
  /** Returns the error if every call of a method by this caller is refused, so that its body is not read; else null. */
  refusalAnywhere(path: string, admitted: Admitted): AppError | null;
  /** Returns the check that a large message passes before it is built; undefined where there is none. */
  admitOf(method: DescMethod, admitted: Admitted): Admit | undefined;
  /** Whether a method may leave something changed: its outcome is unknown then once its deadline has passed. */
  isChange(path: string): boolean;
}

const ANYBODY: Admitted = { caller: { name: '' }, revoked: new AbortController().signal };

/** Admits every caller, and knows none. */
export const OPEN_CALLERS: CallerPort = {
  key: createContextKey(ANYBODY, { description: 'anybody' }),
  admit: () => ANYBODY,
  refusalAnywhere: () => null,
  admitOf: () => undefined,
  isChange: () => false,
};

/** Context key of the request id in `HandlerContext.values` and `request.contextValues`. */
export const kRequestId = createContextKey<string>('', { description: 'request id' });
