import type { ClientBase } from 'pg';

/** Arguments of gatehouse_write (migrations/0001_authorization.sql) between the instance and the hints: Postgres array literals. */
export type WriteGroupArguments = readonly (string | boolean)[];

export const WRITE_GROUP_ARGUMENTS = 41;

/** How a group is written; what is written does not depend on it. */
export type WriteGroupHints = {
  /** Nothing of what is inserted is expected to be stored. */
  readonly areNew: boolean;
  /** There are deletes whose effect the database decides, each of another identity, and nothing else: else it must be false. */
  readonly areLoneDeletes: boolean;
};

const NO_HINTS: WriteGroupHints = { areNew: false, areLoneDeletes: false };

/** Arguments of gatehouse_write_if (migrations/0007_expected_modes.sql) behind those. */
const MODE_ARGUMENTS = 5;
const COLUMNS =
  'was_applied, epochs, bases, offsets, effects, made_changes, settings, found_stored';
const TEXT = `select ${COLUMNS} from gatehouse_write(${parameters(WRITE_GROUP_ARGUMENTS + 2)})`;
const MODES_TEXT = `select ${COLUMNS}, refused_at from gatehouse_write_if(${parameters(
  WRITE_GROUP_ARGUMENTS + 2 + MODE_ARGUMENTS,
)})`;

function parameters(count: number): string {
  return `$1::uuid,${Array.from({ length: count }, (_, i) => `$${i + 2}`).join(',')}`;
}

export type WriteGroupRow = {
  /** True if a check was requested and the group's commit ids exist already: nothing was done. */
  readonly was_applied: boolean;
  /** Comma-separated by shard: epochs, and revisions before the group; null when was_applied. */
  readonly epochs: string | null;
  readonly bases: string | null;
  /** Comma-separated by request: offset in its shard, effect (1 or 0); null where the caller knew. */
  readonly offsets: string | null;
  readonly effects: string | null;
  /** Change rows by request that were made in the database; null if there are none. */
  readonly made_changes: readonly (string | null)[] | null;
  /** Comma-separated by shard: the version of the project's settings; null when was_applied. */
  readonly settings: string | null;
  /** Whether tuples that were expected to be new were stored already; null where nothing was inserted. */
  readonly found_stored?: boolean | null;
  /** Comma-separated by request: the position of the update that was not to be, or 0; null where none was refused. */
  readonly refused_at?: string | null;
};

/**
 * Applies a group of writes as `instanceId` (null: none is registered at all). Outside of a transaction
 * it commits by itself: one round trip. Errors: `isFenced` where it is not registered, `projectsWithOtherRules`
 * where the tuples were checked against outdated rules: nothing was applied.
 * With `modeValues` a request may be refused by what is stored, alone of its group: `refused_at`.
 * `timeoutMs` bounds the wait for the answer; afterwards the connection is useless.
 */
export async function writeGroup(
  client: ClientBase,
  instanceId: string | null,
  values: WriteGroupArguments,
  timeoutMs: number,
  { areNew, areLoneDeletes } = NO_HINTS,
  modeValues?: readonly string[],
): Promise<WriteGroupRow> {
  const { rows } = await client.query<WriteGroupRow>({
    name: modeValues === undefined ? 'gatehouse_write' : 'gatehouse_write_if',
    text: modeValues === undefined ? TEXT : MODES_TEXT,
    values: [instanceId, ...values, areNew, areLoneDeletes, ...(modeValues ?? [])],
    query_timeout: timeoutMs,
  } as { name: string; text: string; values: (string | boolean | null)[] });
  const row = rows[0];
  if (row === undefined) throw new Error('gatehouse_write returned no row');
  return row;
}
