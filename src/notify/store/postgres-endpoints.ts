import { ENDPOINTS_PER_TENANT_MAX, type NotificationStore } from '../model/notification-store.ts';
import type { Endpoint } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import { bitOfChannel, outboundChannelOfBit } from './postgres-rows.ts';
import { tooManyEndpoints } from './store-refusals.ts';

type EndpointRow = {
  readonly tenant_id: string;
  readonly id: string;
  readonly user_id: string;
  readonly channel: number;
  readonly address: string;
};

/** Where webhooks and mail of a tenant go. Signing secrets are written here and read by claims alone. */
export class PostgresEndpoints implements Pick<
  NotificationStore,
  'putEndpoint' | 'hasSigningSecret' | 'deleteEndpoint' | 'listEndpoints'
> {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void> {
    const { tenantId, id, userId, channel, address } = endpoint;
    return this.#database.transaction(async (client) => {
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
    });
  }

  async hasSigningSecret(tenantId: string, id: string): Promise<boolean> {
    const rows = await this.#database.query(
      'notify-has-secret',
      `select 1 from notify.endpoint e
       where e.tenant_id = $1 and e.id = $2 and e.signing_secret <> ''`,
      [tenantId, id],
    );
    return rows.length > 0;
  }

  deleteEndpoint(tenantId: string, id: string): Promise<boolean> {
    return this.#database.transaction(async (client) => {
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
    });
  }

  async listEndpoints(tenantId: string): Promise<readonly Endpoint[]> {
    const rows = await this.#database.query<EndpointRow>(
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
}
