import type { ClientBase, Connection, Pool, Submittable } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { StoredHeadRevision } from './changes.ts';
import { CopyRowParser, readCopyRow } from './copy-row-parser.ts';
import { CopySocket } from './copy-socket.ts';

/** Columns of a snapshot row, in this order. */
export const SNAPSHOT_COLUMNS = [
  'namespace',
  'object_id',
  'relation',
  'subject_namespace',
  'subject_id',
  'subject_relation',
  'expires_at_us',
  'condition_name',
  'condition_params',
] as const;

/** Consumer of the rows of a snapshot. Called synchronously; its arguments are valid during the call. */
export interface SnapshotSink {
  /** Called once, before the first row: the position that the rows are the state of. */
  begin(headRevision: StoredHeadRevision): void;
  /**
   * One tuple. Column i is `bytes` from `bounds[2i]` to `bounds[2i + 1]`, UTF-8 text, but for
   * expires_at_us (column 6), a big-endian 64-bit integer. A null column has start -1 and end -1.
   */
  row(bytes: Uint8Array, bounds: Int32Array): void;
  /** How long a slice may be; 2 ms if absent. */
  readonly sliceMs?: number | undefined;
  /** Instead of `row`, where there is one: as many tuples, the bounds of each behind those of the one before. */
  rows?(bytes: Uint8Array, bounds: Int32Array, rows: number): void;
  /** Asked between slices: a promise holds the snapshot up until it resolves. */
  ready?(): Promise<void> | undefined;
}

const SLICE_MS = 2;
/** Rows between two reads of the clock, and of one `SnapshotSink.rows` at most. */
const ROWS_TOGETHER = 64;

/**
 * Streams all tuples of a shard, with the position that they are the state of, from one
 * repeatable-read transaction. Rows come in no order, in slices of about 2 ms between which the
 * event loop runs; binary COPY needs no unescaping and makes no string.
 * Errors: SHARD_UNAVAILABLE when `signal` aborts or the connection fails midway; whatever the sink
 * throws. Cost: docs/benchmarks.md, snapshot-load; one connection of the pool for its duration.
 */
export function loadSnapshot(
  pool: Pool,
  shard: ShardKey,
  sink: SnapshotSink,
  signal?: AbortSignal,
): Promise<StoredHeadRevision> {
  return streamRows(pool, (client) => snapshotText(client, shard), sink, signal);
}

/** Loads like `loadSnapshot`, with the rows that `textOf` selects: see `snapshotText`. */
export async function streamRows(
  pool: Pool,
  textOf: (client: ClientBase) => string,
  sink: SnapshotSink,
  signal?: AbortSignal,
): Promise<StoredHeadRevision> {
  const shape = { headRevisions: 1, columns: SNAPSHOT_COLUMNS.length };
  const [headRevision] = await streamHeadRevisionsAndRows(pool, textOf, shape, sink, signal);
  return headRevision as StoredHeadRevision; // as many as were asked for
}

/**
 * Streams like `streamRows`, with a text that returns `headRevisions` head revisions, in their
 * order, and rows of so many columns.
 */
export async function streamHeadRevisionsAndRows(
  pool: Pool,
  textOf: (client: ClientBase) => string,
  shape: { readonly headRevisions: number; readonly columns: number },
  sink: Partial<SnapshotSink> & Pick<SnapshotSink, 'row'>,
  signal?: AbortSignal,
): Promise<readonly StoredHeadRevision[]> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    const text = textOf(client);
    return await new Promise<readonly StoredHeadRevision[]>((resolve, reject) => {
      client.query(new SnapshotQuery(text, shape, sink, signal, resolve, reject));
    });
  } catch (error) {
    // A COPY cannot be left halfway: the connection goes with it.
    broken ??= error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/**
 * The whole transaction as one message of the simple protocol: a small shard costs one round trip,
 * where five made up nearly all of its time. (COPY takes no parameters.)
 */
function snapshotText(client: ClientBase, shard: ShardKey): string {
  // A large shard takes longer than any statement should.
  return rowsText(client, shard, 'set local statement_timeout = 0;', '');
}

/**
 * Head revision and rows of a shard in one snapshot: `first` is run before them, `clauses` end the query of the rows, which have
 * the columns `more` behind those of a snapshot.
 */
export function rowsText(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  first: string,
  clauses: string,
  more: readonly string[] = [],
): string {
  const project = client.escapeLiteral(projectId);
  const tenant = client.escapeLiteral(tenantId);
  return `begin isolation level repeatable read, read only;
    ${first}
    select coalesce(s.epoch, gatehouse_epoch())::text, coalesce(s.seq, 0)::text,
      coalesce(s.stamp, 0)::text, coalesce(s.retained_from, 1)::text,
      coalesce(s.settings_version, 0)::text
    from (values (1)) one left join shard s on s.project_id = ${project} and s.tenant_id = ${tenant};
    copy (select ${[...SNAPSHOT_COLUMNS, ...more].join(', ')} from relation_tuple t
      where project_id = ${project} and tenant_id = ${tenant} ${clauses}) to stdout (format binary);
    commit`;
}

/**
 * A query for `client.query` that takes the head revisions, then the rows of COPY as they arrive. (pg-copy-streams gathers
 * them in a stream of buffers, which must be cut into rows again: 3 times the time.)
 */
class SnapshotQuery implements Submittable {
  readonly #text: string;
  readonly #sink: Partial<SnapshotSink> & Pick<SnapshotSink, 'row'>;
  readonly #headRevisionCount: number;
  readonly #signal: AbortSignal | undefined;
  readonly #resolve: (headRevisions: readonly StoredHeadRevision[]) => void;
  readonly #reject: (error: unknown) => void;
  readonly #parser: CopyRowParser;
  readonly #columns: number;
  /** Bounds of rows that were found and not handed over yet. */
  readonly #bounds: Int32Array;
  #bytes: Uint8Array = NO_BYTES;
  #rows = 0;
  #connection: Connection | undefined;
  #socket: CopySocket | undefined;
  readonly #headRevisions: StoredHeadRevision[] = [];
  #failed = false;
  #paused = false;
  #sliceStartMs = 0;
  #sinceClock = 0;

  constructor(
    text: string,
    shape: { readonly headRevisions: number; readonly columns: number },
    sink: Partial<SnapshotSink> & Pick<SnapshotSink, 'row'>,
    signal: AbortSignal | undefined,
    resolve: (headRevisions: readonly StoredHeadRevision[]) => void,
    reject: (error: unknown) => void,
  ) {
    this.#text = text;
    this.#headRevisionCount = shape.headRevisions;
    this.#sink = sink;
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#columns = shape.columns;
    this.#bounds = new Int32Array(
      2 * shape.columns * (sink.rows === undefined ? 1 : ROWS_TOGETHER),
    );
    this.#parser = new CopyRowParser(shape.columns, (bytes, bounds) => sink.row(bytes, bounds));
  }

  submit(connection: Connection): void {
    this.#connection = connection;
    this.#sliceStartMs = performance.now();
    if (this.#signal?.aborted === true) {
      this.#fail(abortError());
      return;
    }
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#socket = new CopySocket(connection, {
      message: (bytes, start, end) => this.#message(bytes, start, end),
      flush: () => this.#flush(),
    });
    connection.query(this.#text);
  }

  handleRowDescription(): void {
    // Five columns of text.
  }

  /** Only the head revisions come as rows, before the COPY. */
  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#failed) return;
    const [epoch, revision, forkId, retainedFrom, settingsVersion] = fields;
    try {
      const isOne =
        this.#headRevisions.length < this.#headRevisionCount && typeof forkId === 'string';
      assert(isOne, 'a shard has one head');
      const headRevision = {
        epoch: Number(epoch),
        revision: Number(revision),
        forkId,
        retainedFrom: Number(retainedFrom),
        settingsVersion: Number(settingsVersion),
      };
      this.#headRevisions.push(headRevision);
      this.#sink.begin?.(headRevision);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Called as long as the driver reads the socket. */
  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    if (this.#failed || this.#socket?.isRepeating === true) return;
    this.#socket?.seen(chunk);
    try {
      this.#parser.feed(chunk);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (!this.#paused && this.#isSliceOver()) {
      this.#connection?.stream.pause();
      this.#pause();
    }
  }

  /** A message of the COPY, which the driver has not seen. Returns whether there is time for another one. */
  #message(bytes: Buffer, start: number, end: number): boolean {
    try {
      this.#read(bytes, start, end);
    } catch (error) {
      this.#fail(error);
      return true;
    }
    if (!this.#isSliceOver()) return true;
    this.#pause();
    return false;
  }

  #read(bytes: Buffer, start: number, end: number): void {
    // One row a message, as the server sends them; the trailer is shorter than any row.
    if (this.#parser.isAtRow && end - start > 2) {
      const bounds = this.#bounds;
      const at = 2 * this.#columns * this.#rows;
      if (readCopyRow(bytes, start, end, this.#columns, bounds, at) === end) {
        if (this.#sink.rows === undefined) {
          this.#sink.row(bytes, bounds);
          return;
        }
        this.#bytes = bytes;
        this.#rows += 1;
        if (this.#rows === ROWS_TOGETHER) this.#flush();
        return;
      }
    }
    this.#flush();
    this.#parser.feed(bytes.subarray(start, end));
  }

  /** Hands over what was found. */
  #flush(): void {
    if (this.#rows === 0 || this.#failed) return;
    const rows = this.#rows;
    this.#rows = 0;
    try {
      this.#sink.rows?.(this.#bytes, this.#bounds, rows);
    } catch (error) {
      this.#fail(error);
    }
  }

  #isSliceOver(): boolean {
    if (++this.#sinceClock < ROWS_TOGETHER) return false;
    this.#sinceClock = 0;
    return performance.now() - this.#sliceStartMs >= (this.#sink.sliceMs ?? SLICE_MS);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    if (this.#failed || !text.startsWith('COPY')) return;
    try {
      this.#parser.finish();
    } catch (error) {
      this.#fail(error);
    }
  }

  handleReadyForQuery(): void {
    this.#socket?.stop();
    this.#signal?.removeEventListener('abort', this.#onAbort);
    if (this.#failed) return;
    if (this.#headRevisions.length === this.#headRevisionCount) this.#resolve(this.#headRevisions);
    else this.#reject(new Error('a snapshot without its head'));
  }

  handleError(error: Error): void {
    this.#socket?.stop();
    this.#signal?.removeEventListener('abort', this.#onAbort);
    if (this.#failed) return;
    this.#failed = true;
    this.#reject(error);
  }

  readonly #onAbort = (): void => this.#fail(abortError());

  /** Lets the event loop, and a sink that is behind, catch up; the socket holds the server back. */
  #pause(): void {
    this.#paused = true;
    setImmediate(() => {
      // A failed one is read no further, but a paused socket would not end.
      const wait = this.#failed ? undefined : this.#sink.ready?.();
      if (wait === undefined) this.#resume();
      else
        wait.then(
          () => this.#resume(),
          (error: unknown) => this.#fail(error),
        );
    });
  }

  #resume(): void {
    this.#paused = false;
    this.#sliceStartMs = performance.now();
    this.#socket?.resume();
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#socket?.stop();
    this.#reject(error);
    this.#connection?.stream.destroy();
  }
}

const NO_BYTES = new Uint8Array(0);

function abortError(): AppError {
  return new AppError<AuthzReason>('SHARD_UNAVAILABLE', 'loading the shard was given up');
}

/**
 * About how many tuples a shard holds, by what the planner knows from the last ANALYZE: may be far off for a shard that
 * was filled since, or a small one. Errors: the driver's. Cost: planning alone, below 1 ms.
 */
export async function estimateTuples(
  pool: Pool,
  { projectId, tenantId }: ShardKey,
): Promise<number> {
  type Plan = { readonly 'QUERY PLAN': readonly [{ readonly Plan: { 'Plan Rows': number } }] };
  const { rows } = await pool.query<Plan>({
    text: `explain (format json)
      select 1 from relation_tuple where project_id = $1::text and tenant_id = $2::text`,
    values: [projectId, tenantId],
  });
  return rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
}
