import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkTenantId, SEAT_NAMESPACE } from '../../model/names.ts';
import type { RawTuple } from '../../model/raw-tuple.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { checkTuple, microseconds } from '../../model/tuple-input.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import { isAdopted, storeError } from '../../store/postgres/pg-errors.ts';
import {
  beginImport,
  deleteImport,
  deleteStagedRows,
  endImportStream,
  type ImportPart,
  type ImportState,
  retireImport,
  stagePart,
} from '../../store/sql/writes/tuple-imports.ts';
import type { WriteMeta } from '../ports.ts';
import { openShard } from '../projects/management-call.ts';
import type { ImportedTuple } from '../tuples/tuple-requests.ts';
import { type BulkParts, tokenAt } from './bulk-ports.ts';
import { checkName } from './guarded-write.ts';
import { ImportApply, type ImportApplyParts } from './import-apply.ts';
import { type CutPart, PartCutter } from './import-parts.ts';
import { TupleAdmission } from './tuple-admission.ts';

const EXAMPLES_MAX = 3;
const TEXT_MAX = 100;

/** Tuples of seats among those of an import. Exports have them, and seat operations alone write them. */
export class LeftOutSeats {
  #count = 0;
  readonly #examples: string[] = [];

  /** Whether a tuple is one, and thereby left out. */
  countIfSeat({ namespace, objectId, relation, subject }: RawTuple): boolean {
    if (namespace !== SEAT_NAMESPACE) return false;
    this.#count += 1;
    if (this.#examples.length < EXAMPLES_MAX) {
      const kind = subject?.kind;
      const user = kind?.case === 'userId' ? `@user:${kind.value}` : '';
      this.#examples.push(`${namespace}:${objectId}#${relation}${user}`.slice(0, TEXT_MAX));
    }
    return true;
  }

  get found(): { readonly count: number; readonly examples: readonly string[] } {
    return { count: this.#count, examples: this.#examples };
  }
}

export type ImportTuplesRequest = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly dryRun: boolean;
  /** '' if none: the import cannot be resumed. */
  readonly importId: string;
  readonly meta: WriteMeta;
  readonly signal: AbortSignal;
};

export type ImportTuplesResult = {
  readonly received: number;
  readonly written: number;
  readonly unchanged: number;
  readonly token: string;
  readonly resumedAt: number;
  /** Tuples of the seat namespace, which only seat operations write: how many were left out, and the first of them. */
  readonly seats: { readonly count: number; readonly examples: readonly string[] };
};

export type TupleImportOptions = BulkParts &
  Omit<ImportApplyParts, 'pool' | 'writer' | 'metrics' | 'rules'> & {
    readonly ids: IdSource;
    /** Notified of what was left undone after an import was answered; the upkeep does it later. */
    readonly onError: (error: unknown) => void;
  };

/** Checking stops for other work after this long, in ms. */
const SLICE_MS = 2;
const CHECKS_PER_GUARD = 64;
const CLEAN_ROWS = 20_000;

/** Takes streams of tuples of any length. */
export class TupleImport {
  readonly #options: TupleImportOptions;
  readonly #apply: ImportApply;
  readonly #cleaning = new Set<Promise<void>>();

  constructor(options: TupleImportOptions) {
    this.#options = options;
    this.#apply = new ImportApply(options);
  }

  /**
   * ImportTuples: checks and stages all of `batches`, and only then writes. What `importId` names continues where it
   * ended: what was staged is compared and not staged again. Memory holds a part of the stream. Tuples of seats are left out. Errors: FIELD_* (`tuples[n].…`, n
   * counts the stream from 0), IMPORT_DIFFERS, IMPORT_TAKEN_OVER, CANCELLED, those of `batches`, of
   * the project and of TupleWrites; nothing was written unless writing had begun.
   */
  async import(
    request: ImportTuplesRequest,
    batches: AsyncIterable<readonly ImportedTuple[]>,
  ): Promise<ImportTuplesResult> {
    checkTenantId('tenant_id', request.tenantId);
    checkName('import_id', request.importId);
    const shard = await openShard(this.#options, request);
    if (request.dryRun) return await this.#dryRun(shard, batches);
    try {
      return await this.#run(shard, request, batches);
    } catch (error) {
      throw isAdopted(error) ? adopted() : storeError(error);
    }
  }

  /** Resolves when nothing is cleaned up any more. */
  async stop(): Promise<void> {
    await Promise.all(this.#cleaning);
  }

  async #dryRun(
    shard: ShardKey,
    batches: AsyncIterable<readonly ImportedTuple[]>,
  ): Promise<ImportTuplesResult> {
    let received = 0;
    const admission = new TupleAdmission(this.#options, shard.projectId);
    const seats = new LeftOutSeats();
    for await (const part of partsOf(shard, batches, admission, seats)) received += part.rowCount;
    received += seats.found.count;
    const token = await tokenAt(this.#options, shard, null);
    return { received, written: 0, unchanged: 0, token, resumedAt: 0, seats: seats.found };
  }

  async #run(
    shard: ShardKey,
    request: ImportTuplesRequest,
    batches: AsyncIterable<readonly ImportedTuple[]>,
  ): Promise<ImportTuplesResult> {
    const { pool, ids, slots } = this.#options;
    const { importId, meta, signal } = request;
    const attempt = ids.uuid();
    const state = await beginImport(pool, shard, importId === '' ? null : importId, attempt);
    const { importNo } = state;
    let isDone = false;
    try {
      const admission = new TupleAdmission(this.#options, shard.projectId);
      const left = new LeftOutSeats();
      const checked = partsOf(shard, batches, admission, left);
      const { parts, total } = await this.#stage(state, attempt, checked, signal);
      // May have changed while the stream came.
      await openShard(this.#options, request);
      const rules = admission.version;
      const staged = { shard, importNo, attempt, parts, total, rules, meta, signal };
      // Only now: whoever sends slowly keeps nobody from writing.
      await slots.acquire(signal);
      const { written, position } = await this.#apply
        .apply({ ...state, ...staged })
        .finally(() => slots.release());
      isDone = true;
      const resumedAt = state.parts.reduce((sum, part) => sum + part.rowCount, 0);
      const token = await tokenAt(this.#options, shard, position);
      const seats = left.found;
      const received = total + seats.count;
      return { received, written, unchanged: total - written, token, resumedAt, seats };
    } finally {
      // The rows of a finished or unnamed import are of no more use; an unfinished named one keeps
      // its parts, which record its content.
      if (isDone || importId === '') this.#clean(importNo, importId === '' ? attempt : undefined);
    }
  }

  /** Stages what is not staged yet; all of it is, afterwards. */
  async #stage(
    state: ImportState,
    attempt: string,
    checked: AsyncIterable<CutPart>,
    signal: AbortSignal,
  ): Promise<{ readonly parts: readonly ImportPart[]; readonly total: number }> {
    const { pool } = this.#options;
    const parts: ImportPart[] = [];
    let total = 0;
    // The next part is read and checked while one is on its way.
    let staging: Promise<void> = Promise.resolve();
    try {
      for await (const part of checked) {
        if (signal.aborted) throw cancelled();
        const known = state.parts[parts.length];
        if (known === undefined) {
          if (state.total !== null) throw differs();
          await staging;
          staging = this.#stagePart(state.importNo, attempt, parts.length, part, total + 1);
          staging.catch(ignoreAwaited);
        } else if (known.rowCount !== part.rowCount || !known.digest.equals(part.digest)) {
          throw differs();
        }
        const { rowCount, digest } = part;
        parts.push({ rowCount, digest });
        total += rowCount;
      }
    } finally {
      // The transaction under way must not outlive the attempt.
      await staging;
    }
    if (parts.length < state.parts.length) throw differs();
    if (state.total === null && !(await endImportStream(pool, state.importNo, attempt, total))) {
      throw adopted();
    }
    return { parts, total };
  }

  async #stagePart(
    importNo: string,
    attempt: string,
    index: number,
    part: CutPart,
    firstRow: number,
  ): Promise<void> {
    const client = await this.#options.pool.connect();
    let broken: Error | undefined;
    try {
      const lines = part.linesOf(importNo, firstRow);
      await stagePart(client, importNo, attempt, index, part, lines);
    } catch (error) {
      if (!isAdopted(error)) broken = error as Error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** `forgotten` is the attempt of an import without a name. Not awaited by the caller: what is left of it the upkeep does. */
  #clean(importNo: string, forgotten: string | undefined): void {
    const { pool, onError } = this.#options;
    const run = async (): Promise<void> => {
      if (forgotten !== undefined) await retireImport(pool, importNo, forgotten);
      await cleanImport(pool, importNo);
      if (forgotten !== undefined) await deleteImport(pool, importNo);
    };
    const cleaning: Promise<void> = run()
      .catch(onError)
      .finally(() => this.#cleaning.delete(cleaning));
    this.#cleaning.add(cleaning);
  }
}

/** Deletes the staged rows of an import, in small transactions. */
export async function cleanImport(
  pool: BulkParts['pool'],
  importNo: string,
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    if (signal?.aborted === true) return;
    if ((await deleteStagedRows(pool, importNo, CLEAN_ROWS)) < CLEAN_ROWS) return;
  }
}

/** Checks what arrives and cuts it into parts; other work gets its turn in between. */
async function* partsOf(
  shard: ShardKey,
  batches: AsyncIterable<readonly ImportedTuple[]>,
  admission: TupleAdmission,
  seats: LeftOutSeats,
): AsyncGenerator<CutPart, void, undefined> {
  const cutter = new PartCutter();
  await admission.begin();
  let at = 0;
  let sliceEndMs = performance.now() + SLICE_MS;
  for await (const batch of batches) {
    for (const raw of batch) {
      const name = `tuples[${at}]`;
      if (seats.countIfSeat(raw)) {
        at += 1;
        continue;
      }
      const tuple = checkTuple(name, raw, shard);
      if (!admission.admits(tuple)) await admission.checkAnew(tuple, name);
      const { writtenAt } = raw;
      const part = cutter.add(
        tuple,
        writtenAt === undefined ? undefined : microseconds(`${name}.written_at`, writtenAt),
      );
      at += 1;
      if (part !== undefined) yield part;
      if (at % CHECKS_PER_GUARD !== 0 || performance.now() < sliceEndMs) continue;
      await nextTurn();
      sliceEndMs = performance.now() + SLICE_MS;
    }
  }
  const rest = cutter.rest();
  if (rest !== undefined) yield rest;
}

function differs(): AppError {
  return new AppError<AuthzReason>(
    'IMPORT_DIFFERS',
    'import_id: names an import of other tuples: send the same ones, or take another id',
    { field: 'import_id' },
  );
}

function adopted(): AppError {
  return new AppError<AuthzReason>(
    'IMPORT_TAKEN_OVER',
    'import_id: a later attempt goes on with this import',
    { field: 'import_id' },
  );
}

function cancelled(): AppError {
  return new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
}

function ignoreAwaited(): void {
  // Awaited before the next part, or at the end.
}
