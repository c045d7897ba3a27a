import type { ClientBase, Pool, QueryConfig } from 'pg';
import { assert } from '../../shared/assert.ts';
import { type Listening, startListening } from '../../store/listen.ts';
import { isRetryable } from '../../store/pg-errors.ts';
import { type PostgresTarget, createPool } from '../../store/pool.ts';
import { storeError } from '../../store/store-error.ts';
import type { StoreLog } from '../../store/store-log.ts';
import { inRetriedTransaction } from '../../store/transaction.ts';
import {
  CLAIM_LOOK_FACTOR,
  ENDPOINTS_PER_TENANT_MAX,
  type ClaimFilter,
  type DeliveryKey,
  type ListQuery,
  type NotificationStore,
  type PutResult,
  type StoredListener,
} from '../model/notification-store.ts';
import type {
  DueDelivery,
  Endpoint,
  NewNotification,
  Notification,
  OutboundChannel,
  UserKey,
} from '../model/notification.ts';
import { tooManyEndpoints, unknownNotification } from './memory-store.ts';
import {
  bareNotificationFromRow,
  bitOfChannel,
  DELIVERIES_COLUMN,
  NOTIFICATION_COLUMNS,
  notificationFromRow,
  outboundChannelOfBit,
  putMember,
  type NotificationRow,
} from './postgres-rows.ts';

/** Payload: tenant, user and sequence, separated by spaces, which no id holds. */
const STORED_CHANNEL = 'notify_stored';

/** Of one statement that Postgres asks to run again: a deadlock or a lock that took too long. */
const ATTEMPTS_MAX = 5;
const NONE: ReadonlyMap<string, Notification> = new Map();

export type PostgresStoreOptions = {
  readonly target: PostgresTarget;
  readonly poolMax: number;
  readonly log: StoreLog;
};

type PutRow = {
  readonly item: number;
  readonly id: string;
  readonly sequence: string;
  readonly is_duplicate: boolean;
  readonly deliveries: readonly (readonly [string, number])[];
};
type EndpointRow = {
  readonly tenant_id: string;
  readonly id: string;
  readonly user_id: string;
  readonly channel: number;
  readonly address: string;
};
type DueRow = Omit<NotificationRow, 'deliveries'> & {
  readonly endpoint_id: string;
  readonly endpoint_user: string;
  readonly channel: number;
  readonly address: string;
  readonly signing_secret: string;
  readonly attempts: number;
};

/** The durable driver, on the tables of migrations/notify; several processes may share them. */
export class PostgresStore implements NotificationStore {
  readonly #pool: Pool;
  readonly #listening: Listening;
  #onStored: StoredListener = () => undefined;

  constructor(options: PostgresStoreOptions) {
    const { target, log } = options;
    this.#pool = createPool(target, {
      max: options.poolMax,
      applicationName: 'gatehouse-notify',
      log,
    });
    this.#listening = startListening({
      target,
      channel: STORED_CHANNEL,
      onPayload: (payload) => {
        const [tenantId = '', userId = '', sequence = ''] = payload.split(' ');
        this.#onStored({ tenantId, userId }, Number(sequence));
      },
      onMayHaveMissed: () => this.#onStored(null, 0),
      log,
    });
  }

  /** The pool, for figures about it. */
  get pool(): Pick<Pool, 'totalCount' | 'idleCount' | 'waitingCount'> {
    return this.#pool;
  }

  /** Resolves once other processes' notifications are heard of. */
  get started(): Promise<void> {
    return this.#listening.started;
  }

  put(batch: readonly NewNotification[]): Promise<readonly PutResult[]> {
    const order = batch
      .map((_, index) => index)
      .sort((a, b) => compareUsers(batch[a] as NewNotification, batch[b] as NewNotification));
    const members = order.map((index) => putMember(batch[index] as NewNotification));
    const put = {
      name: 'notify-put',
      text: 'select item, id, sequence, is_duplicate, deliveries from notify.put($1::jsonb)',
      values: [JSON.stringify(members)],
    };
    const hasKeys = batch.some(({ dedupeKey }) => dedupeKey !== '');
    return this.#guarded(async () => {
      const { rows, earlier } = hasKeys
        ? await this.#putWithKeys(put)
        : // One statement is a transaction, and one way to the server and back instead of three.
          { rows: (await retried(() => this.#pool.query<PutRow>(put))).rows, earlier: NONE };
      const results: PutResult[] = Array.from({ length: batch.length });
      for (const row of rows) {
        const index = order[row.item] as number;
        results[index] = putResult(batch[index] as NewNotification, row, earlier);
      }
      return results;
    });
  }

  list(query: ListQuery): Promise<readonly Notification[]> {
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
    const [row] = await this.#query<{ head: string; oldest: string | null }>(
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
    const [row] = await this.#query<{ unread: string }>(
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
    return this.#guarded(() =>
      inRetriedTransaction(this.#pool, async (client) => {
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
      }),
    );
  }

  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void> {
    const { tenantId, id, userId, channel, address } = endpoint;
    return this.#guarded(() =>
      inRetriedTransaction(this.#pool, async (client) => {
        await client.query('select pg_advisory_xact_lock(hashtextextended($1, 20260))', [tenantId]);
        const { rows } = await client.query<{ others: number }>(
          `select count(*)::int as others from notify.endpoint e
           where e.tenant_id = $1 and e.id <> $2`,
          [tenantId, id],
        );
        if ((rows[0]?.others ?? 0) >= ENDPOINTS_PER_TENANT_MAX) throw tooManyEndpoints();
        await client.query(
          `insert into notify.endpoint as e
             (tenant_id, id, user_id, channel, address, signing_secret)
           values ($1, $2, $3, $4, $5, coalesce($6, ''))
           on conflict (tenant_id, id) do update set user_id = excluded.user_id,
             channel = excluded.channel, address = excluded.address,
             signing_secret = coalesce($6, e.signing_secret)`,
          [tenantId, id, userId, bitOfChannel(channel), address, signingSecret ?? null],
        );
      }),
    );
  }

  async hasSigningSecret(tenantId: string, id: string): Promise<boolean> {
    const rows = await this.#query(
      'notify-has-secret',
      `select 1 from notify.endpoint e
       where e.tenant_id = $1 and e.id = $2 and e.signing_secret <> ''`,
      [tenantId, id],
    );
    return rows.length > 0;
  }

  deleteEndpoint(tenantId: string, id: string): Promise<boolean> {
    return this.#guarded(() =>
      inRetriedTransaction(this.#pool, async (client) => {
        const deleted = await client.query(
          'delete from notify.endpoint e where e.tenant_id = $1 and e.id = $2',
          [tenantId, id],
        );
        await client.query(
          `update notify.delivery d set status = 3, last_error = 'the endpoint was removed'
           where d.tenant_id = $1 and d.endpoint_id = $2 and d.status = 1`,
          [tenantId, id],
        );
        return deleted.rowCount === 1;
      }),
    );
  }

  async listEndpoints(tenantId: string): Promise<readonly Endpoint[]> {
    const rows = await this.#query<EndpointRow>(
      'notify-endpoints',
      `select e.tenant_id, e.id, e.user_id, e.channel, e.address from notify.endpoint e
       where e.tenant_id = $1 order by e.id`,
      [tenantId],
    );
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      id: row.id,
      userId: row.user_id,
      channel: outboundChannelOfBit(row.channel),
      address: row.address,
    }));
  }

  async claimDue(
    nowMs: number,
    leaseMs: number,
    limit: number,
    filter?: ClaimFilter,
  ): Promise<readonly DueDelivery[]> {
    const without = filter?.without ?? [];
    const rows = await this.#query<DueRow>(
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
    const [row] = await this.#query<{ pending: number; oldest_ms: string | null }>(
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
    const [row] = await this.#query<{ next_ms: string | null }>(
      'notify-next-due',
      `select ceil(extract(epoch from min(d.next_attempt_at)) * 1000)::bigint as next_ms
       from notify.delivery d where d.status = 1 and ($1::smallint[] is null or d.channel = any($1))`,
      [channels?.map(bitOfChannel) ?? null],
    );
    return row?.next_ms == null ? undefined : Number(row.next_ms);
  }

  purge(beforeMs: number, limit: number): Promise<number> {
    return this.#guarded(() =>
      inRetriedTransaction(this.#pool, async (client) => {
        const { rows } = await client.query<{ count: number }>(
          `with old as (
             select n.tenant_id, n.user_id, n.sequence from notify.notification n
             where n.created_at < to_timestamp($1::double precision / 1000)
             order by n.created_at limit $2
           ), streams as (
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
      }),
    );
  }

  onStored(listener: StoredListener): void {
    this.#onStored = listener;
  }

  async ping(): Promise<void> {
    await this.#query('notify-ping', 'select 1', []);
  }

  async close(): Promise<void> {
    await this.#listening.stop();
    await this.#pool.end();
  }

  #putWithKeys(put: QueryConfig): Promise<{
    readonly rows: readonly PutRow[];
    readonly earlier: ReadonlyMap<string, Notification>;
  }> {
    return inRetriedTransaction(this.#pool, async (client) => {
      const { rows } = await client.query<PutRow>(put);
      // Here, since the locks on their streams keep them from being purged.
      const repeated = rows.filter((row) => row.is_duplicate).map(({ id }) => id);
      return { rows, earlier: await notificationsByIds(client, repeated) };
    });
  }

  async #notifications(
    rest: string,
    values: readonly unknown[],
    name: string,
  ): Promise<readonly Notification[]> {
    const rows = await this.#query<NotificationRow>(
      name,
      `select ${NOTIFICATION_COLUMNS}, ${DELIVERIES_COLUMN} from notify.notification n ${rest}`,
      values,
    );
    return rows.map(notificationFromRow);
  }

  async #settle(
    key: DeliveryKey,
    status: number,
    attempts: number,
    error: string,
    nextAttemptMs: number | null,
  ): Promise<void> {
    await this.#query(
      'notify-settle',
      `update notify.delivery d set status = $3, attempts = $4, last_error = $5,
         next_attempt_at =
           coalesce(to_timestamp($6::double precision / 1000), d.next_attempt_at)
       where d.notification_id = $1 and d.endpoint_id = $2 and d.status = 1`,
      [key.notificationId, key.endpointId, status, attempts, error, nextAttemptMs],
    );
  }

  #query<Row extends object>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    return this.#guarded(async () => {
      const { rows } = await this.#pool.query<Row>({ name, text, values: [...values] });
      return rows;
    });
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw storeError(error);
    }
  }
}

function putResult(
  request: NewNotification,
  row: PutRow,
  earlier: ReadonlyMap<string, Notification>,
): PutResult {
  if (!row.is_duplicate) {
    const { dedupeKey: _dedupeKey, ...rest } = request;
    const deliveries = row.deliveries.map(([endpointId, channel]) => ({
      channel: outboundChannelOfBit(channel),
      endpointId,
      status: 'pending' as const,
      attempts: 0,
      lastError: '',
    }));
    const sequence = Number(row.sequence);
    return {
      notification: { ...rest, sequence, readAtMs: null, deliveries },
      isDuplicate: false,
    };
  }
  const notification = earlier.get(row.id);
  assert(notification !== undefined, 'a duplicate is of a notification that is locked');
  return { notification, isDuplicate: true };
}

/** As inRetriedTransaction, for a single statement. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || !isRetryable(error)) throw error;
    }
  }
}

async function notificationsByIds(
  client: ClientBase,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Notification>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query<NotificationRow>({
    name: 'notify-by-ids',
    text: `select ${NOTIFICATION_COLUMNS}, ${DELIVERIES_COLUMN} from notify.notification n
      where n.id = any($1::uuid[])`,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, notificationFromRow(row)]));
}

function compareUsers(a: UserKey, b: UserKey): number {
  if (a.tenantId !== b.tenantId) return a.tenantId < b.tenantId ? -1 : 1;
  if (a.userId !== b.userId) return a.userId < b.userId ? -1 : 1;
  return 0;
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
