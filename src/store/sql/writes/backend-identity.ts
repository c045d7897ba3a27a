import type { ClientBase } from 'pg';

/** Names one session of the server; a pid alone would be reused. */
export type BackendIdentity = { readonly pid: number; readonly startedAt: string };

/** Which session of the server this connection is. */
export async function selectBackendIdentity(client: ClientBase): Promise<BackendIdentity> {
  const { rows } = await client.query<{ pid: number; started_at: string }>(
    `select a.pid, a.backend_start::text as started_at
     from pg_stat_activity a where a.pid = pg_backend_pid()`,
  );
  const row = rows[0];
  if (row === undefined) throw new Error('pg_stat_activity does not show this session');
  return { pid: row.pid, startedAt: row.started_at };
}

/**
 * Ends a session whose connection was lost, and waits until it is gone: what it was sent is then
 * either committed or will never be. Does nothing when it is gone already.
 */
export async function terminateBackend(
  client: ClientBase,
  backend: BackendIdentity,
  timeoutMs: number,
): Promise<void> {
  await client.query(
    `select pg_terminate_backend(a.pid, $3::bigint)
     from pg_stat_activity a where a.pid = $1::int and a.backend_start = $2::timestamptz`,
    [backend.pid, backend.startedAt, timeoutMs],
  );
}
