import type { Client } from '@connectrpc/connect';
import type { TupleService } from '../../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { TupleUpdate_Op } from '../../../src/gen/workspace/v1/authz_service_pb.ts';
import { type EndOptions, type ShardOptions, type Tuple, tupleInit } from './questions.ts';
import { type RetryPolicy, withRetry } from './retry.ts';
import type { Session, ShardName } from './session.ts';

export type WriteOptions = ShardOptions &
  EndOptions & {
    /**
     * Makes the write again where it is not known to be done, under a key by which the service does it once. Its
     * price: such a write does not share a commit with others, which a busy service feels. Default false: an error
     * is the caller's to judge.
     */
    readonly retry?: boolean;
    /** Such a key of the caller's own, at most 64 characters; sets `retry`. */
    readonly idempotencyKey?: string;
    /** Refused, if the shard has changed since the write that this token names. */
    readonly unchangedSince?: string;
    /** Takes the place of the session that the caller runs in; `null`: none. */
    readonly session?: Session | null;
  };

/** What was written. */
export type Written = {
  /** Names the write: a later question with it sees the write. */
  readonly consistencyToken: string;
  /** The key had been seen, and nothing was written now. */
  readonly replayed: boolean;
};

type Updates = { readonly insert?: readonly Tuple[]; readonly delete?: readonly Tuple[] };

/** Writes of tuples, each in one call. */
export class TupleWrites {
  readonly #tuples: Client<typeof TupleService>;
  readonly #retry: RetryPolicy;

  constructor(tuples: Client<typeof TupleService>, retry: RetryPolicy) {
    this.#tuples = tuples;
    this.#retry = retry;
  }

  /** Errors: GatehouseError. */
  async change(
    updates: Updates,
    options: WriteOptions,
    shard: ShardName,
    session: Session | undefined,
  ): Promise<Written> {
    const { retry = false, unchangedSince, signal } = options;
    const idempotencyKey = options.idempotencyKey ?? (retry ? crypto.randomUUID() : '');
    const request = {
      projectId: shard.project,
      tenantId: shard.tenant,
      idempotencyKey,
      updates: [
        ...of(updates.delete, TupleUpdate_Op.DELETE),
        ...of(updates.insert, TupleUpdate_Op.INSERT),
      ],
      preconditions:
        unchangedSince === undefined
          ? []
          : [{ kind: { case: 'unchangedSince' as const, value: unchangedSince } }],
    };
    const { timeoutMs = Number.POSITIVE_INFINITY } = options;
    const endsAt = performance.now() + timeoutMs;
    const sent = session?.sent(shard);
    const ending = signal ?? new AbortController().signal;
    const policy = idempotencyKey === '' ? { ...this.#retry, attempts: 1 } : this.#retry;
    const { consistencyToken, replayed } = await withRetry(policy, ending, () =>
      this.#tuples.writeTuples(request, {
        signal: ending,
        ...(timeoutMs === Number.POSITIVE_INFINITY
          ? {}
          : { timeoutMs: Math.max(1, Math.ceil(endsAt - performance.now())) }),
      }),
    );
    if (sent !== undefined) session?.wrote(shard, sent, consistencyToken);
    return { consistencyToken, replayed };
  }
}

function of(tuples: readonly Tuple[] = [], op: TupleUpdate_Op): UpdateInit[] {
  return tuples.map((tuple, index) => ({ op, tuple: tupleInit(tuple, `tuples[${index}]`) }));
}

type UpdateInit = {
  readonly op: TupleUpdate_Op;
  readonly tuple: ReturnType<typeof tupleInit>;
};
