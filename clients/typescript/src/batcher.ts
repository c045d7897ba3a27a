import DataLoader from 'dataloader';
import type { BatchAnswers, BatchCall } from './batch-call.ts';
import { GatehouseError, errorFrom } from './errors.ts';
import { hedged } from './hedge.ts';
import { checkQuestion, type JsonObject, type Question, type QueryOptions } from './questions.ts';
import type { Reason } from './reasons.ts';
import { type RetryPolicy, withRetry } from './retry.ts';
import type { Session, ShardName } from './session.ts';

/** An answer. */
export type Decision = {
  readonly allowed: boolean;
  /** Denied since something could not be decided: an input that is missing, a condition that failed, the depth bound. */
  readonly undecided: boolean;
  /** The model has no such namespace or relation: mostly a slip. */
  readonly unknownRelation: boolean;
  /** Names the state that the answer is of. */
  readonly consistencyToken: string;
};

/** A question that waits, or was sent. */
type Item = {
  readonly question: Question;
  readonly context: JsonObject | undefined;
  /** When it fails, by `performance.now()`. */
  readonly endsAt: number;
  /** Nobody waits for it any more. */
  isOver: boolean;
  /** What it was sent with; undefined = not yet. */
  batch: Batch | undefined;
};

/** What was sent in one call. */
type Batch = {
  readonly items: readonly Item[];
  /** Ends the call when nobody waits for any of its questions. */
  readonly ending: AbortController;
};

/** What the questions of one batch have in common. */
type Group = {
  readonly options: QueryOptions;
  readonly shard: ShardName;
  readonly session: Session | undefined;
  readonly loader: DataLoader<Item, Decision>;
};

/** As many as the service takes by default. */
const ITEMS_MAX = 10_000;

/**
 * Makes one BatchCheck of the questions that are asked in one tick about the same shard, token and tuples. A Check
 * of its own costs the service ten times what an item of a batch does.
 */
export class CheckBatcher {
  readonly #send: BatchCall;
  readonly #retry: RetryPolicy;
  readonly #timeoutMs: number;
  readonly #groups = new Map<string, Group>();

  /** `timeoutMs` is the time of questions that state none; Infinity = none. */
  constructor(send: BatchCall, retry: RetryPolicy, timeoutMs: number) {
    this.#send = send;
    this.#retry = retry;
    this.#timeoutMs = timeoutMs;
  }

  /** Errors: GatehouseError, of this question or of its batch. */
  async ask(
    question: Question,
    options: QueryOptions,
    shard: ShardName,
    session: Session | undefined,
  ): Promise<Decision> {
    checkQuestion(question);
    const { signal, timeoutMs = this.#timeoutMs, context } = options;
    if (signal?.aborted === true) throw cancelled(signal);
    const group = this.#groupOf(options, shard, session);
    const endsAt = performance.now() + timeoutMs;
    const item: Item = { question, context, endsAt, isOver: false, batch: undefined };
    const answer = group.loader.load(item);
    // The batch ends no later than that.
    if (signal === undefined && options.timeoutMs === undefined) return answer;
    return untilEnd(item, answer, signal);
  }

  #groupOf(options: QueryOptions, shard: ShardName, session: Session | undefined): Group {
    const token = options.token ?? session?.sent(shard).token ?? '';
    const { contextualTuples = [], hedgeAfterMs, exact = false, modelVersion = 0 } = options;
    const parts = [
      shard.project,
      shard.tenant,
      token,
      hedgeAfterMs ?? 0,
      exact,
      modelVersion,
      contextualTuples,
    ];
    const key = `${session === undefined ? '' : this.#numberOf(session)} ${JSON.stringify(parts)}`;
    const waiting = this.#groups.get(key);
    if (waiting !== undefined) return waiting;
    const loader = new DataLoader<Item, Decision>(
      (items) => {
        this.#groups.delete(key);
        return this.#answer(group, items);
      },
      { cache: false, maxBatchSize: ITEMS_MAX },
    );
    const group: Group = { options, shard, session, loader };
    this.#groups.set(key, group);
    return group;
  }

  readonly #numbers = new WeakMap<Session, number>();
  #sessions = 0;

  /** Two sessions with the same token are two: what one has seen is not the other's. */
  #numberOf(session: Session): number {
    const number = this.#numbers.get(session) ?? (this.#sessions += 1);
    this.#numbers.set(session, number);
    return number;
  }

  async #answer(group: Group, items: readonly Item[]): Promise<(Decision | Error)[]> {
    const batch: Batch = { items, ending: new AbortController() };
    for (const item of items) item.batch = batch;
    // All of them ended in the tick in which they were asked.
    if (items.every(({ isOver }) => isOver)) return items.map(() => deadlineExceeded());
    const { shard, session, options } = group;
    const sent = session?.sent(shard);
    const token = options.token ?? sent?.token ?? '';
    let response;
    try {
      response = await this.#call(group, batch, token);
    } catch (thrown) {
      const error = errorFrom(thrown);
      const isOwn = options.token === undefined && token !== '';
      if (error.reason !== 'TOKEN_INVALID' || !isOwn) throw error;
      // Of a cookie, or of history that was lost: the latest state is at least as new.
      session?.drop(shard, token);
      response = await this.#call(group, batch, '');
    }
    const { consistencyToken, results } = response;
    if (sent !== undefined) session?.read(shard, sent, consistencyToken);
    return items.map((_, index) => {
      const result = results[index];
      if (result === undefined) return new GatehouseError('internal', 'an answer is missing');
      const { allowed, undecided, unknownRelation, error, errorReason } = result;
      if (error !== '') return itemError(error, errorReason as Reason | '');
      return { allowed, undecided, unknownRelation, consistencyToken };
    });
  }

  async #call(
    { options, shard }: Group,
    { items, ending }: Batch,
    token: string,
  ): Promise<BatchAnswers> {
    const endsAt = Math.max(...items.map((item) => item.endsAt));
    const isEndless = endsAt === Number.POSITIVE_INFINITY;
    const request = { shard, token, options, items };
    const call = (signal: AbortSignal): Promise<BatchAnswers> => {
      const left = Math.max(1, Math.ceil(endsAt - performance.now()));
      return this.#send(request, { signal, timeoutMs: isEndless ? undefined : left });
    };
    const { hedgeAfterMs } = options;
    const timer = isEndless
      ? undefined
      : setTimeout(() => ending.abort(deadlineExceeded()), endsAt - performance.now());
    try {
      return await withRetry(this.#retry, ending.signal, () =>
        hedgeAfterMs === undefined
          ? call(ending.signal)
          : hedged(hedgeAfterMs, ending.signal, call),
      );
    } catch (thrown) {
      const { reason } = ending.signal as { readonly reason: unknown };
      throw reason instanceof GatehouseError ? reason : thrown;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Ends one question; its batch goes on as long as anybody waits for another of its questions. */
function untilEnd(
  item: Item,
  answer: Promise<Decision>,
  signal: AbortSignal | undefined,
): Promise<Decision> {
  return new Promise((resolve, reject) => {
    const end = (error: unknown): void => {
      stop();
      item.isOver = true;
      if (item.batch?.items.every(({ isOver }) => isOver) === true) item.batch.ending.abort();
      reject(error);
    };
    const onAbort = (): void => end(cancelled(signal));
    const timer =
      item.endsAt === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => end(deadlineExceeded()), Math.max(0, item.endsAt - performance.now()));
    const stop = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    answer.then(
      (decision) => {
        stop();
        item.isOver = true;
        resolve(decision);
      },
      (error: unknown) => {
        stop();
        item.isOver = true;
        reject(error);
      },
    );
  });
}

/** What an item failed with; only what stands in the question itself, or in how much it reads, fails an item. */
function itemError(message: string, reason: Reason | ''): GatehouseError {
  const isExhausted = reason === 'BUDGET_EXHAUSTED';
  const code = isExhausted
    ? 'resource_exhausted'
    : reason === 'INTERNAL'
      ? 'internal'
      : 'invalid_argument';
  return new GatehouseError(code, message, { reason });
}

function cancelled(signal: AbortSignal | undefined): GatehouseError {
  return new GatehouseError('cancelled', 'the caller ended the call', { cause: signal?.reason });
}

function deadlineExceeded(): GatehouseError {
  return new GatehouseError('deadline_exceeded', 'the time of the call has passed');
}
