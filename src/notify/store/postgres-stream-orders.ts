import type { NotificationStore } from '../model/notification-store.ts';
import type { UserKey } from '../model/notification.ts';
import {
  type NewStreamOrder,
  type StreamGrant,
  type StreamOrder,
  type StreamOrders,
  type StreamStanding,
  TOKEN_SECONDS_MAX,
} from '../model/stream-order.ts';
import type { NotifyDatabase } from './notify-database.ts';

type OrderRow = {
  readonly revision: string;
  readonly kind: number;
  readonly tenant_id: string;
  readonly user_id: string;
  readonly token_id: string;
  readonly at_ms: string;
  /** Of the tenant, as it is now. */
  readonly ends_with_token: boolean;
};

const NUMBER_OF_KIND = { revoke_user: 1, revoke_token: 2, disconnect: 3, policy: 4 } as const;
const PAGE = 1_000;

/** Orders about streams. Their revisions become visible in order, since each takes the lock of the head. */
export class PostgresStreamOrders implements Pick<
  NotificationStore,
  | 'issueStreamToken'
  | 'streamStanding'
  | 'orderStreams'
  | 'streamOrdersAfter'
  | 'purgeStreamOrders'
  | 'endsWithToken'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  async issueStreamToken({ tenantId, userId }: UserKey): Promise<number> {
    const [row] = await this.#database.query<{ issued_ms: string }>(
      'notify-issue',
      'select notify.issue_ms($1, $2) as issued_ms',
      [tenantId, userId],
    );
    return Number(row?.issued_ms);
  }

  async streamStanding(grant: StreamGrant): Promise<StreamStanding> {
    const { tenantId, userId, tokenId, issuedAtMs } = grant;
    const [row] = await this.#database.query<{ is_revoked: boolean; ends_with_token: boolean }>(
      'notify-standing',
      `select exists (select 1 from notify.stream_order o where o.kind = 1
           and o.tenant_id = $1 and o.user_id = $2 and o.at_ms >= $4)
         or exists (select 1 from notify.stream_order o where o.kind = 2
           and o.tenant_id = $1 and o.token_id = $3 and $3 <> '') as is_revoked,
         coalesce((select p.ends_with_token from notify.stream_policy p where p.tenant_id = $1), false)
           as ends_with_token`,
      [tenantId, userId, tokenId, issuedAtMs],
    );
    return {
      isRevoked: row?.is_revoked ?? true,
      endsWithToken: row?.ends_with_token ?? false,
    };
  }

  orderStreams(order: NewStreamOrder): Promise<void> {
    return this.#database.transaction(async (client) => {
      if (order.kind === 'policy') {
        await client.query(
          `insert into notify.stream_policy (tenant_id, ends_with_token) values ($1, $2)
           on conflict (tenant_id) do update set ends_with_token = excluded.ends_with_token`,
          [order.tenantId, order.endsWithToken],
        );
      }
      await client.query('select notify.order_streams($1::smallint, $2, $3, $4)', [
        NUMBER_OF_KIND[order.kind],
        order.tenantId,
        'userId' in order ? order.userId : '',
        'tokenId' in order ? order.tokenId : '',
      ]);
    });
  }

  async streamOrdersAfter(revision: number | undefined): Promise<StreamOrders> {
    const [first] = await this.#database.query<{ head: string; oldest: string | null }>(
      'notify-orders-head',
      `select h.revision as head, (select min(o.revision) from notify.stream_order o) as oldest
       from notify.stream_order_head h`,
      [],
    );
    const head = Number(first?.head ?? 0);
    if (revision === undefined || head === revision) return { head, orders: [], hasGap: false };
    const rows = await this.#database.query<OrderRow>(
      'notify-orders',
      `select o.revision, o.kind, o.tenant_id, o.user_id, o.token_id, o.at_ms,
         coalesce(p.ends_with_token, false) as ends_with_token
       from notify.stream_order o left join notify.stream_policy p on p.tenant_id = o.tenant_id
       where o.revision > $1 order by o.revision limit ${PAGE}`,
      [revision],
    );
    const oldest = first?.oldest == null ? head + 1 : Number(first.oldest);
    const orders = rows.map((row) => ({ revision: Number(row.revision), order: orderOf(row) }));
    // A head that went back is of a database that was put back to an earlier time.
    return { head, orders, hasGap: revision + 1 < oldest || head < revision };
  }

  async purgeStreamOrders(limit: number): Promise<number> {
    const rows = await this.#database.queryRetried<{ count: number }>(
      'notify-purge-orders',
      `with old as materialized (
         select o.revision from notify.stream_order o
         where o.made_at < clock_timestamp() - make_interval(secs => $1) order by o.made_at limit $2
       ), gone as (
         delete from notify.stream_order o using old where o.revision = old.revision returning 1
       ) select count(*)::int as count from gone`,
      [2 * TOKEN_SECONDS_MAX, limit],
    );
    return rows[0]?.count ?? 0;
  }

  async endsWithToken(tenantId: string): Promise<boolean> {
    const [row] = await this.#database.query<{ ends_with_token: boolean }>(
      'notify-policy',
      'select p.ends_with_token from notify.stream_policy p where p.tenant_id = $1',
      [tenantId],
    );
    return row?.ends_with_token ?? false;
  }
}

function orderOf(row: OrderRow): StreamOrder {
  const { tenant_id: tenantId, user_id: userId, token_id: tokenId } = row;
  switch (row.kind) {
    case NUMBER_OF_KIND.revoke_user:
      return { kind: 'revoke_user', tenantId, userId, atMs: Number(row.at_ms) };
    case NUMBER_OF_KIND.revoke_token:
      return { kind: 'revoke_token', tenantId, tokenId };
    case NUMBER_OF_KIND.disconnect:
      return { kind: 'disconnect', tenantId, userId };
    default:
      return { kind: 'policy', tenantId, endsWithToken: row.ends_with_token };
  }
}
