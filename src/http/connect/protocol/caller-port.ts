import type { DescMethod } from '@bufbuild/protobuf';
import { type ContextKey, createContextKey } from '@connectrpc/connect';
import type { Admit } from '../../../decoding/message-decoder.ts';
import type { AppError } from '../../../shared/app-error.ts';

/** Who makes a call, once let in. */
export type Admitted = {
  /** Whose bodies and unread answers count together. Its name is '' where nobody is known. */
  readonly caller: { readonly name: string };
  /** Aborts, with its reason, when the credential ends: then its streams end. */
  readonly revoked: AbortSignal;
};

/** Reads a header of the request, '' when absent. Only within the listener's handler. */
export type HeaderOf = (lowerCaseName: string) => string;

/**
 * What the adapter asks a service about its callers. It hands back what `admit` gave, so a service may put more into it than the
 * adapter knows.
 */
export interface CallerPort {
  /** Finds who calls in `HandlerContext.values` and `request.contextValues`. */
  readonly key: ContextKey<Admitted>;
  /** Says who calls, or why nobody is let in. Asked first of all; a promise where that takes a look-up. */
  admit(path: string, header: HeaderOf): Admitted | AppError | Promise<Admitted | AppError>;
  /** Says why every call of a method by this caller is refused, so that its body is not read; or null. */
  refusalAnywhere(path: string, admitted: Admitted): AppError | null;
  /** Gives what a large message passes before it is built; undefined where nothing asks. */
  admitOf(method: DescMethod, admitted: Admitted): Admit | undefined;
  /** Whether a method may leave something changed: then nothing is known of it once its deadline passes. */
  isChange(path: string): boolean;
}

const ANYBODY: Admitted = { caller: { name: '' }, revoked: new AbortController().signal };

/** Lets everybody in, and knows nobody. */
export const OPEN_CALLERS: CallerPort = {
  key: createContextKey(ANYBODY, { description: 'anybody' }),
  admit: () => ANYBODY,
  refusalAnywhere: () => null,
  admitOf: () => undefined,
  isChange: () => false,
};

/** Finds the request id in `HandlerContext.values` and `request.contextValues`. */
export const kRequestId = createContextKey<string>('', { description: 'request id' });
