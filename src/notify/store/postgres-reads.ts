import type {
  Marked,
  MarkedPart,
  NotificationStore,
  ReadMark,
  ReadNews,
} from '../model/notification-store.ts';
import { LIVE_CHANNEL, type UserKey } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import { bitOfChannel } from './postgres-rows.ts';
import { unknownNotification } from './store-refusals.ts';

/** How many notifications of the stream `s` are unread that the live channel carried. Cost: O(unread), by index. */
export const LIVE_UNREAD_COLUMN = `
  (select count(*) from notify.notification u
   where u.tenant_id = s.tenant_id and u.user_id = s.user_id and u.read_at is null
     and u.channels & ${bitOfChannel(LIVE_CHANNEL)} <> 0) as unread`;

/** What is of a stream's row wherever its state is read. */
export type UnreadRow = { readonly head: string; readonly reads: string; readonly unread: string };

/** [number, ids, up to]; one of the last two is null. */
type MarkRow = readonly [number, readonly string[] | null, number | null];

const KEPT_SECONDS = 7_200;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** What users mark as read, in its order: `notify.stream.reads` counts it, `notify.read_mark` says what it was. */
export class PostgresReads implements Pick<
  NotificationStore,
  'markRead' | 'readsAfter' | 'purgeReads'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  markRead({ tenantId, userId }: UserKey, which: MarkedPart, atMs: number): Promise<Marked> {
    const ids = 'ids' in which ? [...new Set(which.ids)] : null;
    const upTo = 'ids' in which ? null : which.upToSequence;
    const user = [tenantId, userId];
    return this.#database.transaction(async (client) => {
      // The stream first, as `notify.put` does.
      await client.query(
        'select 1 from notify.stream where tenant_id = $1 and user_id = $2 for update',
        user,
      );
      if (ids !== null) {
        const known = await client.query<{ id: string }>(
          `select n.id from notify.notification n
           where n.tenant_id = $1 and n.user_id = $2 and n.id = any($3::uuid[])`,
          [...user, ids.filter((id) => UUID.test(id))],
        );
        const found = new Set(known.rows.map(({ id }) => id));
        const unknown = ids.find((id) => !found.has(id.toLowerCase()));
        if (unknown !== undefined) throw unknownNotification(unknown);
      }
      const marked = await client.query<{ id: string }>(
        `update notify.notification n set read_at = to_timestamp($5::double precision / 1000)
         where n.tenant_id = $1 and n.user_id = $2 and n.read_at is null
           and (n.id = any($3::uuid[]) or n.sequence <= $4::bigint)
         returning case when $3::uuid[] is null then null else n.id end as id`,
        [...user, ids, upTo, atMs],
      );
      const markedCount = marked.rowCount ?? 0;
      const { rows } = await client.query<UnreadRow>(
        // `unread` is of all channels, for releases that read no other count.
        `update notify.stream s set unread = s.unread - $3, reads = s.reads + least($3, 1)
         where s.tenant_id = $1 and s.user_id = $2 returning s.head, s.reads, ${LIVE_UNREAD_COLUMN}`,
        [...user, markedCount],
      );
      const state = stateOf(rows[0]);
      if (markedCount > 0) {
        await client.query(
          `with made as (
             insert into notify.read_mark (tenant_id, user_id, revision, ids, up_to)
             values ($1, $2, $3, $4::uuid[], $5) returning 1
           )
           select pg_notify('notify_stored', concat_ws(' ', $1::text, $2::text, $6::text, $3::text)) from made`,
          [
            ...user,
            state.reads,
            ids === null ? null : marked.rows.map(({ id }) => id),
            upTo === null ? null : Math.min(upTo, state.head),
            String(state.head),
          ],
        );
      }
      return { ...state, reads: markedCount > 0 ? state.reads : 0, markedCount };
    });
  }

  async readsAfter(user: UserKey, after: number, limit: number): Promise<ReadNews> {
    const [row] = await this.#database.query<UnreadRow & { marks: readonly MarkRow[] }>(
      'notify-reads-after',
      `select s.head, s.reads, ${LIVE_UNREAD_COLUMN},
         (select coalesce(jsonb_agg(jsonb_build_array(r.revision, r.ids, r.up_to) order by r.revision), '[]')
          from (select m.revision, m.ids, m.up_to from notify.read_mark m
                where m.tenant_id = s.tenant_id and m.user_id = s.user_id and m.revision > $3
                order by m.revision limit $4) r) as marks
       from notify.stream s where s.tenant_id = $1 and s.user_id = $2`,
      [user.tenantId, user.userId, after, limit],
    );
    const state = stateOf(row);
    const marks = (row?.marks ?? []).map(markOf);
    const last = marks.at(-1);
    const upTo = marks.length === limit && last !== undefined ? last.number : state.reads;
    // Marks that are no longer kept stand before those that are.
    const missing = upTo - after - marks.length;
    if (missing > 0) marks.unshift({ number: after + missing, which: undefined });
    return { ...state, marks, upTo };
  }

  async purgeReads(limit: number): Promise<number> {
    const rows = await this.#database.queryRetried<{ count: number }>(
      'notify-purge-reads',
      `with old as materialized (
         select m.tenant_id, m.user_id, m.revision from notify.read_mark m
         where m.made_at < clock_timestamp() - make_interval(secs => $1) order by m.made_at limit $2
       ), gone as (
         delete from notify.read_mark m using old o
         where m.tenant_id = o.tenant_id and m.user_id = o.user_id and m.revision = o.revision returning 1
       ) select count(*)::int as count from gone`,
      [KEPT_SECONDS, limit],
    );
    return rows[0]?.count ?? 0;
  }
}

/** The state that a row says; a user without one has nothing. */
export function stateOf(row: UnreadRow | undefined): {
  head: number;
  reads: number;
  unreadCount: number;
} {
  const { head = 0, reads = 0, unread = 0 } = row ?? {};
  return { head: Number(head), reads: Number(reads), unreadCount: Number(unread) };
}

function markOf([number, ids, upTo]: MarkRow): ReadMark {
  return { number, which: ids === null ? { upToSequence: upTo ?? 0 } : { ids } };
}
