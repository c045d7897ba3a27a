import type {
  NotificationQuery,
  NotificationStore,
  StreamBounds,
} from '../model/notification-store.ts';
import type { Channel, Notification, UserKey } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import { LIVE_UNREAD_COLUMN, type UnreadRow, stateOf } from './postgres-reads.ts';
import {
  bitsOfChannels,
  DELIVERIES_COLUMN,
  NOTIFICATION_COLUMNS,
  notificationFromRow,
  type NotificationRow,
} from './postgres-rows.ts';

/**
 * The streams of users: what is in them, from where a device goes on, and what is old enough to go.
 * Reads take no lock; whoever changes what a stream counts locks its row first, as `notify.put` does.
 */
export class PostgresStreams implements Pick<
  NotificationStore,
  'list' | 'liveAfter' | 'bounds' | 'unreadCount' | 'purge'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  list(query: NotificationQuery): Promise<readonly Notification[]> {
    const before = Number.isFinite(query.beforeSequence) ? query.beforeSequence : null;
    return this.#notifications(
      `where n.tenant_id = $1 and n.user_id = $2 and ($3::bigint is null or n.sequence < $3)
         and n.channels & $4::int <> 0 ${query.unreadOnly ? 'and n.read_at is null' : ''}
       order by n.sequence desc limit $5`,
      [query.tenantId, query.userId, before, bitsOfChannels(query.channels), query.limit],
      query.unreadOnly ? 'notify-list-unread' : 'notify-list',
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

  async bounds(user: UserKey): Promise<StreamBounds> {
    const [row] = await this.#database.query<UnreadRow & { oldest: string | null }>(
      'notify-bounds',
      `select s.head, s.reads, ${LIVE_UNREAD_COLUMN},
         (select min(n.sequence) from notify.notification n
          where n.tenant_id = s.tenant_id and n.user_id = s.user_id) as oldest
       from notify.stream s where s.tenant_id = $1 and s.user_id = $2`,
      [user.tenantId, user.userId],
    );
    const state = stateOf(row);
    return { ...state, oldest: row?.oldest == null ? state.head + 1 : Number(row.oldest) };
  }

  async unreadCount(user: UserKey, channels: readonly Channel[]): Promise<number> {
    const [row] = await this.#database.query<{ unread: string }>(
      'notify-unread',
      `select count(*) as unread from notify.notification n
       where n.tenant_id = $1 and n.user_id = $2 and n.read_at is null and n.channels & $3::int <> 0`,
      [user.tenantId, user.userId, bitsOfChannels(channels)],
    );
    return Number(row?.unread ?? 0);
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
