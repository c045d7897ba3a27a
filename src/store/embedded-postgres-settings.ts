import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../shared/app-error.ts';
import { LOG_LINE_PREFIX } from './embedded-postgres-log.ts';
import type { StoreReason } from './store-reason.ts';

/** Only a name inside the socket's path: the server listens on no TCP port. */
export const SOCKET_PORT = 5432;
/** sun_path less its terminating zero, of the narrowest platform (macOS: 104). */
const SOCKET_PATH_BYTES_MAX = 103;

/**
 * Makes the data directory. As root it is open to pass through, since the server runs under another
 * user; what lies inside is not open. Errors: STORE_UNAVAILABLE when it cannot be made.
 */
export function makeDataDirectory(root: string): void {
  try {
    mkdirSync(root, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  } catch (cause) {
    throw new AppError<StoreReason>(
      'STORE_UNAVAILABLE',
      `the data directory ${root} cannot be made; set GATEWAY_DATA_DIR to one that can`,
      {},
      cause,
    );
  }
}

/** Inside the data directory, or a short one under the temporary directory when that path is too long. */
export function socketDirectory(root: string): string {
  const near = join(root, 'socket');
  const path = join(near, `.s.PGSQL.${SOCKET_PORT}`);
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX && !path.includes(',')) return near;
  const digest = createHash('sha256').update(root).digest('hex').slice(0, 16);
  return join(tmpdir(), `gatehouse-${digest}`);
}

/** Settings of the server. Nothing here trades durability for speed. */
export function serverSettings(
  socket: string,
  maxConnections: number,
): Readonly<Record<string, string>> {
  return {
    listen_addresses: '',
    unix_socket_directories: socket,
    unix_socket_permissions: '0700',
    port: String(SOCKET_PORT),
    max_connections: String(maxConnections),
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    shared_buffers: '128MB',
    wal_buffers: '16MB',
    max_wal_size: '2GB',
    min_wal_size: '256MB',
    checkpoint_timeout: '15min',
    checkpoint_completion_target: '0.9',
    maintenance_work_mem: '128MB',
    random_page_cost: '1.1',
    // Compiling costs more than our short statements take.
    jit: 'off',
    // Shared memory under /dev/shm is small in containers.
    max_parallel_workers_per_gather: '0',
    autovacuum_naptime: '15s',
    log_min_messages: 'warning',
    // Neither statements nor what they are about: both may quote callers.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    log_line_prefix: LOG_LINE_PREFIX,
  };
}
