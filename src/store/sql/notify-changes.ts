import type { ClientBase, Pool } from 'pg';
import { CHANGE_CHANNEL } from '../change-feed.ts';
import { plainArray, textArray } from './write-group.ts';

/** Notifies the listeners of all instances that these shards have reached these seqs. */
export async function notifyChanges(
  client: ClientBase | Pool,
  changes: readonly {
    readonly projectId: string;
    readonly tenantId: string;
    readonly seq: number;
  }[],
): Promise<void> {
  await client.query({
    name: 'notify_changes',
    text: `select pg_notify($1, json_build_array(k.project_id, k.tenant_id, k.seq)::text)
      from unnest($2::text[], $3::text[], $4::bigint[]) k (project_id, tenant_id, seq)`,
    values: [
      CHANGE_CHANNEL,
      textArray(changes.map((change) => change.projectId)),
      textArray(changes.map((change) => change.tenantId)),
      plainArray(changes.map((change) => change.seq)),
    ],
  });
}
