import type { ClientBase } from 'pg';
import { plainArray } from '../../postgres/array-literals.ts';

export type CommitRow = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly commitId: string;
  readonly epoch: number;
  readonly revision: number;
  readonly forkId: string;
  readonly changes: string;
  readonly settingsVersion: number;
};

type CommitColumns = {
  readonly project_id: string;
  readonly tenant_id: string;
  readonly commit_id: string;
  readonly epoch: string;
  readonly seq: string;
  readonly stamp: string;
  readonly changes: string;
  readonly settings_version: string;
};

/** The change rows of these commit ids, with the epoch of their shards. Rare: after a lost answer. */
export async function selectCommits(
  client: ClientBase,
  shards: readonly { readonly projectId: string; readonly tenantId: string }[],
  commitIds: readonly string[],
): Promise<CommitRow[]> {
  const { rows } = await client.query<CommitColumns>(
    `select c.project_id, c.tenant_id, c.commit_id::text as commit_id, s.epoch::text as epoch,
       c.seq::text as seq, c.stamp::text as stamp, c.changes,
       c.settings_version::text as settings_version
     from unnest($1::text[], $2::text[]) k (project_id, tenant_id)
     join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id
     join tuple_change c on c.project_id = k.project_id and c.tenant_id = k.tenant_id
     where c.commit_id = any ($3::uuid[])
     order by c.project_id, c.tenant_id, c.seq`,
    [
      shards.map((shard) => shard.projectId),
      shards.map((shard) => shard.tenantId),
      plainArray(commitIds),
    ],
  );
  return rows.map((row) => ({
    projectId: row.project_id,
    tenantId: row.tenant_id,
    commitId: row.commit_id,
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    forkId: row.stamp,
    changes: row.changes,
    settingsVersion: Number(row.settings_version),
  }));
}
