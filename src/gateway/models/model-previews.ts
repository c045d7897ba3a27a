import type { AuthzReason } from '../../model/reasons.ts';
import {
  PREVIEW_AFTER,
  PREVIEW_BEFORE,
  PREVIEW_FAILED,
  type QueryArgs,
  type QueryKind,
  type QueryResults,
} from '../../protocol/queries.ts';
import type { ShardClient } from '../../protocol/shard-client.ts';
import { AppError } from '../../shared/app-error.ts';
import { type CallDefaults, sharedNowMs } from '../connect/call-context.ts';
import type { QueryRecorder, RecordedQuery } from '../reads/query-recorder.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import type { AskedQueries } from './preview-queries.ts';

export type ModelPreviewsOptions = CallDefaults & {
  readonly shards: Pick<ShardClient, 'query'>;
  readonly scopes: ReadScopes;
  /** Absent where no queries are recorded. */
  readonly recorder: QueryRecorder | undefined;
};

/** The model and the queries of a preview, and their project. */
export type PreviewCall = {
  readonly projectId: string;
  readonly modelJson: string;
  readonly queries: AskedQueries;
  /** Changed answers that are returned at most; those beyond are only counted. */
  readonly changesMax: number;
  readonly signal: AbortSignal;
};

/** A query whose answer the model would change. */
export type AnswerChange = {
  readonly query: RecordedQuery;
  readonly allowedBefore: boolean;
  readonly allowedAfter: boolean;
};

/** How far a preview has come. Counts grow; `changes` are those found since the one before. */
export type PreviewProgress = {
  readonly answered: number;
  readonly total: number;
  readonly newAllows: number;
  readonly newDenies: number;
  readonly failed: number;
  readonly changes: readonly AnswerChange[];
  readonly isTruncated: boolean;
};

/** Previews at once, guards included. */
const RUNNING_MAX = 2;
/** Queries of one call to a worker: as many wait for it there, at most, as for a large batch. */
const CHUNK = 500;
const PREVIEW_MS_MAX = 15 * 60_000;

/**
 * Asks queries under the model in force and under another one. Queries go to the workers by the hundreds, each
 * chunk at one revision under both models; the previewed model is gone from there with each answer.
 */
export class ModelPreviews {
  readonly #options: ModelPreviewsOptions;
  #running = 0;

  constructor(options: ModelPreviewsOptions) {
    this.#options = options;
  }

  /**
   * Progress after each chunk; the last one has them all. Errors: QUEUE_FULL where too many run; those of
   * ReadScopes.decide; DEADLINE_EXCEEDED after 15 minutes; the reason of the signal.
   */
  async *run(call: PreviewCall): AsyncGenerator<PreviewProgress, void, undefined> {
    if (this.#running >= RUNNING_MAX) {
      const limit = String(RUNNING_MAX);
      const problem = `${limit} previews are running already`;
      throw new AppError<AuthzReason>('QUEUE_FULL', problem, { limit });
    }
    this.#running += 1;
    try {
      yield* this.#run(call);
    } finally {
      this.#running -= 1;
    }
  }

  async *#run(call: PreviewCall): AsyncGenerator<PreviewProgress, void, undefined> {
    const untilMs = sharedNowMs() + PREVIEW_MS_MAX;
    const { queries, projectId } = call;
    const recorded = this.#options.recorder?.newest(projectId, queries.recorded) ?? [];
    const tally = new Tally(call.changesMax);
    tally.total = queries.given.length + recorded.length + queries.sampled;
    for (const asked of [queries.given, recorded]) {
      for (const chunk of chunksOf(asked)) yield* this.#answer(call, chunk, tally, untilMs);
    }
    let draws = 0;
    for (let left = queries.sampled; left > 0; left -= CHUNK) {
      const count = Math.min(left, CHUNK);
      const chunk = await this.#draw(call, count, draws++, untilMs);
      tally.total -= count - chunk.length;
      yield* this.#answer(call, chunk, tally, untilMs);
    }
    if (tally.isEmpty) yield tally.progress();
  }

  async #draw(
    call: PreviewCall,
    count: number,
    draw: number,
    untilMs: number,
  ): Promise<readonly RecordedQuery[]> {
    const { projectId, modelJson, queries } = call;
    const { seed, tenantId } = queries;
    // Each draw has a sequence of its own, and the same one whenever the seed is given again.
    const low = BigInt.asUintN(32, seed) ^ BigInt.asUintN(32, BigInt(draw) * 0x9e37_79b9n);
    const words = [Number(BigInt.asUintN(32, seed >> 32n)), Number(low)] as const;
    const args = { contextual: [], context: '', modelJson, count, seed: words };
    const drawn = await this.#send(call, tenantId, 'drawQueries', args, untilMs);
    return drawn.map((query) => ({ ...query, projectId, tenantId }));
  }

  /** Asks queries of one tenant until all are answered. */
  async *#answer(
    call: PreviewCall,
    chunk: readonly RecordedQuery[],
    tally: Tally,
    untilMs: number,
  ): AsyncGenerator<PreviewProgress, void, undefined> {
    const tenantId = chunk[0]?.tenantId ?? '';
    const { modelJson } = call;
    for (let rest = chunk; rest.length > 0;) {
      const args = { contextual: [], context: '', modelJson, queries: rest };
      const outcomes = await this.#send(call, tenantId, 'previewModel', args, untilMs);
      outcomes.forEach((outcome, index) => tally.add(rest[index] as RecordedQuery, outcome));
      rest = rest.slice(outcomes.length);
      yield tally.progress();
    }
  }

  async #send<K extends QueryKind>(
    { projectId, signal }: PreviewCall,
    tenantId: string,
    kind: K,
    args: QueryArgs[K],
    untilMs: number,
  ): Promise<QueryResults[K]> {
    const { shards, scopes, timeoutMsMax } = this.#options;
    signal.throwIfAborted();
    const deadlineMs = Math.min(untilMs, sharedNowMs() + timeoutMsMax);
    const request = { projectId, tenantId, token: '', deadlineMs };
    return await scopes.decide(request, signal, async (scope) => {
      const { result } = await shards.query(scope, kind, args, signal);
      return result;
    });
  }
}

/** Queries in their order, so that each chunk is of one tenant. */
function* chunksOf(
  queries: readonly RecordedQuery[],
): Generator<readonly RecordedQuery[], void, undefined> {
  let start = 0;
  for (let end = 1; end <= queries.length; end++) {
    const isSame = queries[end]?.tenantId === queries[start]?.tenantId;
    if (end < queries.length && isSame && end - start < CHUNK) continue;
    yield queries.slice(start, end);
    start = end;
  }
}

class Tally {
  total = 0;
  readonly #changesMax: number;
  readonly #counts = { answered: 0, newAllows: 0, newDenies: 0, failed: 0 };
  #changes: AnswerChange[] = [];
  #reported = 0;

  constructor(changesMax: number) {
    this.#changesMax = changesMax;
  }

  get isEmpty(): boolean {
    return this.#counts.answered === 0;
  }

  add(query: RecordedQuery, outcome: number): void {
    const counts = this.#counts;
    counts.answered += 1;
    if (outcome === PREVIEW_FAILED) {
      counts.failed += 1;
      return;
    }
    const allowedBefore = (outcome & PREVIEW_BEFORE) !== 0;
    const allowedAfter = (outcome & PREVIEW_AFTER) !== 0;
    if (allowedBefore === allowedAfter) return;
    if (allowedAfter) counts.newAllows += 1;
    else counts.newDenies += 1;
    this.#reported += 1;
    if (this.#reported <= this.#changesMax) {
      this.#changes.push({ query, allowedBefore, allowedAfter });
    }
  }

  progress(): PreviewProgress {
    const changes = this.#changes;
    this.#changes = [];
    const isTruncated = this.#reported > this.#changesMax;
    return { ...this.#counts, total: this.total, changes, isTruncated };
  }
}
