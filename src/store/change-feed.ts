import type { Pool } from 'pg';
import type { ShardKey } from '../model/relation-tuple.ts';
import { type Listening, startListening } from './listen.ts';
import type { PostgresTarget } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';

/** NOTIFY channel; the payload is the JSON text of [project id, tenant id, seq]. */
export const CHANGE_CHANNEL = 'gatehouse_change';

export type ChangeFeedOptions = {
  readonly target: PostgresTarget;
  /** A shard has reached `seq`; null: any shard may have changed. A hint: may repeat, or be old. */
  readonly onHint: (shard: ShardKey | null, seq: number) => void;
  /** How often onHint(null, 0) is said without any notification: the backstop for lost ones. */
  readonly pollIntervalMs: number;
  /** Called with false when the LISTEN connection is lost, with true when it is there (again). */
  readonly onConnected?: ((isConnected: boolean) => void) | undefined;
  readonly log?: StoreLog | undefined;
};

export type ChangeFeed = Listening;

/**
 * Hears of committed changes. Notifications are hints: a lost one costs the time to the next poll,
 * never correctness, since the truth is read from `tuple_change` by watermark. After every connect
 * loss is assumed and all shards are hinted.
 */
export function startChangeFeed(options: ChangeFeedOptions): ChangeFeed {
  const log = options.log ?? silentLog;
  const listener = startListening({
    target: options.target,
    channel: CHANGE_CHANNEL,
    onPayload: (payload) => {
      const parsed = parseHint(payload);
      if (parsed === undefined) {
        log('warn', 'change_feed_payload_unknown', {});
        options.onHint(null, 0);
      } else {
        options.onHint(parsed.shard, parsed.seq);
      }
    },
    onMayHaveMissed: () => options.onHint(null, 0),
    onConnected: options.onConnected,
    log,
  });
  const timer = setInterval(() => options.onHint(null, 0), options.pollIntervalMs).unref();
  return {
    started: listener.started,
    stop: async () => {
      clearInterval(timer);
      await listener.stop();
    },
  };
}

/** Where a shard stands; one that was never written stands at seq 0. */
export type HeadRow = ShardKey & {
  readonly epoch: number;
  readonly seq: number;
  readonly stamp: string;
};

/** Heads of the given shards, in any order. Cost: one index lookup each. */
export async function readHeads(
  pool: Pool,
  shards: readonly ShardKey[],
): Promise<readonly HeadRow[]> {
  const { rows } = await pool.query<{
    project_id: string;
    tenant_id: string;
    epoch: string;
    seq: string;
    stamp: string;
  }>({
    name: 'read-heads',
    text: `
      select k.project_id, k.tenant_id, coalesce(s.epoch, deployment_epoch()) as epoch,
        coalesce(s.seq, 0) as seq, coalesce(s.stamp, 0) as stamp
      from unnest($1::text[], $2::text[]) as k (project_id, tenant_id)
        left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id`,
    values: [shards.map((shard) => shard.projectId), shards.map((shard) => shard.tenantId)],
  });
  return rows.map((row) => ({
    projectId: row.project_id,
    tenantId: row.tenant_id,
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    stamp: row.stamp,
  }));
}

/** Shard and seq of a payload; undefined when it is something else. */
export function parseHint(payload: string): { shard: ShardKey; seq: number } | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(payload);
  } catch {
    return undefined; // Anybody may notify on the channel.
  }
  if (!Array.isArray(parsed)) return undefined;
  const [projectId, tenantId, seq] = parsed as readonly unknown[];
  if (typeof projectId !== 'string' || typeof tenantId !== 'string') return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  return { shard: { projectId, tenantId }, seq };
}
