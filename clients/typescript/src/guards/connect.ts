import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from '@connectrpc/connect';
import { type GuardOptions, type Verdict, verdictOn } from './verdict.ts';

const CODES: Readonly<Record<Exclude<Verdict['status'], 200>, Code>> = {
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  500: Code.Internal,
  503: Code.Unavailable,
};

/**
 * An interceptor of a Connect server: a call goes on where its user holds what `needs` says of it. Of a stream the
 * question is asked once, when it begins.
 */
export function gatehouse(options: GuardOptions<UnaryRequest | StreamRequest>): Interceptor {
  return (next) => async (request) => {
    const verdict = await verdictOn(options, request);
    if (verdict.status !== 200) throw new ConnectError(verdict.message, CODES[verdict.status]);
    return next(request);
  };
}
