import {
  CLAIM_LOOK_FACTOR,
  type ClaimFilter,
  type DeliveryKey,
  type NotificationStore,
} from '../model/notification-store.ts';
import type { DueDelivery, OutboundChannel } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import {
  bareNotificationFromRow,
  bitOfChannel,
  NOTIFICATION_COLUMNS,
  outboundChannelOfBit,
  type NotificationRow,
} from './postgres-rows.ts';

type DueRow = Omit<NotificationRow, 'deliveries'> & {
  readonly endpoint_id: string;
  readonly endpoint_user: string;
  readonly channel: number;
  readonly address: string;
  readonly signing_secret: string;
  readonly attempts: number;
};

/**
 * Notifications on their way to endpoints. A claim is a later time of the next attempt, so that one whose process died
 * is due again by itself; an outcome is recorded only while the delivery is pending.
 */
export class PostgresDeliveries implements Pick<
  NotificationStore,
  'claimDue' | 'markSent' | 'markRetry' | 'markDead' | 'backlog' | 'nextDueMs'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  async claimDue(
    nowMs: number,
    leaseMs: number,
    limit: number,
    filter?: ClaimFilter,
  ): Promise<readonly DueDelivery[]> {
    const without = filter?.without ?? [];
    const rows = await this.#database.query<DueRow>(
      'notify-claim',
      `with candidate as (
         select d.notification_id, d.endpoint_id, row_number() over (
             partition by d.tenant_id, d.endpoint_id order by d.next_attempt_at) as place
         from (
           select d.notification_id, d.endpoint_id, d.tenant_id, d.next_attempt_at
           from notify.delivery d
           where d.status = 1 and d.next_attempt_at <= to_timestamp($1::double precision / 1000)
             and ($4::smallint[] is null or d.channel = any($4))
             and (d.tenant_id, d.endpoint_id) not in (select * from unnest($6::text[], $7::text[]))
           order by d.next_attempt_at limit $3::int * ${CLAIM_LOOK_FACTOR}
         ) d
       ), due as (
         select d.notification_id, d.endpoint_id
         from candidate c join notify.delivery d
           on d.notification_id = c.notification_id and d.endpoint_id = c.endpoint_id
         where ($5::int is null or c.place <= $5) and d.status = 1
           and d.next_attempt_at <= to_timestamp($1::double precision / 1000)
         order by d.next_attempt_at limit $3::int for update of d skip locked
       ), claimed as (
         update notify.delivery d
         set next_attempt_at = to_timestamp(($1::double precision + $2::double precision) / 1000)
         from due where d.notification_id = due.notification_id and d.endpoint_id = due.endpoint_id
         returning d.notification_id, d.tenant_id, d.endpoint_id, d.attempts
       )
       select ${NOTIFICATION_COLUMNS}, e.id as endpoint_id, e.user_id as endpoint_user, e.channel,
         e.address, e.signing_secret, c.attempts
       from claimed c join notify.notification n on n.id = c.notification_id
         join notify.endpoint e on e.tenant_id = c.tenant_id and e.id = c.endpoint_id
       order by n.created_at, n.id`,
      [
        nowMs,
        leaseMs,
        limit,
        filter?.channels.map(bitOfChannel) ?? null,
        filter?.perEndpointMax ?? null,
        without.map(({ tenantId }) => tenantId),
        without.map(({ endpointId }) => endpointId),
      ],
    );
    return rows.map((row) => ({
      notification: bareNotificationFromRow(row),
      endpoint: {
        tenantId: row.tenant_id,
        id: row.endpoint_id,
        userId: row.endpoint_user,
        channel: outboundChannelOfBit(row.channel),
        address: row.address,
      },
      signingSecret: row.signing_secret,
      attempts: row.attempts,
    }));
  }

  markSent(key: DeliveryKey, attempts: number): Promise<void> {
    return this.#settle(key, 2, attempts, '', null);
  }

  markRetry(
    key: DeliveryKey,
    attempts: number,
    error: string,
    nextAttemptMs: number,
  ): Promise<void> {
    return this.#settle(key, 1, attempts, error, nextAttemptMs);
  }

  markDead(key: DeliveryKey, attempts: number, error: string): Promise<void> {
    return this.#settle(key, 3, attempts, error, null);
  }

  async backlog(
    nowMs: number,
  ): Promise<{ readonly pending: number; readonly oldestDueMs: number }> {
    const [row] = await this.#database.query<{ pending: number; oldest_ms: string | null }>(
      'notify-backlog',
      `select count(*)::int as pending,
         (extract(epoch from min(d.next_attempt_at)) * 1000)::bigint as oldest_ms
       from notify.delivery d where d.status = 1`,
      [],
    );
    const oldestMs = row?.oldest_ms == null ? nowMs : Number(row.oldest_ms);
    return { pending: row?.pending ?? 0, oldestDueMs: Math.max(0, nowMs - oldestMs) };
  }

  async nextDueMs(channels?: readonly OutboundChannel[]): Promise<number | undefined> {
    const [row] = await this.#database.query<{ next_ms: string | null }>(
      'notify-next-due',
      `select ceil(extract(epoch from min(d.next_attempt_at)) * 1000)::bigint as next_ms
       from notify.delivery d where d.status = 1 and ($1::smallint[] is null or d.channel = any($1))`,
      [channels?.map(bitOfChannel) ?? null],
    );
    return row?.next_ms == null ? undefined : Number(row.next_ms);
  }

  async #settle(
    key: DeliveryKey,
    status: number,
    attempts: number,
    error: string,
    nextAttemptMs: number | null,
  ): Promise<void> {
    await this.#database.query(
      'notify-settle',
      `update notify.delivery d set status = $3, attempts = $4, last_error = $5,
         next_attempt_at =
           coalesce(to_timestamp($6::double precision / 1000), d.next_attempt_at)
       where d.notification_id = $1 and d.endpoint_id = $2 and d.status = 1`,
      [key.notificationId, key.endpointId, status, attempts, error, nextAttemptMs],
    );
  }
}
