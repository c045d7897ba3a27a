import type pg from 'pg';

/**
 * One schema as sorted text: tables with their columns, constraints, indexes, storage settings,
 * triggers and functions, from the catalog. Names of migrations are part of it, their times are not.
 */
export async function dumpSchema(
  pool: pg.Pool,
  schema: 'public' | 'notify' = 'public',
): Promise<string> {
  const { rows } = await pool.query<{ line: string }>(DUMP.replaceAll('SCHEMA', schema));
  const table = schema === 'public' ? 'schema_migration' : 'notify_schema_migration';
  const migrations = await pool.query<{ name: string }>(
    `select name from public.${table} order by name collate "C"`,
  );
  const lines = [
    ...rows.map(({ line }) => line.trimEnd()),
    ...migrations.rows.map(({ name }) => `migration ${name}`),
  ];
  return `${lines.toSorted().join('\n')}\n`;
}

const DUMP = `select line from (
       select format('table %s: column %s %s %s%s%s', c.relname, lpad(a.attnum::text, 2, '0'), a.attname,
           format_type(a.atttypid, a.atttypmod),
           case when a.attcollation <> t.typcollation then ' collate ' || l.collname else '' end,
           case when a.attnotnull then ' not null' else '' end)
         || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as line
       from pg_attribute a join pg_class c on c.oid = a.attrelid
         join pg_type t on t.oid = a.atttypid
         left join pg_collation l on l.oid = a.attcollation
         left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
       where c.relnamespace = 'SCHEMA'::regnamespace and c.relkind in ('r', 'p')
         and a.attnum > 0 and not a.attisdropped
       union all
       select format('table %s: with %s', relname, array_to_string(reloptions, ', '))
       from pg_class where relnamespace = 'SCHEMA'::regnamespace and reloptions is not null
       union all
       select format('table %s: constraint %s %s', r.relname, c.conname, pg_get_constraintdef(c.oid))
       from pg_constraint c join pg_class r on r.oid = c.conrelid
       where c.connamespace = 'SCHEMA'::regnamespace and c.contype <> 'n'
       union all
       select format('table %s: %s', tablename, indexdef) from pg_indexes where schemaname = 'SCHEMA'
       union all
       select format('table %s: %s', c.relname, pg_get_triggerdef(t.oid))
       from pg_trigger t join pg_class c on c.oid = t.tgrelid
       where c.relnamespace = 'SCHEMA'::regnamespace and not t.tgisinternal
       union all
       -- The body stands in its migration; here only that it is that one.
       select format('function %s(%s) returns %s %s %s %s', proname,
         pg_get_function_arguments(oid), pg_get_function_result(oid), provolatile, proparallel,
         md5(pg_get_functiondef(oid)))
       from pg_proc where pronamespace = 'SCHEMA'::regnamespace
     ) lines`;
