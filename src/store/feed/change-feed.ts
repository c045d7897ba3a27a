import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { LoopReport } from '../../shared/loop-report.ts';
import { type Listening, startListening } from '../postgres/listen.ts';
import type { PostgresTarget } from '../postgres/pool.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';
import { hintsIn, prefixOf } from './change-hints.ts';

/** NOTIFY channel; the payloads are those of change-hints.ts. */
export const CHANGE_CHANNEL = 'gatehouse_change';

export type ChangeFeedOptions = {
  readonly target: PostgresTarget;
  /** Name in this process's own notifications, which it ignores; '' where it sends none. */
  readonly sender: string;
  /** Whether a shard may be held here. Hot: called for each hint of others. Absent: any may be. */
  readonly isHeld?: ((shard: ShardKey) => boolean) | undefined;
  /** A shard has reached `revision`; null: any shard may have changed. A hint: may repeat, or be old. */
  readonly onHint: (shard: ShardKey | null, revision: number) => void;
  /** Called with false once when the LISTEN connection is lost, with true when it is there (again). */
  readonly onConnected?: ((isConnected: boolean) => void) | undefined;
  readonly report?: LoopReport | undefined;
  readonly log?: StoreLog | undefined;
};

/** Counts since the start. */
export type FeedCounts = {
  /** Notifications of this process itself, which were not read. */
  own: number;
  /** Notifications that could not be understood. */
  unknown: number;
  /** Hints of others, by whether their shard may be held here. */
  held: number;
  dropped: number;
};

export type ChangeFeed = Listening & { readonly counts: Readonly<FeedCounts> };

/**
 * Hears of committed changes. Notifications are hints: a lost one costs the time to the next poll of the
 * workers, never correctness, since the truth is read from `tuple_change` by watermark. After every
 * connect loss is assumed and all shards are hinted.
 */
export function startChangeFeed(options: ChangeFeedOptions): ChangeFeed {
  const counts = { own: 0, unknown: 0, held: 0, dropped: 0 };
  const listener = startListening({
    target: options.target,
    channel: CHANGE_CHANNEL,
    onPayload: hintReader(options, counts),
    onMayHaveMissed: () => options.onHint(null, 0),
    onConnected: options.onConnected,
    report: options.report,
    log: options.log ?? silentLog,
  });
  return { started: listener.started, stop: () => listener.stop(), counts };
}

/** Takes payloads as they come. Hot while others write much: what is not held ends here. */
export function hintReader(
  {
    sender,
    isHeld,
    onHint,
    log = silentLog,
  }: Omit<ChangeFeedOptions, 'target' | 'onConnected' | 'report'>,
  counts: FeedCounts,
): (payload: string) => void {
  const ownPrefix = sender === '' ? undefined : prefixOf(sender);
  return (payload) => {
    if (ownPrefix !== undefined && payload.startsWith(ownPrefix)) {
      counts.own += 1;
      return;
    }
    const message = hintsIn(payload);
    if (message === undefined) {
      counts.unknown += 1;
      log('warn', 'change_feed_payload_unknown', {});
      onHint(null, 0);
      return;
    }
    for (const { shard, revision } of message.hints) {
      if (isHeld !== undefined && !isHeld(shard)) {
        counts.dropped += 1;
      } else {
        counts.held += 1;
        onHint(shard, revision);
      }
    }
  };
}

/** Head revision of a shard; 0 for one that was never written. */
export type FeedHeadRow = ShardKey & {
  readonly epoch: number;
  readonly revision: number;
  readonly forkId: string;
};

/** Head revisions of the given shards, in any order. Cost: one index lookup each. */
export async function readHeadRevisions(
  pool: Pool,
  shards: readonly ShardKey[],
): Promise<readonly FeedHeadRow[]> {
  const { rows } = await pool.query<{
    project_id: string;
    tenant_id: string;
    epoch: string;
    seq: string;
    stamp: string;
  }>({
    name: 'read-heads',
    text: `
      select k.project_id, k.tenant_id, coalesce(s.epoch, gatehouse_epoch()) as epoch,
        coalesce(s.seq, 0) as seq, coalesce(s.stamp, 0) as stamp
      from unnest($1::text[], $2::text[]) as k (project_id, tenant_id)
        left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id`,
    values: [shards.map((shard) => shard.projectId), shards.map((shard) => shard.tenantId)],
  });
  return rows.map((row) => ({
    projectId: row.project_id,
    tenantId: row.tenant_id,
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    forkId: row.stamp,
  }));
}
