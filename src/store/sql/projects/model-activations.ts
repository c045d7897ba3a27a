import type { ClientBase, Pool } from 'pg';
import { MODEL_CANCELLED, MODEL_PENDING, type StoredModelState } from './model-versions.ts';

/** Columns of `model_activation` with the state of its version, which is there also without a row. */
export type ActivationRow = {
  readonly version: string;
  readonly state: StoredModelState;
  readonly scanned: string;
  readonly refused: string;
  /** JSON: see the migration. */
  readonly examples: string;
  readonly dropped_namespaces: readonly string[];
};

/** An activation that is pending, with what it needs to continue. */
export type PendingActivation = {
  readonly projectId: string;
  readonly version: number;
  /** '' where the project waits for another one by now. */
  readonly modelJson: string;
  /** The model in force, which it is to follow on. */
  readonly inForceJson: string;
  readonly isForced: boolean;
  readonly isAwaited: boolean;
  /** Tenant and identity columns of the tuple that was examined last. */
  readonly lastSeen: readonly string[] | null;
  readonly scanned: number;
  readonly refused: number;
  readonly examples: string;
  /** Sorted: those of the model in force that it leaves out, of which tuples were found. */
  readonly droppedNamespaces: readonly string[];
  readonly createdBy: string;
  readonly rpc: string;
  readonly requestId: string;
};

/** A stored tuple by its columns: tenant, identity, expires_at_us, condition_name, condition_params. */
export type ScannedRow = readonly [
  tenantId: string,
  namespace: string,
  objectId: string,
  relation: string,
  subjectNamespace: string,
  subjectId: string,
  subjectRelation: string,
  expiresAtUs: string | null,
  conditionName: string | null,
  conditionParams: string | null,
];

const WRITERS = `l.virtualtransaction as id from pg_locks l
  where l.locktype = 'relation' and l.mode in ('RowShareLock', 'RowExclusiveLock')
    and l.relation in ('shard'::regclass, 'relation_tuple'::regclass)
    and l.database = (select d.oid from pg_database d where d.datname = current_database())`;

/** Columns that name a tuple within its project; `last_seen` holds them. */
export const SEEN_COLUMNS = 7;

/** Puts a model into force in a project whose row the transaction holds; what was pending is not, any more. */
export async function activateModel(
  client: ClientBase,
  projectId: string,
  modelJson: string,
  hasRules: boolean,
): Promise<void> {
  await client.query(
    `update project set model_json = $2, pending_version = 0, pending_json = '',
       write_rules = case when $3::boolean then version + 1 else 0 end,
       version = version + 1, updated_at = clock_timestamp()
     where id = $1`,
    [projectId, modelJson, hasRules],
  );
}

/** Has tuples fit a model besides the one in force, from the commit on. The transaction holds the project's row. */
export async function setPendingModel(
  client: ClientBase,
  activation: {
    readonly projectId: string;
    readonly version: number;
    readonly modelJson: string;
    readonly isForced: boolean;
    readonly createdBy: string;
    readonly rpc: string;
    readonly requestId: string;
  },
): Promise<void> {
  const { projectId, version, modelJson, isForced, createdBy, rpc, requestId } = activation;
  await client.query(
    `update project set pending_version = $2, pending_json = $3, write_rules = version + 1,
       version = version + 1, updated_at = clock_timestamp()
     where id = $1`,
    [projectId, version, modelJson],
  );
  await client.query(
    `insert into model_activation (project_id, version, state, is_forced, created_by, rpc, request_id)
     values ($1, $2, ${MODEL_PENDING}, $3, $4, $5, $6)`,
    [projectId, version, isForced, createdBy, rpc, requestId],
  );
}

/** Has tuples fit the model in force alone again. The transaction holds the project's row. */
export async function dropPendingModel(
  client: ClientBase,
  projectId: string,
  hasRules: boolean,
): Promise<void> {
  await client.query(
    `update project set pending_version = 0, pending_json = '',
       write_rules = case when $2::boolean then version + 1 else 0 end,
       version = version + 1, updated_at = clock_timestamp()
     where id = $1`,
    [projectId, hasRules],
  );
}

/** Ends a pending activation, and with it its version. The transaction holds the project's row. */
export async function endActivation(
  client: ClientBase,
  projectId: string,
  version: number,
  state: StoredModelState,
): Promise<void> {
  await client.query(
    `update model_activation set state = $3, ended_at = clock_timestamp()
     where project_id = $1 and version = $2 and state = ${MODEL_PENDING}`,
    [projectId, version, state],
  );
  await client.query(
    `update model_version set state = $3 where project_id = $1 and version = $2 and state = ${MODEL_PENDING}`,
    [projectId, version, state],
  );
}

/** Gives up what was pending when a newer version came; its examples name tuples, and go. */
export async function cancelActivations(client: ClientBase, projectId: string): Promise<void> {
  await client.query(
    `update model_activation set examples = '[]',
       state = case state when ${MODEL_PENDING} then ${MODEL_CANCELLED} else state end,
       ended_at = coalesce(ended_at, clock_timestamp())
     where project_id = $1 and (state = ${MODEL_PENDING} or examples <> '[]')`,
    [projectId],
  );
  await client.query(
    `update model_version set state = ${MODEL_CANCELLED} where project_id = $1 and state = ${MODEL_PENDING}`,
    [projectId],
  );
}

/** How far a version has come (0: the newest one), or undefined if there is none. */
export async function selectActivation(
  client: ClientBase | Pool,
  projectId: string,
  version: number,
): Promise<ActivationRow | undefined> {
  const { rows } = await client.query<ActivationRow>(
    `select v.version::text as version, v.state, coalesce(a.scanned, 0)::text as scanned,
       coalesce(a.refused, 0)::text as refused, coalesce(a.examples, '[]') as examples,
       coalesce(a.dropped_namespaces, '{}') as dropped_namespaces
     from model_version v
     left join model_activation a on a.project_id = v.project_id and a.version = v.version
     where v.project_id = $1 and ($2::bigint = 0 or v.version = $2::bigint)
     order by v.version desc limit 1`,
    [projectId, version],
  );
  return rows[0];
}

/** Projects with a pending activation whose data an instance of `region` may read; at most `rowsMax`. */
export async function selectPendingProjects(
  pool: Pool,
  region: string,
  rowsMax: number,
): Promise<readonly string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select a.project_id as id from model_activation a join project p on p.id = a.project_id
     where a.state = ${MODEL_PENDING} and p.data_region in ('', $1) order by a.started_at limit $2`,
    [region, rowsMax],
  );
  return rows.map(({ id }) => id);
}

/** The pending activation of a project, or undefined. */
export async function selectPendingActivation(
  client: ClientBase | Pool,
  projectId: string,
): Promise<PendingActivation | undefined> {
  const { rows } = await client.query<{
    version: string;
    model_json: string;
    is_forced: boolean;
    is_awaited: boolean;
    last_seen: string[] | null;
    scanned: string;
    refused: string;
    examples: string;
    dropped_namespaces: string[];
    in_force_json: string;
    created_by: string;
    rpc: string;
    request_id: string;
  }>(
    `select a.version::text as version,
       case when p.pending_version = a.version then p.pending_json else '' end as model_json,
       a.is_forced, a.is_awaited, a.last_seen, a.scanned::text as scanned, a.refused::text as refused,
       a.examples, a.dropped_namespaces, p.model_json as in_force_json, a.created_by, a.rpc, a.request_id
     from model_activation a join project p on p.id = a.project_id
     where a.project_id = $1 and a.state = ${MODEL_PENDING}`,
    [projectId],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  return {
    projectId,
    version: Number(row.version),
    modelJson: row.model_json,
    inForceJson: row.in_force_json,
    isForced: row.is_forced,
    isAwaited: row.is_awaited,
    lastSeen: row.last_seen,
    scanned: Number(row.scanned),
    refused: Number(row.refused),
    examples: row.examples,
    droppedNamespaces: row.dropped_namespaces,
    createdBy: row.created_by,
    rpc: row.rpc,
    requestId: row.request_id,
  };
}

/**
 * The transactions that may be writing tuples: each locks a shard's row before it compares rules, and by that its
 * table until it ends. Of this database only; those of others may take as long as they like.
 */
export async function selectWriters(client: ClientBase | Pool): Promise<readonly string[]> {
  const { rows } = await client.query<{ id: string }>(`select distinct ${WRITERS}`);
  return rows.map(({ id }) => id);
}

/** Whether none of these transactions continues. */
export async function haveEnded(
  client: ClientBase | Pool,
  writers: readonly string[],
): Promise<boolean> {
  if (writers.length === 0) return true;
  const { rows } = await client.query(
    `select ${WRITERS} and l.virtualtransaction = any ($1) limit 1`,
    [writers],
  );
  return rows.length === 0;
}

/** Notes that the transactions before it have ended. */
export async function setAwaited(
  client: ClientBase | Pool,
  { projectId, version }: PendingActivation,
): Promise<void> {
  await client.query(
    `update model_activation set is_awaited = true where project_id = $1 and version = $2`,
    [projectId, version],
  );
}

/** The next tuples of a project in the order of their keys, at most `rowsMax`. Cost: O(rows). */
export async function selectTuplesAfter(
  client: ClientBase | Pool,
  projectId: string,
  lastSeen: readonly string[] | null,
  rowsMax: number,
): Promise<readonly ScannedRow[]> {
  const key = `tenant_id, namespace, object_id, relation, subject_namespace, subject_id, subject_relation`;
  const after =
    lastSeen === null ? '' : `and (${key}) > (${lastSeen.map((_, i) => `$${i + 3}`).join(', ')})`;
  const { rows } = await client.query<string[]>({
    text: `select ${key}, expires_at_us::text, condition_name, condition_params from relation_tuple
      where project_id = $1 ${after} order by project_id, ${key} limit $2`,
    values: [projectId, rowsMax, ...(lastSeen ?? [])],
    rowMode: 'array',
  });
  return rows as unknown as readonly ScannedRow[];
}

/**
 * Notes the progress of an examination. False: another instance has gone on from `before` already,
 * or it was ended.
 */
export async function saveProgress(
  client: ClientBase | Pool,
  before: PendingActivation,
  after: Pick<
    PendingActivation,
    'lastSeen' | 'scanned' | 'refused' | 'examples' | 'droppedNamespaces'
  >,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update model_activation set last_seen = $4::text[], scanned = $5, refused = $6, examples = $7,
       dropped_namespaces = $8::text[]
     where project_id = $1 and version = $2 and state = ${MODEL_PENDING} and scanned = $3`,
    [
      before.projectId,
      before.version,
      before.scanned,
      after.lastSeen,
      after.scanned,
      after.refused,
      after.examples,
      after.droppedNamespaces,
    ],
  );
  return rowCount === 1;
}
