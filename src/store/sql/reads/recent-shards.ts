import type { ClientBase, Pool } from 'pg';

/** A recently read shard and the bytes of its index. */
export type RecentShardRow = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly indexBytes: number;
};

/** Rows of ended lives are kept up to this many, so that they serve after a night without any instance. */
const ROWS_MAX = 32;

/** Replaces what this instance wrote before, and forgets the oldest rows of others. */
export async function writeRecentShards(
  client: ClientBase | Pool,
  instanceId: string,
  shards: readonly RecentShardRow[],
): Promise<void> {
  const packed = shards.map(({ projectId, tenantId, indexBytes }) => [
    projectId,
    tenantId,
    indexBytes,
  ]);
  await client.query({
    name: 'write_recent_shards',
    text: `with written as (
        insert into recent_shards (instance_id, written_at, shards)
        values ($1::uuid, clock_timestamp(), $2)
        on conflict (instance_id) do update
          set written_at = excluded.written_at, shards = excluded.shards
      )
      delete from recent_shards r where r.instance_id <> $1::uuid and r.instance_id <> all (array(
        select k.instance_id from recent_shards k order by k.written_at desc limit ${ROWS_MAX}
      ))`,
    values: [instanceId, JSON.stringify(packed)],
  });
}

/** Rows of each instance, the latest first, each with the latest shard first. */
export async function readRecentShards(
  client: ClientBase | Pool,
): Promise<readonly (readonly RecentShardRow[])[]> {
  const { rows } = await client.query<{ shards: string }>(
    `select r.shards from recent_shards r order by r.written_at desc limit ${ROWS_MAX}`,
  );
  return rows.map(({ shards }) =>
    (JSON.parse(shards) as readonly [string, string, number][]).map(
      ([projectId, tenantId, indexBytes]) => ({ projectId, tenantId, indexBytes }),
    ),
  );
}
