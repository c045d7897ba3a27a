import type { Client } from 'pg';
import { messageOf } from '../../core/files.ts';
import { failure, fine, type Observation } from './observation.ts';

type Rights = {
  readonly role: string;
  readonly database: string;
  readonly makesTables: boolean;
  readonly readOnly: boolean;
  /** One table of the schema public that another role owns; null: none. */
  readonly foreignTable: string | null;
  readonly foreignOwner: string | null;
};

/**
 * Checks the rights that docs/operations.md, "A PostgreSQL of your own" requires of the role: its
 * own tables in schema public, and LISTEN.
 */
export async function checkRights(client: Client): Promise<readonly Observation[]> {
  const { rows } = await client.query<Rights>(
    `select current_user as role, current_database() as database,
       has_schema_privilege(current_user, 'public', 'create') as "makesTables",
       current_setting('transaction_read_only') = 'on' as "readOnly",
       t.name as "foreignTable", t.owner as "foreignOwner"
     from (values (1)) one (x) left join lateral (
       select c.relname::text as name, pg_get_userbyid(c.relowner)::text as owner from pg_class c
       where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
         and c.relname in ('schema_migration', 'instance', 'relation_tuple', 'project')
         and not pg_has_role(current_user, c.relowner, 'usage')
       order by c.relname limit 1) t on true`,
  );
  const [rights] = rows;
  if (rights === undefined) return [failure('the server says nothing of them')];
  const { role, database, makesTables, readOnly, foreignTable, foreignOwner } = rights;
  const seen: Observation[] = [];
  if (!makesTables) {
    seen.push(
      failure(
        `${role} may not make tables in schema public of ${database}`,
        `alter database ${quoted(database)} owner to ${quoted(role)}: docs/operations.md, "A PostgreSQL of your own"`,
      ),
    );
  }
  if (foreignTable !== null) {
    seen.push(
      failure(
        `${role} does not own the table ${foreignTable}, which is ${foreignOwner}'s`,
        `connect as ${foreignOwner}, or reassign owned by ${quoted(foreignOwner ?? '')} to ${quoted(role)}`,
      ),
    );
  }
  if (readOnly) {
    seen.push(
      failure(
        `sessions of ${role} may only read`,
        `alter role ${quoted(role)} reset default_transaction_read_only, and look at the database's`,
      ),
    );
  }
  seen.push(...(await listenSeen(client)));
  return seen.length > 0 ? seen : [fine(`${role} may make tables in ${database}, and listen`)];
}

async function listenSeen(client: Client): Promise<readonly Observation[]> {
  try {
    await client.query('listen gatehouse_doctor; unlisten gatehouse_doctor');
    return [];
  } catch (error) {
    return [failure(`LISTEN is refused: ${messageOf(error)}`, 'connect to PostgreSQL itself')];
  }
}

/** The name as an identifier of SQL. */
function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
