import type { NotificationQuery, NotificationStore } from '../model/notification-store.ts';
import type { Notification, UserKey } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import {
  DELIVERIES_COLUMN,
  NOTIFICATION_COLUMNS,
  notificationFromRow,
  type NotificationRow,
} from './postgres-rows.ts';
import { unknownNotification } from './store-refusals.ts';

/**
 * The streams of users: what is in them, from where a device goes on, what was read, and what is old enough to go.
 * Reads take no lock; whoever changes what a stream counts locks its row first, as `notify.put` does.
 */
export class PostgresStreams implements Pick<
  NotificationStore,
  'list' | 'liveAfter' | 'bounds' | 'unreadCount' | 'markRead' | 'purge'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  list(query: NotificationQuery): Promise<readonly Notification[]> {
    const before = Number.isFinite(query.beforeSequence) ? query.beforeSequence : null;
    return this.#notifications(
      `where n.tenant_id = $1 and n.user_id = $2 and ($3::bigint is null or n.sequence < $3)
         and (not $4::boolean or n.read_at is null)
       order by n.sequence desc limit $5`,
      [query.tenantId, query.userId, before, query.unreadOnly, query.limit],
      'notify-list',
    );
  }

  liveAfter(user: UserKey, sequence: number, limit: number): Promise<readonly Notification[]> {
    return this.#notifications(
      `where n.tenant_id = $1 and n.user_id = $2 and n.sequence > $3 and n.channels & 1 = 1
       order by n.sequence limit $4`,
      [user.tenantId, user.userId, sequence, limit],
      'notify-live-after',
    );
  }

  async bounds(user: UserKey): Promise<{ readonly head: number; readonly oldest: number }> {
    const [row] = await this.#database.query<{ head: string; oldest: string | null }>(
      'notify-bounds',
      `select s.head,
         (select min(n.sequence) from notify.notification n
          where n.tenant_id = s.tenant_id and n.user_id = s.user_id) as oldest
       from notify.stream s where s.tenant_id = $1 and s.user_id = $2`,
      [user.tenantId, user.userId],
    );
    const head = Number(row?.head ?? 0);
    return { head, oldest: row?.oldest == null ? head + 1 : Number(row.oldest) };
  }

  async unreadCount(user: UserKey): Promise<number> {
    const [row] = await this.#database.query<{ unread: string }>(
      'notify-unread',
      'select s.unread from notify.stream s where s.tenant_id = $1 and s.user_id = $2',
      [user.tenantId, user.userId],
    );
    return Number(row?.unread ?? 0);
  }

  markRead(
    user: UserKey,
    which: { readonly ids: readonly string[] } | { readonly upToSequence: number },
    atMs: number,
  ): Promise<{ readonly markedCount: number; readonly unreadCount: number }> {
    const ids = 'ids' in which ? [...new Set(which.ids)] : null;
    const upTo = 'ids' in which ? null : which.upToSequence;
    return this.#database.transaction(async (client) => {
      // The stream first, as `notify.put` does.
      await client.query(
        'select 1 from notify.stream where tenant_id = $1 and user_id = $2 for update',
        [user.tenantId, user.userId],
      );
      if (ids !== null) {
        const known = await client.query<{ id: string }>(
          `select n.id from notify.notification n
           where n.tenant_id = $1 and n.user_id = $2 and n.id = any($3::uuid[])`,
          [user.tenantId, user.userId, ids.filter(isUuid)],
        );
        const found = new Set(known.rows.map(({ id }) => id));
        const unknown = ids.find((id) => !found.has(id.toLowerCase()));
        if (unknown !== undefined) throw unknownNotification(unknown);
      }
      const marked = await client.query(
        `update notify.notification n set read_at = to_timestamp($5::double precision / 1000)
         where n.tenant_id = $1 and n.user_id = $2 and n.read_at is null
           and (n.id = any($3::uuid[]) or n.sequence <= $4::bigint)`,
        [user.tenantId, user.userId, ids, upTo, atMs],
      );
      const markedCount = marked.rowCount ?? 0;
      const { rows } = await client.query<{ unread: string }>(
        `update notify.stream s set unread = s.unread - $3
         where s.tenant_id = $1 and s.user_id = $2 returning s.unread`,
        [user.tenantId, user.userId, markedCount],
      );
      return { markedCount, unreadCount: Number(rows[0]?.unread ?? 0) };
    });
  }

  purge(beforeMs: number, limit: number): Promise<number> {
    return this.#database.transaction(async (client) => {
      const { rows } = await client.query<{ count: number }>(
        `with old as materialized (
           select n.tenant_id, n.user_id, n.sequence from notify.notification n
           where n.created_at < to_timestamp($1::double precision / 1000)
           order by n.created_at limit $2
         ), streams as materialized (
           select s.tenant_id, s.user_id from notify.stream s
           where (s.tenant_id, s.user_id) in (select o.tenant_id, o.user_id from old o)
           order by s.tenant_id, s.user_id for update
         ), gone as (
           delete from notify.notification n using old o, streams s
           where n.tenant_id = o.tenant_id and n.user_id = o.user_id and n.sequence = o.sequence
             and s.tenant_id = n.tenant_id and s.user_id = n.user_id
           returning n.tenant_id, n.user_id, n.read_at
         ), counted as (
           update notify.stream s set unread = s.unread - g.unread
           from (select g.tenant_id, g.user_id, count(*) as unread from gone g
                 where g.read_at is null group by g.tenant_id, g.user_id) g
           where s.tenant_id = g.tenant_id and s.user_id = g.user_id
         )
         select count(*)::int as count from gone`,
        [beforeMs, limit],
      );
      return rows[0]?.count ?? 0;
    });
  }

  async #notifications(
    rest: string,
    values: readonly unknown[],
    name: string,
  ): Promise<readonly Notification[]> {
    const rows = await this.#database.query<NotificationRow>(
      name,
      `select ${NOTIFICATION_COLUMNS}, ${DELIVERIES_COLUMN} from notify.notification n ${rest}`,
      values,
    );
    return rows.map(notificationFromRow);
  }
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
