import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';

/** A position in the history of a shard. Equal revisions with different fork ids are different histories. */
export type ShardPosition = {
  readonly epoch: number;
  readonly revision: number;
  /** Decimal text of the 64-bit fork id; '0' at seq 0. */
  readonly forkId: string;
};

export type StoredHeadRevision = ShardPosition & {
  /** Newest version of the project's settings under which a change was committed. */
  readonly settingsVersion: number;
  /** The first seq whose change row still exists. */
  readonly retainedFrom: number;
};

/** All changes of one seq, as packed in `tuple_change.changes`. */
export type StoredChange = {
  readonly revision: number;
  readonly forkId: string;
  /** Version of the project's settings when it was committed. */
  readonly settingsVersion: number;
  readonly changes: string;
};

export type ChangePage = {
  readonly headRevision: StoredHeadRevision;
  /** Fork id of the seq after which was read; undefined when its row was pruned. */
  readonly forkIdAtStart: string | undefined;
  /** afterRevision + 1, afterRevision + 2 …; empty at the head revision, and when those were pruned. */
  readonly changes: readonly StoredChange[];
};

/** A page ends after the change that reaches this size, so that its memory is bounded. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
export const CHANGE_PAGE_ROWS_MAX = 1_000;

type ShardChangeRow = {
  readonly epoch: string;
  readonly head_seq: string;
  readonly head_stamp: string;
  readonly retained_from: string;
  readonly head_settings: string;
  readonly stamp_at_start: string | null;
  readonly seq: string | null;
  readonly stamp: string;
  readonly settings_version: string;
  readonly changes: string;
};

// One statement, hence one snapshot: head revision, retention and changes belong together. A shard without
// a row is empty, in the epoch that its first write would give it.
const READ_CHANGES = `
  select h.epoch, h.seq as head_seq, h.stamp as head_stamp, h.retained_from,
    h.settings_version as head_settings,
    case when $3::bigint = h.seq then h.stamp else
      (select a.stamp from tuple_change a
       where a.project_id = $1 and a.tenant_id = $2 and a.seq = $3::bigint) end as stamp_at_start,
    c.seq, c.stamp, c.settings_version, c.changes
  from (
    select coalesce(s.epoch, gatehouse_epoch()) as epoch, coalesce(s.seq, 0) as seq,
      coalesce(s.stamp, 0) as stamp, coalesce(s.retained_from, 1) as retained_from,
      coalesce(s.settings_version, 0) as settings_version
    from (values (1)) one left join shard s on s.project_id = $1 and s.tenant_id = $2
  ) h left join lateral (
    select p.seq, p.stamp, p.settings_version, p.changes from (
      select t.seq, t.stamp, t.settings_version, t.changes,
        sum(octet_length(t.changes)) over (order by t.seq) - octet_length(t.changes) as bytes_before
      from tuple_change t
      where t.project_id = $1 and t.tenant_id = $2 and t.seq > $3::bigint
        and $3::bigint + 1 >= h.retained_from
      order by t.seq limit $4
    ) p where p.bytes_before < $5
  ) c on true
  order by c.seq`;

/**
 * Reads the changes after `afterRevision`, at most `limit` revisions, and none after the one that
 * reaches `bytesMax`. Every row is one whole seq, so pages end at seq borders. `mustReload` decides
 * whether they may be applied. Errors: whatever the driver throws (pg-errors.ts); an assertion when
 * the stored revisions have a gap. Cost: one prepared statement, O(changes) with index lookups.
 */
export async function readChanges(
  client: ClientBase | Pool,
  shard: ShardKey,
  afterRevision: number,
  limit: number = CHANGE_PAGE_ROWS_MAX,
  bytesMax: number = PAGE_BYTES_MAX,
): Promise<ChangePage> {
  assert(
    afterRevision >= 0 && limit > 0 && limit <= CHANGE_PAGE_ROWS_MAX,
    'range of a change page',
  );
  const { rows } = await client.query<ShardChangeRow>({
    name: 'read-changes',
    text: READ_CHANGES,
    values: [shard.projectId, shard.tenantId, afterRevision, limit, bytesMax],
  });
  const first = rows[0];
  assert(first !== undefined, 'a shard has a head');
  const headRevision: StoredHeadRevision = {
    epoch: Number(first.epoch),
    revision: Number(first.head_seq),
    forkId: first.head_stamp,
    retainedFrom: Number(first.retained_from),
    settingsVersion: Number(first.head_settings),
  };
  const changes: StoredChange[] = [];
  for (const { seq: revision, stamp: forkId, settings_version, changes: packed } of rows) {
    if (revision === null) break;
    const settingsVersion = Number(settings_version);
    const change = { revision: Number(revision), forkId, settingsVersion, changes: packed };
    assert(
      change.revision === afterRevision + changes.length + 1,
      'stored changes follow without a gap',
    );
    changes.push(change);
  }
  const isPruned = afterRevision + 1 < headRevision.retainedFrom;
  const isAtHeadRevision = afterRevision >= headRevision.revision;
  assert(isPruned || isAtHeadRevision || changes.length > 0, 'changes up to the head are stored');
  const forkIdAtStart = afterRevision === 0 ? '0' : (first.stamp_at_start ?? undefined);
  return { headRevision, forkIdAtStart, changes };
}

/**
 * Whether an index at `watermark` cannot be brought forward with `page`, read after its seq: the
 * epoch is another, the head revision is below it, its own seq carries another fork id (another history), or
 * the changes it needs, or the fork id to compare with, were pruned.
 */
export function mustReload(watermark: ShardPosition, page: ChangePage): boolean {
  const { headRevision } = page;
  return (
    headRevision.epoch !== watermark.epoch ||
    headRevision.revision < watermark.revision ||
    watermark.revision + 1 < headRevision.retainedFrom ||
    page.forkIdAtStart !== watermark.forkId
  );
}
