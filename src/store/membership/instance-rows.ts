import type { ClientBase } from 'pg';

/** Channel on which instances notify each other that rows of `instance` changed. */
export const INSTANCE_CHANNEL = 'gatehouse_instance';

/** Registration of an instance in the database. */
export type Registration = {
  /** The row's flag: whether others may take it that this instance is not alone. */
  readonly isShared: boolean;
  /** Whether writes sent under this registration are let in. */
  readonly mayWrite: boolean;
  /** How often this row became alone. */
  readonly term: number;
  /** Rows of other instances. */
  readonly others: number;
  /** Rows that this call removed, since their leases had ended. */
  readonly fenced: number;
  /** While it may not write: milliseconds until what time alone can end does end; null is nothing. */
  readonly waitMs: number | null;
  /** The database's clock, microseconds since 1970. */
  readonly databaseUs: bigint;
};

type InstanceRow = {
  readonly is_member: boolean;
  readonly is_shared: boolean;
  readonly can_write: boolean;
  readonly term: string;
  readonly others: number;
  readonly fenced: number;
  readonly wait_ms: number | null;
  readonly database_us: string;
};

const COLUMNS =
  'is_member, is_shared, can_write, term::text as term, others, fenced, wait_ms, database_us::text as database_us';

/** Makes a row for an id that was never used, in shared mode. */
export async function registerInstance(
  client: ClientBase,
  instance: {
    readonly id: string;
    readonly region: string;
    /** Host and process, for people. */
    readonly holder: string;
    readonly leaseMs: number;
    /** Registrations that this process gave up. */
    readonly former: readonly string[];
    /** Nobody else can reach the database: rows of others are left-overs. */
    readonly isExclusive: boolean;
  },
): Promise<Registration> {
  const { rows } = await client.query<InstanceRow>(
    `select ${COLUMNS} from gatehouse_register($1::uuid, $2, $3, $4::float8, $5::uuid[], $6::boolean)`,
    [
      instance.id,
      instance.region,
      instance.holder,
      instance.leaseMs,
      instance.former,
      instance.isExclusive,
    ],
  );
  const registration = registrationOf(rows[0]);
  if (registration === undefined) throw new Error('a registration without its row');
  return registration;
}

/**
 * Extends the lease, removes the rows of others whose lease has ended, and asks to write where that
 * was not allowed yet. Undefined: the row is gone, the registration has ended.
 */
export async function renewInstance(
  client: ClientBase,
  id: string,
  leaseMs: number,
): Promise<Registration | undefined> {
  const { rows } = await client.query<InstanceRow>({
    name: 'renew_instance',
    text: `select ${COLUMNS} from gatehouse_renew($1::uuid, $2::float8)`,
    values: [id, leaseMs],
  });
  return registrationOf(rows[0]);
}

/** Notifies all that this instance has left the alone mode of `term`. */
export async function acknowledgeShared(
  client: ClientBase,
  id: string,
  term: number,
): Promise<void> {
  await client.query('select gatehouse_acknowledge($1::uuid, $2::bigint)', [id, term]);
}

/**
 * The term under which this instance is alone from now on, or undefined where another row is there.
 * Errors: a passing one while writes are under way (lock_timeout).
 */
export async function becomeAlone(
  client: ClientBase,
  id: string,
  leaseMs: number,
): Promise<number | undefined> {
  const { rows } = await client.query<{ term: string | null }>(
    'select gatehouse_become_alone($1::uuid, $2::float8)::text as term',
    [id, leaseMs],
  );
  const term = rows[0]?.term ?? null;
  return term === null ? undefined : Number(term);
}

/** Ends the registration. */
export async function leaveInstances(client: ClientBase, id: string): Promise<void> {
  await client.query('select gatehouse_leave($1::uuid)', [id]);
}

function registrationOf(row: InstanceRow | undefined): Registration | undefined {
  if (row?.is_member !== true) return undefined;
  return {
    isShared: row.is_shared,
    mayWrite: row.can_write,
    term: Number(row.term),
    others: row.others,
    fenced: row.fenced,
    waitMs: row.wait_ms,
    databaseUs: BigInt(row.database_us),
  };
}
