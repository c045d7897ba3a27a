import type { Pool } from 'pg';
import { SEAT_NAMESPACE, checkSku, checkTenantId, checkUserId } from '../../model/names.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { RelationTuple } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { isSeatRefusal } from '../../store/postgres/pg-errors.ts';
import {
  type SeatRow,
  deleteSeat,
  insertSeat,
  seatsOfPlan,
  selectSeatLimit,
  upsertSeatLimit,
} from '../../store/sql/organization/seats.ts';
import type { WriteMeta } from '../ports.ts';
import { type ShardOpening, openShard } from '../projects/management-call.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import { readSnapshot, streamSnapshot } from '../reads/snapshot-read.ts';
import type { TupleWrites } from '../writes/tuple-writes.ts';

export type SeatServiceOptions = ShardOpening & {
  readonly pool: Pool;
  readonly headRevisions: HeadRevisions;
  readonly writer: TupleWrites;
};

/** Requests, close to the wire. */
export type PlanRequest = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly sku: string;
};
export type SeatRequest = PlanRequest & { readonly userId: string };
/** Without a limit it is cleared: unlimited. */
export type SetSeatLimitRequest = PlanRequest & { readonly limit?: number | undefined };

export type SeatUsage = {
  readonly sku: string;
  readonly used: number;
  /** undefined is unlimited. */
  readonly limit: number | undefined;
};

export type SeatAssignment = {
  readonly sku: string;
  readonly userId: string;
  /** Microseconds since the epoch. */
  readonly assignedAtUs: bigint;
};

const HOLDER_RELATION = 'holder';
const SEATS_MAX = 2 ** 31 - 1;

/**
 * Seats of plans: rows with a tuple each, written nowhere else.
 *
 * S1 Seats in use never grow past the present limit, whatever instances assign at once: the
 *    database counts, under the lock of the plan's row. [seat-service.pg.test.ts]
 *    [test/services/operations.pg.test.ts]
 * S2 A user has a seat of a plan at most once, and a repeated assign consumes none.
 *    [seat-service.pg.test.ts]
 * S3 `seat:<sku>#holder@user` exists exactly while the row does; after DeprovisionUser not before
 *    the next assign. [seat-service.pg.test.ts]
 * S4 A lowered limit removes no seat. [seat-service.pg.test.ts]
 */
export class SeatService {
  readonly #options: SeatServiceOptions;

  constructor(options: SeatServiceOptions) {
    this.#options = options;
  }

  /**
   * SetSeatLimit: the limit now in force (undefined if none). Errors: FIELD_*, the project's, those of
   * TupleWrites.exclusive.
   */
  async setLimit(request: SetSeatLimitRequest, meta: WriteMeta): Promise<number | undefined> {
    checkPlan(request);
    const { sku, limit } = request;
    if (limit !== undefined && !(Number.isInteger(limit) && limit >= 0 && limit <= SEATS_MAX)) {
      throw fieldError('limit', `must be a whole number from 0 to ${SEATS_MAX}`);
    }
    const { writer } = this.#options;
    const shard = await openShard(this.#options, request);
    await writer.exclusive([shard], meta, ({ client }) =>
      upsertSeatLimit(client, shard, sku, limit ?? null),
    );
    return limit;
  }

  /** GetSeatUsage; nothing is used of an unknown plan. Errors: FIELD_*, the project's, STORE_UNAVAILABLE. */
  async usage(request: PlanRequest): Promise<SeatUsage> {
    checkPlan(request);
    const { sku } = request;
    const shard = await openShard(this.#options, request);
    const row = await readSnapshot(this.#options, shard, (client) =>
      selectSeatLimit(client, shard, sku),
    );
    return { sku, used: row?.used ?? 0, limit: row?.seats_max ?? undefined };
  }

  /**
   * AssignSeat: whether the user had the seat before; the tuple is written again even then. Errors:
   * FIELD_*, SEATS_EXHAUSTED, the project's, those of TupleWrites.exclusive.
   */
  async assign(request: SeatRequest, meta: WriteMeta): Promise<boolean> {
    checkSeat(request);
    const { sku, userId } = request;
    const { writer } = this.#options;
    const shard = await openShard(this.#options, request);
    return await writer.exclusive([shard], meta, async (transaction) => {
      const isNew = await insertSeat(transaction.client, shard, sku, userId).catch(
        (error: unknown) => {
          throw isSeatRefusal(error) ? seatsExhausted(sku, error) : error;
        },
      );
      await transaction.write(shard, [{ op: 'insert', tuple: tupleOf(sku, userId) }], meta);
      return !isNew;
    });
  }

  /** RevokeSeat; no error if there is none. Errors: FIELD_*, the project's, those of TupleWrites.exclusive. */
  async revoke(request: SeatRequest, meta: WriteMeta): Promise<void> {
    checkSeat(request);
    const { sku, userId } = request;
    const { writer } = this.#options;
    const shard = await openShard(this.#options, request);
    await writer.exclusive([shard], meta, async (transaction) => {
      if (!(await deleteSeat(transaction.client, shard, sku, userId))) return;
      await transaction.write(shard, [{ op: 'delete', tuple: tupleOf(sku, userId) }], meta);
    });
  }

  /**
   * ListSeats: by time of assignment, then user, page by page. Errors, at the first page: FIELD_*, the
   * project's; at any: RESULT_TOO_LARGE, STORE_UNAVAILABLE.
   */
  async *list(request: PlanRequest): AsyncGenerator<readonly SeatAssignment[], void, undefined> {
    checkPlan(request);
    const { sku } = request;
    const shard = await openShard(this.#options, request);
    const pages = streamSnapshot<SeatRow>(this.#options, shard, () =>
      Promise.resolve(seatsOfPlan(shard, sku)),
    );
    for await (const rows of pages) {
      yield rows.map((row) => ({
        sku,
        userId: row.user_id,
        assignedAtUs: BigInt(row.assigned_at_us),
      }));
    }
  }
}

function checkPlan(request: PlanRequest): void {
  checkTenantId('tenant_id', request.tenantId);
  checkSku('sku', request.sku);
}

function checkSeat(request: SeatRequest): void {
  checkPlan(request);
  checkUserId('user_id', request.userId);
}

function tupleOf(sku: string, userId: string): RelationTuple {
  return {
    namespace: SEAT_NAMESPACE,
    objectId: sku,
    relation: HOLDER_RELATION,
    subject: { kind: 'user', userId },
  };
}

function seatsExhausted(sku: string, cause: unknown): AppError {
  return new AppError<AuthzReason>(
    'SEATS_EXHAUSTED',
    `sku: all seats of ${sku} are taken`,
    { sku },
    cause,
  );
}
