import type { ClientBase, Pool } from 'pg';
import { PROMPT_READ_TIMEOUT_MS } from '../pool.ts';

/** Columns of `project` as the statements here give them. */
export type ProjectRow = {
  readonly id: string;
  readonly name: string;
  readonly status: number;
  readonly model_json: string;
  readonly data_region: string;
  readonly max_check_reads: number;
  readonly version: string;
  readonly created_at_us: string;
  readonly updated_at_us: string;
};

const COLUMNS = `id, name, status, model_json, data_region, max_check_reads, version::text as version,
  (extract(epoch from created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from updated_at) * 1000000)::bigint::text as updated_at_us`;

/** One project, or undefined. */
export async function selectProject(
  client: ClientBase | Pool,
  id: string,
): Promise<ProjectRow | undefined> {
  const query = {
    name: 'select_project',
    text: `select ${COLUMNS} from project where id = $1`,
    values: [id],
    query_timeout: PROMPT_READ_TIMEOUT_MS,
  };
  const { rows } = await client.query<ProjectRow>(query);
  return rows[0];
}

/** At most `rowsMax` projects by id. */
export async function selectProjects(
  client: ClientBase | Pool,
  rowsMax: number,
): Promise<readonly ProjectRow[]> {
  const { rows } = await client.query<ProjectRow>(
    `select ${COLUMNS} from project order by id limit $1`,
    [rowsMax],
  );
  return rows;
}

/**
 * The new project, or undefined where the id is taken. Written as `instanceId` (null: none is registered at
 * all). Errors: `isFenced` where that is not registered; nothing was applied.
 */
export async function insertProject(
  client: ClientBase | Pool,
  instanceId: string | null,
  project: {
    readonly id: string;
    readonly name: string;
    readonly modelJson: string;
    readonly dataRegion: string;
    readonly maxCheckReads: number;
  },
): Promise<ProjectRow | undefined> {
  const { rows } = await client.query<ProjectRow>(
    `insert into project (id, name, model_json, data_region, max_check_reads)
     select $1, $2, $3, $4, $5::int from gatehouse_enter($6::uuid) on conflict (id) do nothing returning ${COLUMNS}`,
    [
      project.id,
      project.name,
      project.modelJson,
      project.dataRegion,
      project.maxCheckReads,
      instanceId,
    ],
  );
  return rows[0];
}

/**
 * The project after the update, or undefined where it does not exist. null leaves a column. `instanceId`
 * and errors as of insertProject.
 */
export async function updateProject(
  client: ClientBase | Pool,
  instanceId: string | null,
  change: {
    readonly id: string;
    readonly name: string | null;
    readonly status: number | null;
    readonly modelJson: string | null;
    readonly dataRegion: string | null;
    readonly maxCheckReads: number | null;
  },
): Promise<ProjectRow | undefined> {
  const { rows } = await client.query<ProjectRow>(
    `update project set name = coalesce($2, name), status = coalesce($3::smallint, status),
       model_json = coalesce($4, model_json), data_region = coalesce($5, data_region),
       max_check_reads = coalesce($6::int, max_check_reads),
       version = version + 1, updated_at = clock_timestamp()
     from gatehouse_enter($7::uuid) where id = $1 returning ${COLUMNS}`,
    [
      change.id,
      change.name,
      change.status,
      change.modelJson,
      change.dataRegion,
      change.maxCheckReads,
      instanceId,
    ],
  );
  return rows[0];
}
