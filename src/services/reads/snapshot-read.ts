import type { Pool, PoolClient } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { isUnavailable, storeError } from '../../store/postgres/pg-errors.ts';
import { inTransaction } from '../../store/postgres/transaction.ts';
import { selectHeadRevisions } from '../../store/sql/reads/select-head-revisions.ts';
import type { HeadRevisions } from './head-revisions.ts';
import { ReadSlots } from './read-slots.ts';

/*
 * Reads of rows that have tuples. A caller may have seen a row that another instance wrote. So the
 * shard's head revision of the same snapshot is raised before the reply: no later Check on this
 * instance answers from an older state.
 */

export type SnapshotOptions = { readonly pool: Pool; readonly headRevisions: HeadRevisions };

/** Rows that are read, and turned into an answer, between two turns of the event loop. */
export const PAGE_ROWS = 256;
/** Rows of one list at most; beyond, RESULT_TOO_LARGE. */
export const LIST_ROWS_MAX = 1_000_000;

/** Runs `work` in one read-only snapshot. Errors: those of `work`; STORE_UNAVAILABLE. */
export async function readSnapshot<T>(
  { pool, headRevisions }: SnapshotOptions,
  shard: ShardKey,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const read = async (client: PoolClient): Promise<T> => {
    const found = await selectHeadRevisions(client, [shard]);
    const value = await work(client);
    for (const headRevision of found)
      headRevisions.raise(
        shard.projectId,
        shard.tenantId,
        headRevision.epoch,
        headRevision.revision,
      );
    return value;
  };
  return await inTransaction(pool, read, 'repeatable read, read only').catch((error: unknown) => {
    throw storeError(error);
  });
}

/** Statement that a long list is read from, with the caller's right to read it already checked. */
export type CursorQuery = { readonly text: string; readonly values: readonly unknown[] };

/**
 * Pages of at most PAGE_ROWS rows of the statement that `prepare` returns (its text ends with
 * `order by`), all from one snapshot: memory holds one page. `prepare` reads the same snapshot, and
 * may refuse; for a long list it is called twice. The connection is released when the last page was
 * taken, or the consumer stops. Long lists wait for each other, so that other work has connections
 * left. Errors: those of `prepare`; RESULT_TOO_LARGE beyond `rowsMax`; QUEUE_FULL;
 * STORE_UNAVAILABLE.
 */
export async function* streamSnapshot<Row extends object>(
  options: SnapshotOptions,
  shard: ShardKey,
  prepare: (client: PoolClient) => Promise<CursorQuery>,
  rowsMax: number = LIST_ROWS_MAX,
): AsyncGenerator<readonly Row[], void, undefined> {
  const first = await readSnapshot(options, shard, async (client) => {
    const { text, values } = await prepare(client);
    return (await client.query<Row>(`${text} limit ${PAGE_ROWS + 1}`, [...values])).rows;
  });
  if (first.length <= PAGE_ROWS) {
    if (first.length > 0) yield first;
    return;
  }
  const slots = slotsOf(options.pool);
  await slots.acquire();
  try {
    yield* streamPages<Row>(options, shard, prepare, rowsMax);
  } finally {
    slots.release();
  }
}

async function* streamPages<Row extends object>(
  { pool, headRevisions }: SnapshotOptions,
  shard: ShardKey,
  prepare: (client: PoolClient) => Promise<CursorQuery>,
  rowsMax: number,
): AsyncGenerator<readonly Row[], void, undefined> {
  let client: PoolClient | undefined;
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  try {
    client = await pool.connect();
    client.on('error', onError);
    await client.query('begin isolation level repeatable read, read only');
    const [headRevision] = await selectHeadRevisions(client, [shard]);
    const query = await prepare(client);
    await client.query(`declare list no scroll cursor for ${query.text}`, [...query.values]);
    if (headRevision !== undefined)
      headRevisions.raise(
        shard.projectId,
        shard.tenantId,
        headRevision.epoch,
        headRevision.revision,
      );
    for (let count = 0; ;) {
      const { rows } = await client.query<Row>(`fetch forward ${PAGE_ROWS} from list`);
      count += rows.length;
      if (count > rowsMax) {
        throw new AppError<AuthzReason>(
          'RESULT_TOO_LARGE',
          `the list has more than ${rowsMax} entries`,
          {
            limit: String(rowsMax),
          },
        );
      }
      if (rows.length > 0) yield rows;
      if (rows.length < PAGE_ROWS) return;
    }
  } catch (error) {
    if (isUnavailable(error)) broken ??= error as Error;
    throw storeError(error);
  } finally {
    // Nothing was written: a rollback ends it as well as a commit, and closes the cursor.
    if (client !== undefined) {
      if (broken === undefined) {
        await client.query('rollback').catch((failure: Error) => (broken = failure));
      }
      client.off('error', onError);
      client.release(broken);
    }
  }
}

const slotsByPool = new WeakMap<Pool, ReadSlots>();

function slotsOf(pool: Pool): ReadSlots {
  let slots = slotsByPool.get(pool);
  if (slots === undefined) {
    slots = new ReadSlots('lists', Math.max(1, Math.floor(pool.options.max / 4)));
    slotsByPool.set(pool, slots);
  }
  return slots;
}
