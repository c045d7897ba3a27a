import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { type Service, startService } from '../../bench/harness/service.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts';
import { migrate } from '../../src/store/migrate.ts';
import { freePorts } from '../../test/rollout/balancer.ts';

/** Several instances on one PostgreSQL of their own, each on a port that it keeps. */
export type Instances = {
  readonly ports: readonly number[];
  readonly services: (Service | undefined)[];
  /** Starts the one of this place; its milliseconds from spawn to ready are in `startMs`. */
  start(index: number, env?: Readonly<Record<string, string>>): Promise<Service>;
  /** On the database. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  stop(): Promise<void>;
};

/** A database and `count` places for instances, none of which runs yet. */
export async function prepareInstances(count: number): Promise<Instances> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'gatehouse-load-pg-'));
  const server = await startEmbeddedPostgres({ dataDirectory, maxConnections: 200 });
  const { user, password, database, host, port } = server.target;
  const query = `host=${encodeURIComponent(host)}&port=${port}`;
  const url = `postgres://${user}:${encodeURIComponent(password)}@localhost/${database}?${query}`;
  await migrate(server.target);
  const client = new Client(server.target);
  await client.connect();
  const ports = await freePorts(count);
  const services: (Service | undefined)[] = [];
  return {
    ports,
    services,
    start: async (index, env = {}) => {
      const service = await startService({
        DATABASE_URL: url,
        GATEWAY_CONNECT_PORT: String(ports[index]),
        GATEWAY_WORKERS: '1',
        ...env,
      });
      services[index] = service;
      return service;
    },
    query: async (text, values = []) =>
      (await client.query<Record<string, unknown>>(text, [...values])).rows,
    stop: async () => {
      for (const service of services) await service?.stop();
      await client.end();
      await server.stop();
      await rm(dataDirectory, { recursive: true, force: true });
    },
  };
}

/**
 * Gives each of the tenants `tuplesEach` tuples `document:d<n>#viewer@user:u<n mod 1000>`, past the services and
 * without change rows: as after a restore. Errors: those of the server.
 */
export async function fillTenants(
  instances: Instances,
  tenants: readonly string[],
  tuplesEach: number,
): Promise<void> {
  await instances.query(
    `insert into shard (project_id, tenant_id, seq, stamp, retained_from)
     select 'default', t, 1, 1, 2 from unnest($1::text[]) t order by t`,
    [tenants],
  );
  await instances.query(
    `insert into relation_tuple (project_id, tenant_id, namespace, object_id, relation,
       subject_namespace, subject_id, subject_relation, seq)
     select 'default', t, 'document', 'd' || n, 'viewer', '', 'u' || n % 1000, '', 1
     from unnest($1::text[]) t, generate_series(1, $2::int) n`,
    [tenants, tuplesEach],
  );
  await instances.query('analyze relation_tuple');
}

/** The body of a Check of the n-th tuple of a tenant, which is there. */
export function checkBody(tenant: string, n: number): string {
  return JSON.stringify({
    tenant_id: tenant,
    namespace: 'document',
    object_id: `d${n}`,
    relation: 'viewer',
    subject_user_id: `u${n % 1000}`,
  });
}
