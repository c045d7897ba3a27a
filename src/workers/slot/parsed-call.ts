import type { ArgsMap, Method, ResultMap } from '../../protocol/messages.ts';
import type { QueryAnswer } from '../../protocol/queries.ts';
import type { Cancellable, ReadScope } from '../../protocol/shard-client.ts';
import { AppError } from '../../shared/app-error.ts';
import { ParsedRequest } from './pending-request.ts';
import type { ShardQueue } from './shard-queue.ts';
import type { SlotReason } from './slot-reason.ts';

/** What a parsed call asks, and of whom. */
export type ParsedCall<M extends Method> = {
  readonly requestId: number;
  readonly queue: ShardQueue;
  readonly scope: ReadScope;
  readonly method: M;
  readonly args: ArgsMap[M];
  readonly signal: AbortSignal | undefined;
  /** Gets each part of an answer that comes in parts. */
  readonly onPart: ((part: QueryAnswer) => void) | undefined;
};

/** The call that was cancelled before it was made. */
export function cancelled(): AppError {
  return new AppError<SlotReason>('CANCELLED', 'the call was cancelled');
}

/**
 * Hands a parsed request to `submit`, and resolves with its whole answer. Parts of a list are put together here. Errors: those of the
 * worker and of its slot; CANCELLED when `signal` is aborted.
 */
export function callWorker<M extends Method>(
  call: ParsedCall<M>,
  submit: (request: ParsedRequest) => Cancellable,
): Promise<ResultMap[M]> {
  const { promise, resolve, reject } = Promise.withResolvers<ResultMap[M]>();
  const { signal, onPart } = call;
  let parts: string[] | null = null;
  let cancellable: Cancellable | null = null;
  const onAbort = (): void => {
    cancellable?.cancel();
    reject(cancelled());
  };
  const request = new ParsedRequest<M>(
    call.requestId,
    call.queue,
    call.scope,
    call.method,
    call.args,
    (response) => {
      if (response.error !== undefined) return;
      if (response.method === 'listObjects' && (response.isPart || parts !== null)) {
        parts ??= [];
        for (const id of response.result) parts.push(id);
        if (response.isPart) return;
        // Of method listObjects, whose result is a list of ids.
        resolve(parts as readonly string[] as ResultMap[M]);
      } else if (response.method === 'query' && response.isPart) {
        onPart?.(response.result);
        return;
      } else {
        // The worker answers a request with the result of the method that it names.
        resolve(response.result as ResultMap[M]);
      }
      signal?.removeEventListener('abort', onAbort);
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
