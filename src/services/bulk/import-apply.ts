import type { ClientBase } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { violatedConstraint } from '../../store/postgres/pg-errors.ts';
import {
  applyImportChunk,
  type EmptyCheck,
  finishWhole,
  type ImportPart,
  insertWhole,
  isWaitedFor,
  checkEmpty,
  selectImportedChanges,
  selectStaged,
  touchImport,
} from '../../store/sql/writes/tuple-imports.ts';
import type { AuditSink, WriteMeta } from '../ports.ts';
import { storeUnavailable } from '../writes/exclusive-writer.ts';
import type { BulkParts } from './bulk-ports.ts';
import { refusalOfImported } from './tuple-admission.ts';

/** An import whose rows are all staged. */
export type StagedImport = {
  readonly shard: ShardKey;
  readonly importNo: string;
  readonly attempt: string;
  readonly parts: readonly ImportPart[];
  readonly total: number;
  /** Version of the rules that the rows fit. */
  readonly rules: number;
  /** Rows that an earlier attempt has applied, and what came of them. */
  readonly applied: number;
  readonly written: number;
  readonly position: ImportPosition | null;
  readonly meta: WriteMeta;
  readonly signal: AbortSignal;
};

/** Result of an import. */
export type AppliedImport = { readonly written: number; readonly position: ImportPosition | null };

type ImportPosition = { readonly epoch: number; readonly revision: number };
/** Rows that have been committed, also when the rest fails. */
type Progress = { applied: number; written: number; position: ImportPosition | null };

export type ImportApplyParts = Pick<BulkParts, 'pool' | 'writer' | 'metrics' | 'rules'> & {
  readonly clock: Clock;
  /** Absent where audit is off. */
  readonly audit?: AuditSink | undefined;
  /** A chunk is given up after this long, in ms. */
  readonly chunkTimeoutMs: number;
};

/** Rows of one statement into an empty shard: others that wait for one of them wait about this long. */
const WHOLE_ROWS = 16_384;
const CHUNK_ROWS_START = 250;
const CHUNK_ROWS_MIN = 50;
/** The most rows that a change row and a step of a worker hold well. */
const CHUNK_ROWS_MAX = 2_000;
/** The shard is to be held this long; never more than 50 ms. */
const HELD_MS = 20;
const AUDIT_ROWS = 1_000;
const RECHECK_ROWS = 1_000;
/** Tries while what tuples must fit changes again and again. */
const ATTEMPTS_MAX = 5;

/** Another write came to the shard while an import was written whole: it continues in chunks. */
class ShardDisturbedError extends Error {}

/** The rules changed after the rows were checked against them. */
class RulesChangedError extends Error {}

/**
 * Writes staged rows to their shard. An empty shard gets them as a whole: they are inserted without its lock, which is
 * taken for the moment in which all become visible; instances that hold the shard reload it. Any other shard gets chunks
 * of one change each.
 */
export class ImportApply {
  readonly #parts: ImportApplyParts;

  constructor(parts: ImportApplyParts) {
    this.#parts = parts;
  }

  /** Errors: those of TupleWrites; CANCELLED; TUPLE_NOT_ADMITTED; `isAdopted`. */
  async apply(asStaged: StagedImport): Promise<AppliedImport> {
    let staged = asStaged;
    for (let attempt = 1; ; attempt++) {
      const progress = { ...staged };
      try {
        return await this.#applyBy(staged, progress);
      } catch (error) {
        if (!(error instanceof RulesChangedError)) throw error;
        if (attempt === ATTEMPTS_MAX) throw storeUnavailable(error);
        const { applied, written, position } = progress;
        const rules = await this.#recheck(staged, applied);
        staged = { ...staged, rules, applied, written, position };
      }
    }
  }

  async #applyBy(staged: StagedImport, progress: Progress): Promise<AppliedImport> {
    const { pool } = this.#parts;
    if (staged.applied === 0 && staged.total > 0) {
      const read = await checkEmpty(pool, staged.shard);
      let whole = read.isEmpty ? await this.#whole(staged, true) : undefined;
      if (whole === 'twice') whole = await this.#whole(staged, false);
      if (whole !== undefined && whole !== 'twice') return whole;
    }
    return await this.#chunks(staged, progress);
  }

  /** Checks the rows after `applied` against the rules now in force; returns their version. Errors: TUPLE_NOT_ADMITTED, RELATION_UNKNOWN. */
  async #recheck({ shard, importNo, signal }: StagedImport, applied: number): Promise<number> {
    const { pool, rules } = this.#parts;
    const now = await rules.fresh(shard.projectId);
    if (now.version === 0) return now.version;
    for (let from = applied; ; from += RECHECK_ROWS) {
      if (signal.aborted) throw cancelled();
      const tuples = await selectStaged(pool, importNo, from, RECHECK_ROWS);
      for (const [index, tuple] of tuples.entries()) {
        const refusal = refusalOfImported(now, tuple, `tuples[${from + index}]`);
        if (refusal !== undefined) throw refusal;
      }
      if (tuples.length < RECHECK_ROWS) return now.version;
    }
  }

  /** The database has the last word; this saves what it would refuse. */
  #checkRules({ shard, rules }: StagedImport): void {
    const known = this.#parts.rules.peek(shard.projectId);
    if (known !== undefined && known.version !== rules) throw new RulesChangedError();
  }

  /** undefined: not possible, since others write. 'twice': a tuple came twice, so that not all are distinct. */
  async #whole(
    staged: StagedImport,
    isDistinct: boolean,
  ): Promise<AppliedImport | 'twice' | undefined> {
    const { pool, writer, metrics } = this.#parts;
    const { shard, importNo, attempt, total, meta, signal } = staged;
    let found: EmptyCheck | undefined;
    let written = 0;
    const checkQuiet = async (client: ClientBase): Promise<void> => {
      if (signal.aborted) throw cancelled();
      const now = await checkEmpty(client, shard);
      const isAsFound = now.epoch === found?.epoch && now.revision === found.revision;
      if (!isAsFound || (await isWaitedFor(client))) throw new ShardDisturbedError();
    };
    const prepare = async (client: ClientBase): Promise<void> => {
      await client.query(`set local work_mem = '32MB'; set local enable_seqscan = off`);
      this.#checkRules(staged);
      written = 0;
      found = await checkEmpty(client, shard);
      if (!found.isEmpty) throw new ShardDisturbedError();
      for (let from = 0; from < total; from += WHOLE_ROWS) {
        const to = Math.min(total, from + WHOLE_ROWS);
        written += await insertWhole(
          client,
          shard,
          importNo,
          from,
          to,
          found.revision + 2,
          isDistinct,
        );
        await checkQuiet(client);
      }
      // Its commit takes what was inserted to the disk, so that the one under the lock has little left to.
      await touchImport(pool, importNo);
    };
    let forkId = '';
    let heldFromMs = 0;
    try {
      const result = await writer.prepared(shard, meta, { prepare, checkQuiet }, (transaction) => {
        heldFromMs = performance.now();
        this.#checkRules(staged);
        return transaction.change(shard, meta, async (commit) => {
          const { client } = transaction;
          const { epoch, revision } = found as EmptyCheck;
          const { rules } = staged;
          const whole = { importNo, attempt, rules, total, written, epoch, revision: revision + 2 };
          const version = await finishWhole(client, shard, whole, { ...meta, ...commit });
          if (version === undefined) throw new ShardDisturbedError();
          ({ forkId } = commit);
          return { epoch, revision: whole.revision, changes: '[]', settingsVersion: version };
        });
      });
      metrics.held((performance.now() - heldFromMs) / 1_000);
      metrics.imported(written, 'whole');
      const position = { epoch: result.epoch, revision: result.revision };
      await this.#audit(staged, position, forkId);
      return { written, position };
    } catch (error) {
      if (error instanceof ShardDisturbedError) return undefined;
      if (isDistinct && violatedConstraint(error) === 'relation_tuple_pkey') return 'twice';
      throw error;
    }
  }

  async #chunks(staged: StagedImport, progress: Progress): Promise<AppliedImport> {
    const { metrics } = this.#parts;
    const { total, signal } = staged;
    let rows = CHUNK_ROWS_START;
    while (progress.applied < total) {
      if (signal.aborted) throw cancelled();
      const to = chunkEnd(staged.parts, progress.applied, rows);
      const chunk = await this.#chunk(staged, progress.applied, to);
      metrics.held(chunk.heldMs / 1_000);
      metrics.imported(chunk.written, 'chunks');
      progress.applied = to;
      progress.written += chunk.written;
      progress.position = { epoch: chunk.epoch, revision: chunk.revision };
      const aim = Math.floor((rows * HELD_MS) / Math.max(1, chunk.heldMs));
      rows = Math.min(CHUNK_ROWS_MAX, rows * 2, Math.max(CHUNK_ROWS_MIN, aim));
    }
    return { written: progress.written, position: progress.position };
  }

  async #chunk(
    staged: StagedImport,
    from: number,
    to: number,
  ): Promise<ImportPosition & { readonly written: number; readonly heldMs: number }> {
    const { writer, chunkTimeoutMs } = this.#parts;
    const { shard, importNo, attempt, rules, meta } = staged;
    const nowMs = performance.timeOrigin + performance.now();
    const deadlineMs = Math.min(meta.deadlineMs, nowMs + chunkTimeoutMs);
    const chunkMeta = { ...meta, deadlineMs };
    let heldFromMs = 0;
    const done = await writer.exclusive([shard], chunkMeta, async (transaction) => {
      heldFromMs = performance.now();
      this.#checkRules(staged);
      let written = 0;
      const result = await transaction.change(shard, meta, async (commit) => {
        const ids = { ...meta, ...commit };
        const run = { importNo, attempt, rules };
        const chunk = await applyImportChunk(transaction.client, shard, run, from, to, ids);
        ({ written } = chunk);
        return chunk;
      });
      return { epoch: result.epoch, revision: result.revision, written };
    });
    return { ...done, heldMs: performance.now() - heldFromMs };
  }

  /** Writes an audit record for each row, as for any write; the change itself writes none. */
  async #audit(staged: StagedImport, position: ImportPosition, forkId: string): Promise<void> {
    const { pool, audit, clock } = this.#parts;
    if (audit === undefined) return;
    const { shard, importNo, total, meta } = staged;
    const { rpc, actingUserId, caller, requestId } = meta;
    const atMs = clock.nowMs();
    for (let from = 0; from < total; from += AUDIT_ROWS) {
      const changes = await selectImportedChanges(pool, importNo, from, from + AUDIT_ROWS);
      const written = { ...shard, ...position, forkId, changes, firstOrdinal: from };
      audit.tuplesChanged([{ ...written, rpc, actingUserId, caller, requestId, atMs }]);
    }
  }
}

/** Chunks end where parts do, so that their size in bytes is bounded, too. */
function chunkEnd(parts: readonly ImportPart[], applied: number, rows: number): number {
  let end = 0;
  for (const part of parts) {
    end += part.rowCount;
    if (end > applied) break;
  }
  return Math.min(end, applied + rows);
}

function cancelled(): AppError {
  return new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
}
