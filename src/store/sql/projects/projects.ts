import type { ClientBase, Pool } from 'pg';
import { assert } from '../../../shared/assert.ts';
import { PROMPT_READ_TIMEOUT_MS } from '../../postgres/pool.ts';

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
  /** 0: nothing is asked of tuples. */
  readonly write_rules: string;
  /** '0' and '': none. */
  readonly pending_version: string;
  readonly pending_json: string;
  readonly refuse_unknown_relations: boolean;
  /**
   * The version of the model in force, where it came into force without an examination of the
   * stored tuples; '0': none.
   */
  readonly forced_version: string;
};

const COLUMNS = `id, name, status, model_json, data_region, max_check_reads, version::text as version,
  (extract(epoch from created_at) * 1000000)::bigint::text as created_at_us,
  (extract(epoch from updated_at) * 1000000)::bigint::text as updated_at_us,
  write_rules::text as write_rules, pending_version::text as pending_version, pending_json,
  refuse_unknown_relations,
  coalesce((select case when v.forced then v.version end from model_version v
    where v.project_id = id and v.state = 2 order by v.version desc limit 1), 0)::text as forced_version`;

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
 * One project, its row held until the transaction ends, or undefined. Errors: `isFenced` where `instanceId`
 * (null: none is registered at all) is not registered; nothing was applied.
 */
export async function lockProject(
  client: ClientBase,
  instanceId: string | null,
  id: string,
): Promise<ProjectRow | undefined> {
  await client.query('select gatehouse_enter($1::uuid)', [instanceId]);
  const { rows } = await client.query<ProjectRow>(
    `select ${COLUMNS} from project where id = $1 for update`,
    [id],
  );
  return rows[0];
}

/**
 * The new project, or undefined where the id is taken; its model, if it has one, is version 1. Written as
 * `instanceId`. Errors: as of lockProject.
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
    readonly refuseUnknownRelations?: boolean | undefined;
    /** Whether tuples must fit its model. */
    readonly hasRules: boolean;
  },
  author: { readonly createdBy: string; readonly rpc: string; readonly requestId: string },
): Promise<ProjectRow | undefined> {
  const { rows } = await client.query<ProjectRow>(
    `with made as (
       insert into project
         (id, name, model_json, data_region, max_check_reads, write_rules, refuse_unknown_relations)
       select $1, $2, $3, $4, $5::int, case when $10::boolean then 1 else 0 end, $11::boolean from gatehouse_enter($6::uuid)
       on conflict (id) do nothing
       returning id, name, status, model_json, data_region, max_check_reads, version, created_at, updated_at,
         write_rules, pending_version, pending_json, refuse_unknown_relations
     )
     select ${COLUMNS}, case when model_json <> '' then
       gatehouse_record_model(id, model_json, '', $7, $8, $9, '', 0, false, 2::smallint) end as recorded
     from made`,
    [
      project.id,
      project.name,
      project.modelJson,
      project.dataRegion,
      project.maxCheckReads,
      instanceId,
      author.createdBy,
      author.rpc,
      author.requestId,
      project.hasRules,
      project.refuseUnknownRelations ?? false,
    ],
  );
  return rows[0];
}

/**
 * The project after the update of what is not null, besides its model; the transaction holds its row, so that it
 * is there.
 */
export async function updateProject(
  client: ClientBase,
  change: {
    readonly id: string;
    readonly name: string | null;
    readonly status: number | null;
    readonly dataRegion: string | null;
    readonly maxCheckReads: number | null;
    readonly refuseUnknownRelations: boolean | null;
  },
): Promise<ProjectRow> {
  const { rows } = await client.query<ProjectRow>(
    `update project set name = coalesce($2, name), status = coalesce($3::smallint, status),
       data_region = coalesce($4, data_region), max_check_reads = coalesce($5::int, max_check_reads),
       refuse_unknown_relations = coalesce($6::boolean, refuse_unknown_relations),
       version = version + 1, updated_at = clock_timestamp()
     where id = $1 returning ${COLUMNS}`,
    [
      change.id,
      change.name,
      change.status,
      change.dataRegion,
      change.maxCheckReads,
      change.refuseUnknownRelations,
    ],
  );
  const [row] = rows;
  assert(row !== undefined, 'the row of a project that is held is there');
  return row;
}
