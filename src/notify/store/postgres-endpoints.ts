import type { EndpointState } from '../model/delivery.ts';
import { ENDPOINTS_PER_TENANT_MAX, type NotificationStore } from '../model/notification-store.ts';
import type { Addressee, Endpoint } from '../model/notification.ts';
import type { NotifyDatabase } from './notify-database.ts';
import { bitOfChannel, channelOfBit } from './postgres-rows.ts';
import type { SecretBox } from './secret-box.ts';
import { ENDPOINT_REMOVED, tooManyEndpoints } from './store-refusals.ts';

type EndpointRow = {
  readonly tenant_id: string;
  readonly id: string;
  readonly user_id: string;
  readonly channel: number;
  readonly address: string;
};
type StateRow = EndpointRow & {
  readonly failing_ms: string | null;
  readonly disabled_ms: string | null;
  readonly previous_ms: string | null;
};
type SecretRow = {
  readonly tenant_id: string;
  readonly id: string;
  readonly signing_secret: string;
  readonly previous_secret: string;
};

/** Where webhooks and mail of a tenant go. Signing secrets are written here, sealed, and read by claims alone. */
export class PostgresEndpoints implements Pick<
  NotificationStore,
  | 'putEndpoint'
  | 'hasSigningSecret'
  | 'deleteEndpoint'
  | 'listEndpoints'
  | 'endpointState'
  | 'addressee'
  | 'enableEndpoint'
  | 'rotateSecret'
> {
  readonly #database: NotifyDatabase;
  readonly #secrets: SecretBox;

  constructor(database: NotifyDatabase, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void> {
    const { tenantId, id, userId, channel, address } = endpoint;
    const sealed =
      signingSecret === undefined ? null : this.#secrets.seal(signingSecret, ownerOf(tenantId, id));
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
           signing_secret = coalesce($6, e.signing_secret),
           previous_secret = case when $6 is null then e.previous_secret else '' end,
           previous_until = case when $6 is null then e.previous_until end`,
        [tenantId, id, userId, bitOfChannel(channel), address, sealed],
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
        `update notify.delivery d set status = 3, last_error = $3, died_at = clock_timestamp(),
           claimed_until = null
         where d.tenant_id = $1 and d.endpoint_id = $2 and d.status = 1`,
        [tenantId, id, ENDPOINT_REMOVED],
      );
      return deleted.rowCount === 1;
    });
  }

  async endpointState(
    tenantId: string,
    id: string,
    nowMs: number,
  ): Promise<EndpointState | undefined> {
    const [row] = await this.#database.query<StateRow>(
      'notify-endpoint-state',
      `select e.tenant_id, e.id, e.user_id, e.channel, e.address,
         round(extract(epoch from e.failing_since) * 1000)::bigint as failing_ms,
         round(extract(epoch from e.disabled_at) * 1000)::bigint as disabled_ms,
         round(extract(epoch from e.previous_until) * 1000)::bigint as previous_ms
       from notify.endpoint e where e.tenant_id = $1 and e.id = $2`,
      [tenantId, id],
    );
    if (row === undefined) return undefined;
    const previousMs = msOf(row.previous_ms);
    return {
      endpoint: endpointFromRow(row),
      failingSinceMs: msOf(row.failing_ms),
      disabledAtMs: msOf(row.disabled_ms),
      previousSecretUntilMs: previousMs !== null && previousMs > nowMs ? previousMs : null,
    };
  }

  async addressee(tenantId: string, id: string, nowMs: number): Promise<Addressee | undefined> {
    const [row] = await this.#database.query<EndpointRow & SecretRow>(
      'notify-addressee',
      `select e.tenant_id, e.id, e.user_id, e.channel, e.address, e.signing_secret,
         case when e.previous_until > to_timestamp($3::double precision / 1000)
           then e.previous_secret else '' end as previous_secret
       from notify.endpoint e where e.tenant_id = $1 and e.id = $2`,
      [tenantId, id, nowMs],
    );
    if (row === undefined) return undefined;
    const endpoint = endpointFromRow(row);
    const stored = [row.signing_secret, row.previous_secret];
    return { endpoint, signingSecrets: openSecrets(this.#secrets, endpoint, stored) };
  }

  async enableEndpoint(tenantId: string, id: string): Promise<boolean> {
    const rows = await this.#database.queryRetried(
      'notify-enable',
      `update notify.endpoint e set disabled_at = null, failing_since = null
       where e.tenant_id = $1 and e.id = $2 returning 1 as enabled`,
      [tenantId, id],
    );
    return rows.length > 0;
  }

  rotateSecret(
    tenantId: string,
    id: string,
    secret: string,
    overlapUntilMs: number,
  ): Promise<boolean> {
    const owner = ownerOf(tenantId, id);
    return this.#database.transaction(async (client) => {
      const { rows } = await client.query<Pick<SecretRow, 'signing_secret'>>(
        `select e.signing_secret from notify.endpoint e
         where e.tenant_id = $1 and e.id = $2 and e.signing_secret <> '' for update`,
        [tenantId, id],
      );
      const [row] = rows;
      if (row === undefined) return false;
      // A repeated call must not put the new one in the place of the one before.
      const isRepeated = this.#secrets.open(row.signing_secret, owner) === secret;
      await client.query(
        `update notify.endpoint e set previous_until = to_timestamp($4::double precision / 1000),
           previous_secret = case when $5 then e.previous_secret else e.signing_secret end,
           signing_secret = case when $5 then e.signing_secret else $3 end
         where e.tenant_id = $1 and e.id = $2`,
        [tenantId, id, this.#secrets.seal(secret, owner), overlapUntilMs, isRepeated],
      );
      return true;
    });
  }

  /**
   * Seals what is plain, or was sealed with an older key, with the newest one; at most `limit` endpoints at once. Returns how
   * many were looked at. What no key opens stays as it is.
   */
  async sealAgain(
    after: { readonly tenantId: string; readonly id: string },
    limit: number,
  ): Promise<readonly { readonly tenantId: string; readonly id: string }[]> {
    const prefix = this.#secrets.newestPrefix;
    if (prefix === undefined) return [];
    const rows = await this.#database.query<SecretRow>(
      'notify-secrets-to-seal',
      `select e.tenant_id, e.id, e.signing_secret, e.previous_secret from notify.endpoint e
       where (e.tenant_id, e.id) > ($1, $2) order by e.tenant_id, e.id limit $3`,
      [after.tenantId, after.id, limit],
    );
    for (const row of rows) {
      for (const column of ['signing_secret', 'previous_secret'] as const) {
        if (row[column] !== '' && !row[column].startsWith(prefix)) await this.#seal(row, column);
      }
    }
    return rows.map((row) => ({ tenantId: row.tenant_id, id: row.id }));
  }

  async listEndpoints(tenantId: string): Promise<readonly Endpoint[]> {
    const rows = await this.#database.query<EndpointRow>(
      'notify-endpoints',
      `select e.tenant_id, e.id, e.user_id, e.channel, e.address from notify.endpoint e
       where e.tenant_id = $1 order by e.id`,
      [tenantId],
    );
    return rows.map(endpointFromRow);
  }

  async #seal(row: SecretRow, column: 'signing_secret' | 'previous_secret'): Promise<void> {
    const owner = ownerOf(row.tenant_id, row.id);
    const secret = this.#secrets.open(row[column], owner);
    if (secret === undefined) return;
    // Unless somebody has put another one meanwhile.
    await this.#database.query(
      `notify-seal-${column}`,
      `update notify.endpoint e set ${column} = $4
       where e.tenant_id = $1 and e.id = $2 and e.${column} = $3`,
      [row.tenant_id, row.id, row[column], this.#secrets.seal(secret, owner)],
    );
  }
}

/** Those of the stored secrets of `endpoint` that can be opened. */
export function openSecrets(
  box: SecretBox,
  { tenantId, id }: Endpoint,
  stored: readonly string[],
): readonly string[] {
  const owner = ownerOf(tenantId, id);
  return stored
    .filter((secret) => secret !== '')
    .map((secret) => box.open(secret, owner))
    .filter((secret) => secret !== undefined);
}

function ownerOf(tenantId: string, id: string): string {
  return `${tenantId}/${id}`;
}

function msOf(text: string | null): number | null {
  return text === null ? null : Number(text);
}

function endpointFromRow(row: EndpointRow): Endpoint {
  return {
    tenantId: row.tenant_id,
    id: row.id,
    userId: row.user_id,
    channel: channelOfBit(row.channel),
    address: row.address,
  };
}
