import type { ClientBase } from 'pg';
import { SEAT_NAMESPACE } from '../../../model/names.ts';
import type { ShardKey, SubjectColumns } from '../../../model/relation-tuple.ts';
import { textArray } from '../../postgres/array-literals.ts';

/** Tuples whose fields equal those that are not null. */
export type TupleMatch = {
  readonly namespace: string | null;
  readonly objectId: string | null;
  readonly relation: string | null;
  readonly subject: SubjectColumns | null;
};

const KEY = `t.namespace, t.object_id, t.relation,
  t.subject_namespace, t.subject_id, t.subject_relation`;

/**
 * The conditions of `match` on relation_tuple t, each after an `and`; `put` returns the text for a
 * value.
 */
export function matchText(match: TupleMatch, put: (value: string) => string): string {
  let text = '';
  const equal = (column: string, value: string | null): void => {
    if (value !== null) text += ` and t.${column} = ${put(value)}`;
  };
  equal('namespace', match.namespace);
  equal('object_id', match.objectId);
  equal('relation', match.relation);
  if (match.subject !== null) {
    equal('subject_namespace', match.subject[0]);
    equal('subject_id', match.subject[1]);
    equal('subject_relation', match.subject[2]);
  }
  return text;
}

/**
 * Whether a tuple that each of `matches` takes is stored and has not expired by the database's clock. Sees what the
 * statement's snapshot sees. One statement.
 */
export async function existMatches(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  matches: readonly TupleMatch[],
): Promise<readonly boolean[]> {
  const values = [projectId, tenantId];
  const put = (value: string): string => `$${values.push(value)}`;
  const found = matches.map(
    (match) => `exists (select from relation_tuple t
      where t.project_id = $1 and t.tenant_id = $2${matchText(match, put)}
        and (t.expires_at_us is null
          or t.expires_at_us > (extract(epoch from clock_timestamp()) * 1000000)::bigint))`,
  );
  const { rows } = await client.query<{ found: boolean[] }>(
    `select array[${found.join(', ')}]::boolean[] as found`,
    values,
  );
  return rows[0]?.found ?? [];
}

/** Reserved tuples are deleted by the methods that write them only. */
function deletable(
  { projectId, tenantId }: ShardKey,
  match: TupleMatch,
): { readonly text: string; readonly values: string[] } {
  const values = [projectId, tenantId, SEAT_NAMESPACE];
  const put = (value: string): string => `$${values.push(value)}`;
  const text = `from relation_tuple t
    where t.project_id = $1 and t.tenant_id = $2 and t.namespace <> $3${matchText(match, put)}`;
  return { text, values };
}

/** How many tuples a delete of these would delete. */
export async function countDeletable(
  client: ClientBase,
  shard: ShardKey,
  match: TupleMatch,
): Promise<number> {
  const { text, values } = deletable(shard, match);
  const { rows } = await client.query<{ n: string }>(`select count(*)::text as n ${text}`, values);
  return Number(rows[0]?.n ?? 0);
}

/** Opens the cursor `doomed` over the keys of what a delete of these would delete; inside a transaction. */
export async function declareDeletable(
  client: ClientBase,
  shard: ShardKey,
  match: TupleMatch,
): Promise<void> {
  const { text, values } = deletable(shard, match);
  await client.query(`declare doomed no scroll cursor for select ${KEY} ${text}`, values);
}

/** Columns of a tuple's key, in the order of the primary key. */
export type KeyRow = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject_namespace: string;
  readonly subject_id: string;
  readonly subject_relation: string;
};

/** The next keys of that cursor; fewer than asked at its end. */
export async function fetchDeletable(client: ClientBase, rows: number): Promise<readonly KeyRow[]> {
  return (await client.query<KeyRow>(`fetch forward ${Math.trunc(rows)} from doomed`)).rows;
}

export type DeletedKeys = {
  readonly epoch: number;
  /** Reached before, where nothing was deleted. */
  readonly revision: number;
  readonly deleted: number;
  readonly changes: string | null;
  readonly settingsVersion: number;
};

/**
 * Deletes these tuples, as far as no write after `untilRevision` touched them. The shard's row is locked by the caller's
 * transaction. O(keys).
 */
export async function deleteKeys(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  keys: readonly KeyRow[],
  untilRevision: number,
  commit: {
    readonly forkId: string;
    readonly commitId: string;
    readonly rpc: string;
    readonly actingUserId: string | null;
    readonly requestId: string;
  },
): Promise<DeletedKeys> {
  const column = (name: keyof KeyRow): string => textArray(keys.map((key) => key[name]));
  const { rows } = await client.query<{
    epoch: string;
    seq: string;
    deleted: string;
    changes: string | null;
    settings_version: string;
  }>({
    name: 'gatehouse_delete_keys',
    text: `select epoch::text as epoch, seq::text as seq, deleted::text as deleted, changes,
        settings_version::text as settings_version
      from gatehouse_delete_keys($1, $2, $3::bigint, $4, $5, $6, $7, $8, $9,
        $10::bigint, $11::uuid, $12, $13, $14)`,
    values: [
      projectId,
      tenantId,
      String(untilRevision),
      column('namespace'),
      column('object_id'),
      column('relation'),
      column('subject_namespace'),
      column('subject_id'),
      column('subject_relation'),
      commit.forkId,
      commit.commitId,
      commit.rpc,
      commit.actingUserId,
      commit.requestId,
    ],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('a function with results has a row');
  return {
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    deleted: Number(row.deleted),
    changes: row.changes,
    settingsVersion: Number(row.settings_version),
  };
}
