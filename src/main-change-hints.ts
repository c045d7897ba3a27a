import type { Pool } from 'pg';
import type { ShardKey } from './model/relation-tuple.ts';
import type { EventLog } from './observability/logger.ts';
import type { ChangeHints } from './services/ports.ts';
import { CHANGE_CHANNEL } from './store/change-feed.ts';

/** Commits within this time share one notification per shard. */
const COALESCE_MS = 20;
/** Beyond this the rest is left to the poll: a hint may be lost. */
const SHARDS_MAX = 1_000;

/** Notifies other instances of commits, off the commit path and at most once in 20 ms. */
export function createChangeHints(pool: Pool, log: EventLog): ChangeHints {
  const latest = new Map<string, string>();
  let isScheduled = false;
  const send = (): void => {
    isScheduled = false;
    const payloads = [...latest.values()];
    latest.clear();
    pool
      .query({
        name: 'notify-changes',
        text: `select pg_notify('${CHANGE_CHANNEL}', payload) from unnest($1::text[]) as p (payload)`,
        values: [payloads],
      })
      .catch((error: unknown) => log('warn', 'change_hints_not_sent', { error: String(error) }));
  };
  return {
    hint(shard: ShardKey, seq: number) {
      // A tenant id holds no space.
      const key = `${shard.projectId} ${shard.tenantId}`;
      if (latest.size >= SHARDS_MAX && !latest.has(key)) return;
      latest.set(key, JSON.stringify([shard.projectId, shard.tenantId, seq]));
      if (isScheduled) return;
      isScheduled = true;
      setTimeout(send, COALESCE_MS).unref();
    },
  };
}
