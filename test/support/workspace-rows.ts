import type { Pool } from 'pg';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { inTransaction } from '../../src/store/postgres/transaction.ts';

export type MemberRow = readonly [userId: string, role: 1 | 2 | 3 | 4, status: 1 | 2 | 3];

/** A TEAM workspace by its rows alone, for tests of what hangs on them. */
export async function insertWorkspaceRows(
  pool: Pool,
  { projectId, tenantId }: ShardKey,
  id: string,
  owner: string,
  members: readonly MemberRow[] = [],
): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query(
      `insert into workspace (project_id, tenant_id, id, slug, display_name, type, owner_user_id)
       values ($1, $2, $3, $3, $3, 2, $4)`,
      [projectId, tenantId, id, owner],
    );
    for (const [userId, role, status] of [[owner, 1, 1] as const, ...members]) {
      await client.query(
        `insert into membership (project_id, tenant_id, workspace_id, user_id, role, status)
         values ($1, $2, $3, $4, $5, $6)`,
        [projectId, tenantId, id, userId, role, status],
      );
    }
  });
}
