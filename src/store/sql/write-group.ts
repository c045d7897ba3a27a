import type { ClientBase } from 'pg';

/** Arguments of gatehouse_write (migrations/0011) between the instance and the hints: Postgres array literals. */
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

const TEXT = `select was_applied, epochs, bases, offsets, effects, made_changes, settings, found_stored from gatehouse_write($1::uuid,${Array.from(
  { length: WRITE_GROUP_ARGUMENTS + 2 },
  (_, i) => `$${i + 2}`,
).join(',')})`;

export type WriteGroupRow = {
  /** True where a check was asked for and the group's commit ids are there already: nothing was done. */
  readonly was_applied: boolean;
  /** Comma-separated by shard: epochs, and seqs before the group; null when was_applied. */
  readonly epochs: string | null;
  readonly bases: string | null;
  /** Comma-separated by request: offset in its shard, effect (1 or 0); null where the caller knew. */
  readonly offsets: string | null;
  readonly effects: string | null;
  /** Change rows by request that were made in the database; null when there are none. */
  readonly made_changes: readonly (string | null)[] | null;
  /** Comma-separated by shard: the version of the project's settings; null when was_applied. */
  readonly settings: string | null;
  /** Whether tuples that were expected to be new were stored already; null where nothing was inserted. */
  readonly found_stored?: boolean | null;
};

/**
 * Applies a group of writes as `instanceId` (null: none is registered at all). Outside of a transaction
 * it commits by itself: one round trip. Errors: `isFenced` where it is not registered, `projectsWithOtherRules`
 * where the tuples were looked at by rules that are over: nothing was applied.
 * `timeoutMs` bounds the wait for the answer; afterwards the connection is useless.
 */
export async function writeGroup(
  client: ClientBase,
  instanceId: string | null,
  values: WriteGroupArguments,
  timeoutMs: number,
  { areNew, areLoneDeletes } = NO_HINTS,
): Promise<WriteGroupRow> {
  const { rows } = await client.query<WriteGroupRow>({
    name: 'gatehouse_write',
    text: TEXT,
    values: [instanceId, ...values, areNew, areLoneDeletes],
    query_timeout: timeoutMs,
  } as { name: string; text: string; values: (string | boolean | null)[] });
  const row = rows[0];
  if (row === undefined) throw new Error('gatehouse_write returned no row');
  return row;
}

const SPECIAL = /["\\]/;
const SPECIALS = /["\\]/g;

/** Literal of a text[]. Hot: one test per element where nothing needs escaping. */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{';
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string | null;
    if (i !== 0) text += ',';
    if (value === null) text += 'NULL';
    else text += SPECIAL.test(value) ? `"${value.replace(SPECIALS, '\\$&')}"` : `"${value}"`;
  }
  return `${text}}`;
}

/** Literal of an array of numbers, booleans (t, f), uuids or numerals. */
export function plainArray(values: readonly (string | number | null)[]): string {
  let text = '{';
  for (let i = 0; i < values.length; i++) {
    if (i !== 0) text += ',';
    text += values[i] ?? 'NULL';
  }
  return `${text}}`;
}
