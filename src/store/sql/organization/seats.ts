import type { ClientBase } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';

export type SeatLimitRow = {
  /** null is unlimited. */
  readonly seats_max: number | null;
  readonly used: number;
};

export type SeatRow = { readonly user_id: string; readonly assigned_at_us: string };

/** The limit and use of a plan, or undefined where neither was ever set. */
export async function selectSeatLimit(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  sku: string,
): Promise<SeatLimitRow | undefined> {
  const { rows } = await client.query<SeatLimitRow>({
    name: 'select_seat_limit',
    text: `select l.seats_max, l.used from seat_limit l
      where l.project_id = $1 and l.tenant_id = $2 and l.sku = $3`,
    values: [projectId, tenantId, sku],
  });
  return rows[0];
}

/** Sets (or with null clears) the limit of a plan. */
export async function upsertSeatLimit(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  sku: string,
  seatsMax: number | null,
): Promise<void> {
  await client.query({
    name: 'upsert_seat_limit',
    text: `insert into seat_limit (project_id, tenant_id, sku, seats_max)
      values ($1, $2, $3, $4::int)
      on conflict (project_id, tenant_id, sku) do update set seats_max = excluded.seats_max`,
    values: [projectId, tenantId, sku, seatsMax],
  });
}

/**
 * Gives the user a seat; false where it has one. The database counts and refuses by itself, under the
 * lock of the plan's row (gatehouse_take_seat): see `isSeatRefusal` of store/postgres/pg-errors.ts.
 */
export async function insertSeat(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  sku: string,
  userId: string,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'insert_seat',
    text: `insert into seat_assignment (project_id, tenant_id, sku, user_id)
      values ($1, $2, $3, $4) on conflict do nothing`,
    values: [projectId, tenantId, sku, userId],
  });
  return rowCount === 1;
}

/** Takes the user's seat away; false where it has none. */
export async function deleteSeat(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  sku: string,
  userId: string,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'delete_seat',
    text: `delete from seat_assignment a
      where a.project_id = $1 and a.tenant_id = $2 and a.sku = $3 and a.user_id = $4`,
    values: [projectId, tenantId, sku, userId],
  });
  return rowCount === 1;
}

/** The seats of a plan by time of assignment, then user. */
export function seatsOfPlan(
  { projectId, tenantId }: ShardKey,
  sku: string,
): { readonly text: string; readonly values: readonly string[] } {
  return {
    text: `select a.user_id,
        (extract(epoch from a.assigned_at) * 1000000)::bigint::text as assigned_at_us
      from seat_assignment a
      where a.project_id = $1 and a.tenant_id = $2 and a.sku = $3
      order by a.project_id, a.tenant_id, a.sku, a.assigned_at, a.user_id`,
    values: [projectId, tenantId, sku],
  };
}
