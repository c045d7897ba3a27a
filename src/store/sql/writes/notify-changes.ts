import type { ClientBase, Pool } from 'pg';
import { CHANGE_CHANNEL } from '../../feed/change-feed.ts';
import { textArray } from '../../postgres/array-literals.ts';

/**
 * Notifies the listeners of all instances, each payload by itself, in one transaction. NOTIFY holds
 * a lock of the whole server until its transaction has ended, so that these transactions come one
 * after the other. They write nothing, and so wait for no disk meanwhile.
 */
export async function notifyChanges(
  client: ClientBase | Pool,
  payloads: readonly string[],
): Promise<void> {
  await client.query({
    name: 'notify_changes',
    text: 'select pg_notify($1, k.payload) from unnest($2::text[]) k (payload)',
    values: [CHANGE_CHANNEL, textArray(payloads)],
  });
}
