import { Client } from 'pg';
import { messageOf } from '../../core/files.ts';
import { CALL_MS_MAX, failure, type Observation } from './observation.ts';

/** The database of DATABASE_URL. Each check has its own connection. */
export type DoctorDatabase = {
  readonly url: string;
  /**
   * Observations of `check`; none without a connection, which `checkServer` reports. Errors: those
   * of `check`.
   */
  readonly use: (
    check: (client: Client) => Promise<readonly Observation[]>,
  ) => Promise<readonly Observation[]>;
  /** Same as `use`, but reports a failure without a connection. */
  readonly reach: DoctorDatabase['use'];
};

/** The database at a URL. Connects on demand. */
export function databaseOf(url: string): DoctorDatabase {
  return {
    url,
    use: (check) => withClient(url, check, () => []),
    reach: (check) => withClient(url, check, (error) => [unreachable(error)]),
  };
}

async function withClient(
  url: string,
  check: (client: Client) => Promise<readonly Observation[]>,
  onUnreached: (error: unknown) => readonly Observation[],
): Promise<readonly Observation[]> {
  // No server time-outs: poolers refuse the startup packet with them.
  const client = new Client({
    connectionString: url,
    application_name: 'gatehouse-doctor',
    connectionTimeoutMillis: CALL_MS_MAX,
    query_timeout: CALL_MS_MAX / 2,
  });
  client.on('error', ignoreLost);
  try {
    await client.connect();
  } catch (error) {
    client.end().catch(ignoreLost);
    return onUnreached(error);
  }
  try {
    return await check(client);
  } finally {
    // Not awaited: a server that hangs does not answer to that either.
    client.end().catch(ignoreLost);
  }
}

function ignoreLost(): void {
  // The running statement fails with it.
}

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'the password in DATABASE_URL is wrong',
  '28000':
    'the server admits no such login: look at its pg_hba.conf, or add sslmode to DATABASE_URL',
  '3D000': 'create the database: docs/operations.md, "A PostgreSQL of your own"',
  '53300': 'the server has no connection left: raise max_connections, or end others',
  '57P03': 'the server is starting, or stops: try again',
  ECONNREFUSED: 'start PostgreSQL, or put the host and port of DATABASE_URL right',
  ENOTFOUND: 'no such host is known: put DATABASE_URL right',
};

function unreachable(error: unknown): Observation {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const text = messageOf(error) || code;
  return failure(
    `no connection: ${text}`,
    ADVICE[code] ?? 'look at the network between here and PostgreSQL, and at DATABASE_URL',
  );
}
