import type { AuthzReason } from '../../model/reasons.ts';
import type { QueryAnswer, QueryCall } from '../../protocol/queries.ts';
import type { Cancellable, ReadScope } from '../../protocol/shard-client.ts';
import { AppError } from '../../shared/app-error.ts';
import { ParsedRequest } from '../queues/pending-request.ts';
import type { ShardQueue } from '../queues/shard-queue.ts';

/** A query with its scope. */
export type ParsedCall = {
  readonly requestId: number;
  readonly queue: ShardQueue;
  readonly scope: ReadScope;
  readonly query: QueryCall;
  readonly signal: AbortSignal | undefined;
  /** Gets each part of an answer that comes in parts. */
  readonly onPart: ((part: QueryAnswer) => void) | undefined;
};

/** The call that was cancelled before it was made. */
export function cancelled(): AppError {
  return new AppError<AuthzReason>('CANCELLED', 'the call was cancelled');
}

/**
 * Hands a query to `submit`, and resolves with its answer, or the last part of it. Errors: those of the
 * worker and of its slot; CANCELLED when `signal` is aborted.
 */
export function callWorker(
  call: ParsedCall,
  submit: (request: ParsedRequest) => Cancellable,
): Promise<QueryAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<QueryAnswer>();
  const { signal, onPart } = call;
  let cancellable: Cancellable | null = null;
  const onAbort = (): void => {
    cancellable?.cancel();
    reject(cancelled());
  };
  const request = new ParsedRequest(
    call.requestId,
    call.queue,
    call.scope,
    call.query,
    (answer, isPart) => {
      if (isPart) return onPart?.(answer);
      signal?.removeEventListener('abort', onAbort);
      resolve(answer);
    },
    (error) => {
      signal?.removeEventListener('abort', onAbort);
      reject(error);
    },
  );
  cancellable = submit(request);
  signal?.addEventListener('abort', onAbort, { once: true });
  return promise;
}
