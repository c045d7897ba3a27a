import type { ClientBase, Pool } from 'pg';

/** A store of OpenFGA's API, with the newest version of its project's model that has come into force. */
export type OpenFgaStoreRow = {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly created_by: string;
  readonly created_at_us: string;
  readonly updated_at_us: string;
  /** Comment of that version; null if there is none. */
  readonly comment: string | null;
};

/** The document of a model of OpenFGA, with the version of the project's model that it became. */
export type OpenFgaModelRow = {
  readonly id: string;
  readonly version: string;
  readonly document: string;
};

/** A stored tuple whose subject is an object, a userset or a typed wildcard. */
export type OpenFgaTupleRow = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject_namespace: string;
  readonly subject_id: string;
  readonly subject_relation: string;
  readonly condition_name: string | null;
  readonly condition_params: string | null;
  /** null: it is not known. */
  readonly written_at_us: string | null;
};

/** Which tuples; null matches everything. */
export type OpenFgaTupleFilter = {
  readonly projectId: string;
  readonly namespace: string | null;
  readonly objectId: string | null;
  readonly relation: string | null;
  readonly subject: readonly [namespace: string, id: string, relation: string] | null;
};

/** Prefix of the comment of a version that came from a model of OpenFGA; the model's id follows. */
export const OPENFGA_COMMENT = 'OpenFGA model ';

const COLUMNS = `s.id, s.project_id, s.name, s.created_by,
  (extract(epoch from s.created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from s.updated_at) * 1000000)::bigint::text as updated_at_us`;
const KEY = `t.namespace, t.object_id, t.relation,
  t.subject_namespace, t.subject_id, t.subject_relation`;

/** Adds a store, as `instanceId`. Errors: `isFenced` where that may not write. */
export async function insertOpenFgaStore(
  client: ClientBase | Pool,
  instanceId: string | null,
  store: {
    readonly id: string;
    readonly projectId: string;
    readonly name: string;
    readonly createdBy: string;
  },
): Promise<void> {
  await client.query(
    `insert into openfga_store (id, project_id, name, created_by)
     select $1, $2, $3, $4 from gatehouse_enter($5::uuid)`,
    [store.id, store.projectId, store.name, store.createdBy, instanceId],
  );
}

/** Marks a store as deleted. Errors: as insertOpenFgaStore. */
export async function deleteOpenFgaStore(
  client: ClientBase | Pool,
  instanceId: string | null,
  id: string,
): Promise<void> {
  await client.query(
    `update openfga_store set deleted_at = now() from gatehouse_enter($2::uuid)
     where id = $1 and deleted_at is null`,
    [id, instanceId],
  );
}

/** The store, or undefined if there is none or it was deleted. */
export async function selectOpenFgaStore(
  client: ClientBase | Pool,
  id: string,
): Promise<OpenFgaStoreRow | undefined> {
  const { rows } = await client.query<OpenFgaStoreRow>({
    name: 'select_openfga_store',
    text: `select ${COLUMNS}, (
        select v.comment from model_version v
        where v.project_id = s.project_id and v.state = 2 order by v.version desc limit 1
      ) as comment
      from openfga_store s where s.id = $1 and s.deleted_at is null`,
    values: [id],
  });
  return rows[0];
}

/** The stores that a caller made, by id, behind `after`; '' is the beginning, a `name` that is '' any. */
export async function selectOpenFgaStores(
  client: ClientBase | Pool,
  createdBy: string,
  name: string,
  after: string,
  rowsMax: number,
): Promise<readonly OpenFgaStoreRow[]> {
  const { rows } = await client.query<OpenFgaStoreRow>(
    `select ${COLUMNS}, null as comment from openfga_store s
     where s.created_by = $1 and s.deleted_at is null and s.id > $3 and ($2 = '' or s.name = $2)
     order by s.id limit $4::int`,
    [createdBy, name, after, rowsMax],
  );
  return rows;
}

/** Adds the document of a model. Errors: as insertOpenFgaStore. */
export async function insertOpenFgaModel(
  client: ClientBase | Pool,
  instanceId: string | null,
  model: { readonly storeId: string; readonly id: string; readonly document: string },
): Promise<void> {
  await client.query(
    `insert into openfga_model (store_id, id, document)
     select $1, $2, $3 from gatehouse_enter($4::uuid)`,
    [model.storeId, model.id, model.document, instanceId],
  );
}

/** Models of a store that have come into force, the newest first, below a version; 0 is the beginning, an `id` that is '' any. */
export async function selectOpenFgaModels(
  client: ClientBase | Pool,
  store: { readonly id: string; readonly projectId: string },
  id: string,
  below: number,
  rowsMax: number,
): Promise<readonly OpenFgaModelRow[]> {
  const { rows } = await client.query<OpenFgaModelRow>(
    `select m.id, v.version::text as version, m.document
     from model_version v
     join openfga_model m on m.store_id = $1 and v.comment = $6 || m.id
     where v.project_id = $2 and v.state = 2 and ($3 = '' or m.id = $3)
       and ($4::bigint = 0 or v.version < $4::bigint)
     order by v.version desc limit $5::int`,
    [store.id, store.projectId, id, below, rowsMax, OPENFGA_COMMENT],
  );
  return rows;
}

/** Tuples in order of their identity behind `after`, which has its six parts; null is the beginning. */
export async function selectOpenFgaTuples(
  client: ClientBase | Pool,
  filter: OpenFgaTupleFilter,
  after: readonly string[] | null,
  rowsMax: number,
): Promise<readonly OpenFgaTupleRow[]> {
  const values: unknown[] = [filter.projectId, rowsMax];
  const place = (value: unknown): string => `$${values.push(value)}`;
  const equal = (column: string, value: string | null): string =>
    value === null ? '' : ` and t.${column} = ${place(value)}`;
  const [subjectNamespace, subjectId, subjectRelation] = filter.subject ?? [null, null, null];
  const where = [
    equal('namespace', filter.namespace),
    equal('object_id', filter.objectId),
    equal('relation', filter.relation),
    equal('subject_namespace', subjectNamespace),
    equal('subject_id', subjectId),
    equal('subject_relation', subjectRelation),
    after === null ? '' : ` and (${KEY}) > (${after.map(place).join(', ')})`,
  ].join('');
  const { rows } = await client.query<OpenFgaTupleRow>(
    `select ${KEY}, t.condition_name, t.condition_params,
       (extract(epoch from t.written_at) * 1000000)::bigint::text as written_at_us
     from relation_tuple t
     where t.project_id = $1 and t.tenant_id = '' and t.subject_namespace <> ''
       and t.subject_id <> ''${where}
     order by ${KEY} limit $2::int`,
    values,
  );
  return rows;
}
