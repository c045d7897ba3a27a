import type { ClientBase, Pool } from 'pg';
import { PROMPT_READ_TIMEOUT_MS } from '../../postgres/pool.ts';

/** Numbers of `model_version.state`: those of the proto's ModelActivationState. */
export const MODEL_PENDING = 1 as const;
export const MODEL_ACTIVE = 2 as const;
export const MODEL_REFUSED = 3 as const;
export const MODEL_CANCELLED = 4 as const;
export type StoredModelState =
  | typeof MODEL_PENDING
  | typeof MODEL_ACTIVE
  | typeof MODEL_REFUSED
  | typeof MODEL_CANCELLED;

/** Columns of `model_version` besides its texts. */
export type ModelVersionRow = {
  readonly version: string;
  readonly model_sha256: string;
  readonly created_at_us: string;
  readonly created_by: string;
  readonly rpc: string;
  readonly request_id: string;
  readonly comment: string;
  readonly rolled_back_to: string;
  readonly forced: boolean;
  readonly state: StoredModelState;
  /** Taken from its activation. */
  readonly dropped_namespaces: readonly string[];
  /** The newest active version: the one in force; '0' where there is none. */
  readonly version_in_force: string;
};

/** One version with its texts. */
export type ModelTextRow = ModelVersionRow & {
  readonly model_json: string;
  /** '' where it was not written in the readable form. */
  readonly model_gate: string;
};

/** Fields of a new version. */
export type NewModelVersion = {
  readonly modelJson: string;
  readonly modelGate: string;
  readonly author: {
    readonly createdBy: string;
    readonly rpc: string;
    readonly requestId: string;
  };
  readonly comment: string;
  /** 0 if none. */
  readonly rolledBackTo: number;
  readonly force: boolean;
};

const IN_FORCE = `coalesce((select max(a.version) from model_version a
  where a.project_id = v.project_id and a.state = ${MODEL_ACTIVE}), 0)`;
const COLUMNS = `v.version::text as version, v.model_sha256,
  (extract(epoch from v.created_at) * 1000000)::bigint::text as created_at_us, v.created_by, v.rpc,
  v.request_id, v.comment, v.rolled_back_to::text as rolled_back_to, v.forced, v.state,
  coalesce((select w.dropped_namespaces from model_activation w
    where w.project_id = v.project_id and w.version = v.version), '{}') as dropped_namespaces,
  ${IN_FORCE}::text as version_in_force`;

/**
 * Has the version in force of a project ignore stored tuples that it does not admit, from the commit on; the transaction holds
 * the project's row. False: no version is in force that was ever written.
 */
export async function ignoreMisfits(client: ClientBase, projectId: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `update model_version v set forced = true
     where v.project_id = $1 and v.state = ${MODEL_ACTIVE} and v.version = ${IN_FORCE}`,
    [projectId],
  );
  if (rowCount === 0) return false;
  await client.query(
    `update project set write_rules = case when write_rules = 0 then 0 else version + 1 end,
       version = version + 1, updated_at = clock_timestamp()
     where id = $1`,
    [projectId],
  );
  return true;
}

/** Adds a version to a project whose row the transaction holds, and returns its number. */
export async function insertModelVersion(
  client: ClientBase,
  projectId: string,
  version: NewModelVersion,
  state: StoredModelState,
): Promise<number> {
  const { createdBy, rpc, requestId } = version.author;
  const { rows } = await client.query<{ version: string }>(
    `select gatehouse_record_model($1, $2, $3, $4, $5, $6, $7, $8::bigint, $9::boolean,
       $10::smallint)::text as version`,
    [
      projectId,
      version.modelJson,
      version.modelGate,
      createdBy,
      rpc,
      requestId,
      version.comment,
      version.rolledBackTo,
      version.force,
      state,
    ],
  );
  return Number(rows[0]?.version);
}

/** The number of a project's newest version, pending ones included; 0 where it has none. */
export async function selectNewestModelVersion(
  client: ClientBase | Pool,
  projectId: string,
): Promise<number> {
  const query = {
    text: `select coalesce(max(v.version), 0)::text as version from model_version v
      where v.project_id = $1`,
    values: [projectId],
    query_timeout: PROMPT_READ_TIMEOUT_MS,
  };
  const { rows } = await client.query<{ version: string }>(query);
  return Number(rows[0]?.version);
}

/** One version of a project's model; `version` 0 is the one in force. Undefined where it is not there. */
export async function selectModelVersion(
  client: ClientBase | Pool,
  projectId: string,
  version: number,
): Promise<ModelTextRow | undefined> {
  const { rows } = await client.query<ModelTextRow>(
    `select ${COLUMNS}, v.model_json, v.model_gate from model_version v
     where v.project_id = $1 and v.version = case $2::bigint when 0 then ${IN_FORCE} else $2::bigint end`,
    [projectId, version],
  );
  return rows[0];
}

/** At most `rowsMax` versions below `before` (0: all), the newest first. */
export async function selectModelVersions(
  client: ClientBase | Pool,
  projectId: string,
  before: number,
  rowsMax: number,
): Promise<readonly ModelVersionRow[]> {
  const { rows } = await client.query<ModelVersionRow>(
    `select ${COLUMNS} from model_version v
     where v.project_id = $1 and ($2::bigint = 0 or v.version < $2::bigint)
     order by v.version desc limit $3`,
    [projectId, before, rowsMax],
  );
  return rows;
}

/** The number of the version that decided before the one in force; 0 where none did. */
export async function selectVersionBefore(
  client: ClientBase | Pool,
  projectId: string,
): Promise<number> {
  const { rows } = await client.query<{ version: string }>(
    `select v.version::text as version from model_version v
     where v.project_id = $1 and v.state = ${MODEL_ACTIVE} order by v.version desc limit 1 offset 1`,
    [projectId],
  );
  return Number(rows[0]?.version ?? 0);
}
