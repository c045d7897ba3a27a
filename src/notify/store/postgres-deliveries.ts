import {
  ATTEMPTS_KEPT,
  type ClaimRequest,
  type DeliveryKey,
  type DisabledEndpoint,
  type Settlement,
} from '../model/delivery.ts';
import type { Claim, NotificationStore } from '../model/notification-store.ts';
import type { DueDelivery, Channel } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import { openSecrets } from './postgres-endpoints.ts';
import { attemptToRow } from './postgres-followed.ts';
import {
  bareNotificationFromRow,
  bitOfChannel,
  NOTIFICATION_COLUMNS,
  numberOfStatus,
  channelOfBit,
  type NotificationRow,
} from './postgres-rows.ts';
import type { SecretBox } from './secret-box.ts';
import { ENDPOINT_DISABLED, ENDPOINT_REMOVED } from './store-refusals.ts';

/** What notify.claim returns; the last row is where it stopped, and in `attempts` whether it had to. */
type ClaimedRow = {
  readonly notification_id: string | null;
  readonly tenant_id: string;
  readonly endpoint_id: string;
  readonly attempts: number;
};
type DueRow = Omit<NotificationRow, 'deliveries'> & {
  readonly claimed_id: string;
  readonly claimed_tenant: string;
  readonly claimed_endpoint: string;
  readonly attempts: number;
  /** Null where the endpoint has gone. */
  readonly channel: number | null;
  readonly endpoint_user: string;
  readonly address: string;
  readonly signing_secret: string;
  /** '' once its time is over. */
  readonly previous_secret: string;
};

const STATUS_DEAD = 3;

/**
 * Notifications on their way to endpoints. A claim is a later time of the next attempt, so that one whose process died
 * is due again by itself; an outcome is recorded only while the delivery is pending.
 */
export class PostgresDeliveries implements Pick<
  NotificationStore,
  'claimDue' | 'release' | 'settle' | 'giveUpDisabled' | 'purgeDead' | 'backlog' | 'nextDueMs'
> {
  readonly #database: NotifyDatabase;
  readonly #secrets: SecretBox;

  constructor(database: NotifyDatabase, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /** Cost: see notify.claim, of which this is one call. */
  async claimDue(request: ClaimRequest): Promise<Claim> {
    const { nowMs } = request;
    const rows = await this.#database.queryRetried<ClaimedRow>(
      'notify-claim',
      `select c.notification_id, c.tenant_id, c.endpoint_id, c.attempts
       from notify.claim($1::smallint, to_timestamp($2::double precision / 1000),
         to_timestamp($3::double precision / 1000), $4, $5, $6, $7, $8::jsonb, $9) c`,
      [
        bitOfChannel(request.channel),
        nowMs,
        nowMs + request.leaseMs,
        request.places,
        request.perTenantMax,
        request.perEndpointMax,
        request.visitMax,
        JSON.stringify(busyMembers(request)),
        request.afterTenant,
      ],
    );
    const claimed = rows.filter((row) => row.notification_id !== null);
    const end = rows.find((row) => row.notification_id === null);
    return {
      deliveries: claimed.length === 0 ? [] : await this.#read(claimed, nowMs),
      afterTenant: end?.tenant_id ?? '',
      isCut: end?.attempts === 1,
    };
  }

  /**
   * A statement of its own: the function takes what was committed while it ran, which the statement that called it
   * does not see. Laterals with a bound, so that each row is found by its key, whatever the planner believes.
   */
  async #read(claimed: readonly ClaimedRow[], nowMs: number): Promise<readonly DueDelivery[]> {
    const due = await this.#database.query<DueRow>(
      'notify-claimed',
      `select c.claimed_id, c.claimed_tenant, c.claimed_endpoint, c.attempts, n.*, e.*
       from unnest($1::uuid[], $2::text[], $3::text[], $4::int[])
           c (claimed_id, claimed_tenant, claimed_endpoint, attempts)
         left join lateral (select ${NOTIFICATION_COLUMNS} from notify.notification n
           where n.id = c.claimed_id limit 1) n on true
         left join lateral (
           select e.user_id as endpoint_user, e.channel, e.address, e.signing_secret,
             case when e.previous_until > to_timestamp($5::double precision / 1000)
               then e.previous_secret else '' end as previous_secret
           from notify.endpoint e
           where e.tenant_id = c.claimed_tenant and e.id = c.claimed_endpoint limit 1
         ) e on true`,
      [
        claimed.map((row) => row.notification_id),
        claimed.map((row) => row.tenant_id),
        claimed.map((row) => row.endpoint_id),
        claimed.map((row) => row.attempts),
        nowMs,
      ],
    );
    await this.#giveUpOrphans(
      due.filter(({ channel }) => channel === null),
      nowMs,
    );
    return due.flatMap((row) => this.#dueDelivery(row));
  }

  async release(keys: readonly DeliveryKey[], nowMs: number): Promise<void> {
    await this.#database.queryRetried(
      'notify-release',
      `update notify.delivery d set is_ready = true, claimed_until = null,
         next_attempt_at = to_timestamp($3::double precision / 1000)
       from unnest($1::uuid[], $2::text[]) k (notification_id, endpoint_id)
       where d.notification_id = k.notification_id and d.endpoint_id = k.endpoint_id and d.status = 1`,
      [keys.map((key) => key.notificationId), keys.map((key) => key.endpointId), nowMs],
    );
  }

  async settle(
    batch: readonly Settlement[],
    nowMs: number,
    failingMsMax: number | null,
  ): Promise<readonly DisabledEndpoint[]> {
    const members = batch.map((one) => ({
      notification_id: one.notificationId,
      endpoint_id: one.endpointId,
      status: numberOfStatus(one.status),
      attempts: one.attempts,
      error: one.attempt.error,
      next_ms: one.nextAttemptMs,
      entry: [attemptToRow(one.attempt)],
    }));
    const rows = await this.#database.queryRetried<{
      tenant_id: string;
      id: string;
      failing_ms: string;
    }>('notify-settle', SETTLE_TEXT, [JSON.stringify(members), nowMs, failingMsMax]);
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      endpointId: row.id,
      failingSinceMs: Number(row.failing_ms),
    }));
  }

  /** Looks at nothing while no endpoint is disabled, whatever the planner believes: hence the lateral. */
  async giveUpDisabled(limit: number, nowMs: number): Promise<number> {
    const rows = await this.#database.queryRetried<{ count: number }>(
      'notify-give-up-disabled',
      `with waiting as materialized (
         select d.notification_id, d.endpoint_id from notify.endpoint e cross join lateral (
           select w.notification_id, w.endpoint_id from notify.delivery w
           where w.tenant_id = e.tenant_id and w.endpoint_id = e.id and w.status = 1 and w.claimed_until is null
           limit $1 for update skip locked
         ) d where e.disabled_at is not null limit $1
       ), gone as (
         update notify.delivery d set status = ${STATUS_DEAD}, last_error = '${ENDPOINT_DISABLED}',
           died_at = to_timestamp($2::double precision / 1000)
         from waiting w where d.notification_id = w.notification_id and d.endpoint_id = w.endpoint_id
         returning 1
       ) select count(*)::int as count from gone`,
      [limit, nowMs],
    );
    return rows[0]?.count ?? 0;
  }

  async purgeDead(beforeMs: number, limit: number): Promise<number> {
    const rows = await this.#database.queryRetried<{ count: number }>(
      'notify-purge-dead',
      `with old as materialized (
         select d.notification_id, d.endpoint_id from notify.delivery d
         where d.status = 3 and d.died_at < to_timestamp($1::double precision / 1000)
         order by d.died_at limit $2 for update skip locked
       ), gone as (
         delete from notify.delivery d using old o
         where d.notification_id = o.notification_id and d.endpoint_id = o.endpoint_id returning 1
       ) select count(*)::int as count from gone`,
      [beforeMs, limit],
    );
    return rows[0]?.count ?? 0;
  }

  async backlog(
    nowMs: number,
  ): Promise<{ readonly pending: number; readonly oldestDueMs: number }> {
    const [row] = await this.#database.query<{ pending: number; oldest_ms: string | null }>(
      'notify-backlog',
      // Of each part there is an index that has all that is asked for.
      `select sum(p.pending)::int as pending, (extract(epoch from min(p.oldest)) * 1000)::bigint as oldest_ms
       from (
         select count(*) as pending, min(d.next_attempt_at) as oldest
         from notify.delivery d where d.status = 1 and d.is_ready
         union all
         select count(*), min(d.next_attempt_at) from notify.delivery d where d.status = 1 and not d.is_ready
       ) p`,
      [],
    );
    const oldestMs = row?.oldest_ms == null ? nowMs : Number(row.oldest_ms);
    return { pending: row?.pending ?? 0, oldestDueMs: Math.max(0, nowMs - oldestMs) };
  }

  async nextDueMs(channel: Channel): Promise<number | undefined> {
    const [row] = await this.#database.query<{ next_ms: string | null }>(
      'notify-next-due',
      `select ceil(extract(epoch from notify.next_due($1::smallint)) * 1000)::bigint as next_ms`,
      [bitOfChannel(channel)],
    );
    return row?.next_ms == null ? undefined : Number(row.next_ms);
  }

  /** Stored beside the removal of their endpoint, so that this did not see them. */
  async #giveUpOrphans(rows: readonly DueRow[], nowMs: number): Promise<void> {
    if (rows.length === 0) return;
    await this.#database.queryRetried(
      'notify-give-up-orphans',
      `update notify.delivery d set status = ${STATUS_DEAD}, last_error = $3, claimed_until = null,
         died_at = to_timestamp($4::double precision / 1000)
       from unnest($1::uuid[], $2::text[]) k (notification_id, endpoint_id)
       where d.notification_id = k.notification_id and d.endpoint_id = k.endpoint_id and d.status = 1`,
      [
        rows.map((row) => row.claimed_id),
        rows.map((row) => row.claimed_endpoint),
        ENDPOINT_REMOVED,
        nowMs,
      ],
    );
  }

  #dueDelivery(row: DueRow): readonly DueDelivery[] {
    // The notification may have been purged meanwhile, and its deliveries with it.
    if (row.channel === null || row.id === null) return [];
    const endpoint = {
      tenantId: row.claimed_tenant,
      id: row.claimed_endpoint,
      userId: row.endpoint_user,
      channel: channelOfBit(row.channel),
      address: row.address,
    };
    return [
      {
        notification: bareNotificationFromRow(row),
        endpoint,
        signingSecrets: openSecrets(this.#secrets, endpoint, [
          row.signing_secret,
          row.previous_secret,
        ]),
        attempts: row.attempts,
        isTest: false,
      },
    ];
  }
}

function busyMembers({ busy }: ClaimRequest): Record<string, unknown> {
  return Object.fromEntries(
    busy.map(({ tenantId, count, afterEndpoint, endpoints }) => [
      tenantId,
      { n: count, after: afterEndpoint, e: Object.fromEntries(endpoints) },
    ]),
  );
}

/**
 * An endpoint's row is written only when it begins to fail, is disabled or succeeds again, so that deliveries to one do not
 * wait for each other.
 */
const SETTLE_TEXT = `
with given as (
  select * from jsonb_to_recordset($1::jsonb) as g (notification_id uuid, endpoint_id text,
    status smallint, attempts integer, error text, next_ms double precision, entry jsonb)
), settled as (
  update notify.delivery d set status = g.status, attempts = g.attempts, last_error = g.error,
    is_ready = false, claimed_until = null,
    next_attempt_at = coalesce(to_timestamp(g.next_ms / 1000), d.next_attempt_at),
    died_at = case when g.status = 3 then to_timestamp($2::double precision / 1000) end,
    attempt_log = (case when jsonb_array_length(d.attempt_log) >= ${ATTEMPTS_KEPT} then d.attempt_log - 0
      else d.attempt_log end) || g.entry
  from given g
  where d.notification_id = g.notification_id and d.endpoint_id = g.endpoint_id and d.status = 1
  returning d.tenant_id, d.endpoint_id, g.status
), told as (
  select s.tenant_id, s.endpoint_id, bool_or(s.status = 2) as has_sent
  from settled s group by s.tenant_id, s.endpoint_id
), changed as materialized (
  select e.tenant_id, e.id, t.has_sent from told t
    join notify.endpoint e on e.tenant_id = t.tenant_id and e.id = t.endpoint_id
  where case when t.has_sent then e.failing_since is not null
    else e.failing_since is null
      or e.disabled_at is null and $3::double precision is not null
        and e.failing_since <= to_timestamp(($2::double precision - $3::double precision) / 1000) end
  order by e.tenant_id, e.id for update of e
), put as (
  update notify.endpoint e set
    failing_since = case when c.has_sent then null
      else coalesce(e.failing_since, to_timestamp($2::double precision / 1000)) end,
    disabled_at = case when not c.has_sent
        and e.failing_since <= to_timestamp(($2::double precision - $3::double precision) / 1000)
      then coalesce(e.disabled_at, to_timestamp($2::double precision / 1000)) else e.disabled_at end
  from changed c where e.tenant_id = c.tenant_id and e.id = c.id
  returning e.tenant_id, e.id, e.failing_since, e.disabled_at
)
select p.tenant_id, p.id, round(extract(epoch from p.failing_since) * 1000)::bigint as failing_ms
from put p where p.disabled_at = to_timestamp($2::double precision / 1000)`;
