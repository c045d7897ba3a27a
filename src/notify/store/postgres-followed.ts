import {
  ATTEMPT_OUTCOMES,
  type Attempt,
  type DeadQuery,
  type DeliveryKey,
  type DeliveryPage,
  type DeliveryQuery,
  type DeliveryRecord,
  type RetriedPage,
} from '../model/delivery.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import type { NotifyDatabase } from './notify-database.ts';
import { numberOfStatus, channelOfBit, statusOfNumber } from './postgres-rows.ts';
import { notRetriable, unknownDelivery } from './store-refusals.ts';

/** [time in ms, index of the outcome, status of the answer, ms, error, answer] */
type AttemptRow = readonly [number, number, number, number, string, string];

type RecordRow = {
  readonly notification_id: string;
  readonly endpoint_id: string;
  readonly tenant_id: string;
  readonly user_id: string;
  readonly channel: number;
  readonly status: number;
  readonly attempts: number;
  readonly last_error: string;
  readonly is_running: boolean;
  readonly next_ms: string;
  readonly created_ms: string;
  readonly died_ms: string | null;
  readonly attempt_log: readonly AttemptRow[];
};

/** Deliveries that one page looks at before it is cut. */
const LOOK_MAX = 5_000;
/** Between the time in an id and that of its notification. */
const ID_SLACK_MS = 60_000;
const STATUS_SENT = 2;
const STATUS_DEAD = 3;
const OLDEST: DeliveryKey = {
  notificationId: '00000000-0000-0000-0000-000000000000',
  endpointId: '',
};
const NEWEST: DeliveryKey = {
  notificationId: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  endpointId: '',
};

const RECORD_COLUMNS = `d.notification_id, d.endpoint_id, d.tenant_id, n.user_id, d.channel, d.status,
  d.attempts, d.last_error, d.attempt_log,
  d.status = 1 and coalesce(d.claimed_until > to_timestamp($2::double precision / 1000), false) as is_running,
  round(extract(epoch from d.next_attempt_at) * 1000)::bigint as next_ms,
  round(extract(epoch from n.created_at) * 1000)::bigint as created_ms,
  round(extract(epoch from d.died_at) * 1000)::bigint as died_ms`;

/** What is asked about deliveries, and what may be done about them. */
export class PostgresFollowed implements Pick<
  NotificationStore,
  'listDeliveries' | 'findDelivery' | 'retryDelivery' | 'retryDead'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  /** Cost: at most LOOK_MAX rows of the tenant, by time, whatever the filters leave of them. */
  async listDeliveries(query: DeliveryQuery, nowMs: number): Promise<DeliveryPage> {
    const { after, limit } = query;
    const isUnsent = query.status === 'pending' || query.status === 'dead';
    // Where the index of what is not sent serves, it is said in its own words.
    const looked = `select d.* from notify.delivery d
      where d.tenant_id = $1 and (d.notification_id, d.endpoint_id) < ($3::uuid, $4::text)
        and d.notification_id >= $5::uuid ${isUnsent ? `and d.status <> ${STATUS_SENT}` : ''}
      order by d.notification_id desc, d.endpoint_id desc limit ${LOOK_MAX}`;
    const from = after ?? firstKey(query.untilMs);
    const values = [
      query.tenantId,
      nowMs,
      from.notificationId,
      from.endpointId,
      idAt((query.fromMs ?? 0) - ID_SLACK_MS),
    ];
    const rows = await this.#database.query<RecordRow>(
      isUnsent ? 'notify-deliveries-unsent' : 'notify-deliveries',
      `select ${RECORD_COLUMNS} from (${looked}) d
         join notify.notification n on n.id = d.notification_id
       where ($6::smallint is null or d.status = $6) and ($7 = '' or d.endpoint_id = $7)
         and ($8 = '' or n.user_id = $8)
         and ($9::double precision is null or n.created_at >= to_timestamp($9 / 1000))
         and ($10::double precision is null or n.created_at < to_timestamp($10 / 1000))
       order by d.notification_id desc, d.endpoint_id desc limit $11`,
      [
        ...values,
        query.status === null ? null : numberOfStatus(query.status),
        query.endpointId,
        query.userId,
        query.fromMs,
        query.untilMs,
        limit + 1,
      ],
    );
    const deliveries = rows.slice(0, limit).map(recordFromRow);
    if (rows.length > limit) return { deliveries, next: deliveries.at(-1) ?? null };
    // Too few: either that was all, or the look was cut at this row.
    const [last] = await this.#database.query<RecordRow>(
      isUnsent ? 'notify-deliveries-unsent-end' : 'notify-deliveries-end',
      `select d.notification_id, d.endpoint_id, $2::double precision as unused
       from (${looked}) d offset ${LOOK_MAX - 1}`,
      values,
    );
    const next =
      last === undefined
        ? null
        : { notificationId: last.notification_id, endpointId: last.endpoint_id };
    return { deliveries, next };
  }

  async findDelivery(
    tenantId: string,
    key: DeliveryKey,
    nowMs: number,
  ): Promise<DeliveryRecord | undefined> {
    const [row] = await this.#database.query<RecordRow>(
      'notify-delivery',
      `select ${RECORD_COLUMNS} from notify.delivery d
         join notify.notification n on n.id = d.notification_id
       where d.tenant_id = $1 and d.notification_id = $3::uuid and d.endpoint_id = $4`,
      [tenantId, nowMs, key.notificationId, key.endpointId],
    );
    return row === undefined ? undefined : recordFromRow(row);
  }

  retryDelivery(tenantId: string, key: DeliveryKey, nowMs: number): Promise<void> {
    return this.#database.transaction(async (client) => {
      const { rows } = await client.query<{
        status: number;
        is_running: boolean;
        is_disabled: boolean | null;
      }>(
        `select d.status, coalesce(d.claimed_until > to_timestamp($4::double precision / 1000), false)
           as is_running,
           (select e.disabled_at is not null from notify.endpoint e
            where e.tenant_id = d.tenant_id and e.id = d.endpoint_id) as is_disabled
         from notify.delivery d
         where d.tenant_id = $1 and d.notification_id = $2::uuid and d.endpoint_id = $3 for update of d`,
        [tenantId, key.notificationId, key.endpointId, nowMs],
      );
      const [row] = rows;
      if (row === undefined) throw unknownDelivery();
      if (row.status === STATUS_SENT) throw notRetriable('sent');
      if (row.status === 1 && row.is_running) throw notRetriable('running');
      if (row.is_disabled === null) throw notRetriable('removed');
      if (row.is_disabled) throw notRetriable('disabled');
      await client.query(
        `update notify.delivery d set status = 1, is_ready = true, claimed_until = null, died_at = null,
           next_attempt_at = to_timestamp($4::double precision / 1000)
         where d.tenant_id = $1 and d.notification_id = $2::uuid and d.endpoint_id = $3`,
        [tenantId, key.notificationId, key.endpointId, nowMs],
      );
    });
  }

  /** Cost: at most LOOK_MAX rows of the tenant that are not sent, oldest notification first. */
  async retryDead(query: DeadQuery, nowMs: number): Promise<RetriedPage> {
    const { notificationId, endpointId } = query.after ?? OLDEST;
    const [row] = await this.#database.queryRetried<RetriedPage>('notify-retry-dead', RETRY_DEAD, [
      query.tenantId,
      notificationId,
      endpointId,
      query.endpointId,
      query.diedFromMs,
      query.diedUntilMs,
      query.limit,
      nowMs,
    ]);
    return row ?? { retried: 0, skipped: 0, next: null };
  }
}

/**
 * Goes forward by key, so that what dies again meanwhile lies behind, and a loop over pages ends. Rows are locked in that order,
 * and looked at again once they are.
 */
const RETRY_DEAD = `
with looked as materialized (
  select d.notification_id, d.endpoint_id, d.status = ${STATUS_DEAD} and ($4 = '' or d.endpoint_id = $4)
    and round(extract(epoch from d.died_at) * 1000) >= $5::double precision
    and round(extract(epoch from d.died_at) * 1000) < $6::double precision as is_meant
  from notify.delivery d
  where d.tenant_id = $1 and d.status <> ${STATUS_SENT} and (d.notification_id, d.endpoint_id) > ($2::uuid, $3::text)
  order by d.notification_id, d.endpoint_id limit ${LOOK_MAX}
), counted as materialized (
  select l.*, count(*) over so_far as place, count(*) filter (where l.is_meant) over so_far as meant
  from looked l window so_far as (order by l.notification_id, l.endpoint_id rows unbounded preceding)
), dead as materialized (
  select d.notification_id, d.endpoint_id, e.id is not null and e.disabled_at is null as can_go
  from counted c
    join notify.delivery d on d.notification_id = c.notification_id and d.endpoint_id = c.endpoint_id
    left join notify.endpoint e on e.tenant_id = d.tenant_id and e.id = d.endpoint_id
  where c.is_meant and c.meant <= $7::int and d.status = ${STATUS_DEAD}
  order by d.notification_id, d.endpoint_id for update of d
), retried as (
  update notify.delivery d set status = 1, is_ready = true, claimed_until = null, died_at = null,
    next_attempt_at = to_timestamp($8::double precision / 1000)
  from dead g where g.can_go and d.notification_id = g.notification_id and d.endpoint_id = g.endpoint_id
  returning 1
)
select (select count(*)::int from retried) as retried,
  (select count(*)::int from dead g where not g.can_go) as skipped,
  (select json_build_object('notificationId', c.notification_id, 'endpointId', c.endpoint_id) from counted c
   where case when (select max(o.meant) from counted o) > $7::int then c.is_meant and c.meant = $7::int
     else c.place = ${LOOK_MAX} end) as next`;

/** As `notify.delivery.attempt_log` keeps it. */
export function attemptToRow(attempt: Attempt): AttemptRow {
  const { atMs, outcome, answerStatus, tookMs, error, answer } = attempt;
  return [atMs, ATTEMPT_OUTCOMES.indexOf(outcome), answerStatus, tookMs, error, answer];
}

function attemptFromRow([atMs, outcome, answerStatus, tookMs, error, answer]: AttemptRow): Attempt {
  const known = ATTEMPT_OUTCOMES[outcome] ?? 'failed';
  return { atMs, outcome: known, answerStatus, tookMs, error, answer };
}

function recordFromRow(row: RecordRow): DeliveryRecord {
  const status = statusOfNumber(row.status);
  return {
    notificationId: row.notification_id,
    endpointId: row.endpoint_id,
    tenantId: row.tenant_id,
    userId: row.user_id,
    channel: channelOfBit(row.channel),
    status,
    attempts: row.attempts,
    lastError: row.last_error,
    isRunning: row.is_running,
    createdAtMs: Number(row.created_ms),
    nextAttemptMs: status === 'pending' && !row.is_running ? Number(row.next_ms) : null,
    diedAtMs: row.died_ms === null ? null : Number(row.died_ms),
    log: row.attempt_log.map(attemptFromRow),
  };
}

function firstKey(untilMs: number | null): DeliveryKey {
  if (untilMs === null) return NEWEST;
  return { notificationId: idAt(untilMs + ID_SLACK_MS), endpointId: '' };
}

/** The lowest id of that time. */
function idAt(ms: number): string {
  const hex = Math.min(Math.max(0, Math.floor(ms)), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
