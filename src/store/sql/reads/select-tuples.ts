import type { ClientBase, Pool } from 'pg';

/** Filters of ReadRelationTuples; null matches everything. */
export type TupleFilter = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly namespace: string | null;
  readonly objectId: string | null;
  readonly relation: string | null;
  readonly userId: string | null;
};

export type StoredTupleRow = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject_namespace: string;
  readonly subject_id: string;
  readonly subject_relation: string;
  readonly expires_at_us: string | null;
  readonly condition_name: string | null;
  readonly condition_params: string | null;
};

const COLUMNS = `t.namespace, t.object_id, t.relation,
  t.subject_namespace, t.subject_id, t.subject_relation,
  t.expires_at_us::text as expires_at_us, t.condition_name, t.condition_params`;
const ORDER = `t.namespace, t.object_id, t.relation,
  t.subject_namespace, t.subject_id, t.subject_relation`;

/** Text and values with only the conditions that a filter has, so that each gets its own plan. */
function matching(filter: TupleFilter): { text: string; name: string; values: string[] } {
  const values = [filter.projectId, filter.tenantId];
  let text = 't.project_id = $1 and t.tenant_id = $2';
  let name = '';
  const equal = (column: string, value: string | null): void => {
    if (value === null) return;
    values.push(value);
    text += ` and t.${column} = $${values.length}`;
    name += `_${column}`;
  };
  equal('namespace', filter.namespace);
  equal('object_id', filter.objectId);
  equal('relation', filter.relation);
  equal('subject_id', filter.userId);
  if (filter.userId !== null) text += ` and t.subject_namespace = '' and t.subject_relation = ''`;
  return { text, name, values };
}

export type FirstTuples = {
  readonly epoch: number;
  readonly revision: number;
  /** Version of the project's settings; 0: there is no such project. */
  readonly settingsVersion: number;
  readonly rows: readonly StoredTupleRow[];
};

type HeadRevisionAndTuple = {
  readonly epoch: string;
  readonly seq: string;
  readonly version: string;
} & {
  readonly [K in keyof StoredTupleRow]: StoredTupleRow[K] | null;
};

/** The shard's head revision and the first `rowsMax` tuples in order of identity, from one snapshot. */
export async function selectFirstTuples(
  client: ClientBase | Pool,
  filter: TupleFilter,
  rowsMax: number,
): Promise<FirstTuples> {
  const where = matching(filter);
  const limit = where.values.length + 1;
  const { rows } = await client.query<HeadRevisionAndTuple>({
    name: `select_first_tuples${where.name}`,
    text: `select coalesce(s.epoch, gatehouse_epoch())::text as epoch,
        coalesce(s.seq, 0)::text as seq, coalesce(p.version, 0)::text as version, t.*
      from (select 1) one
      left join project p on p.id = $1
      left join shard s on s.project_id = $1 and s.tenant_id = $2
      left join (
        select ${COLUMNS} from relation_tuple t where ${where.text}
        order by ${ORDER} limit $${limit}::int
      ) t on true
      order by ${ORDER}`,
    values: [...where.values, String(rowsMax)],
  });
  const headRevision = rows[0];
  if (headRevision === undefined) throw new Error('a left join of one row has a row');
  return {
    epoch: Number(headRevision.epoch),
    revision: Number(headRevision.seq),
    settingsVersion: Number(headRevision.version),
    rows: headRevision.namespace === null ? [] : (rows as unknown as StoredTupleRow[]),
  };
}

/** Opens a cursor over the tuples in order of identity; inside a transaction. */
export async function declareTupleCursor(
  client: ClientBase,
  filter: TupleFilter,
  rowsMax: number,
): Promise<void> {
  const where = matching(filter);
  await client.query(
    `declare tuples no scroll cursor for select ${COLUMNS} from relation_tuple t
     where ${where.text} order by ${ORDER} limit $${where.values.length + 1}::int`,
    [...where.values, String(rowsMax)],
  );
}

/** The next rows of the cursor; fewer than asked at its end. */
export async function fetchTuples(client: ClientBase, rows: number): Promise<StoredTupleRow[]> {
  return (await client.query<StoredTupleRow>(`fetch forward ${Math.trunc(rows)} from tuples`)).rows;
}
