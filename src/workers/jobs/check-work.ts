import { CHECK_ALLOWED, CHECK_GENERAL } from '../../engine/bound/evaluator-api.ts';
import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { type LazyContext, parseContext } from '../../model/conditions/conditions.ts';
import type { CheckQuery } from '../../model/relation-tuple.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { ANSWER_ALLOWED, ANSWER_DENIED } from '../../protocol/messages.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { PairCounter } from '../counts/unknown-counts.ts';
import { rawContextOf } from '../raw/raw-context.ts';
import { createItemChunk, type ItemSource } from './batch-evaluation.ts';
import type { BoundEngine } from './bound-engine.ts';
import { type Asked, type JobWork, runCounted } from './evaluation-job.ts';
import type { JobContext } from './job-context.ts';
import { RawItems } from './raw-items.ts';
import type { ReceivedRequest } from './received-request.ts';
import { TextItems } from './text-items.ts';

/** The query of the Check at work. */
const queryChunk = createItemChunk();

/** A query about a user, as a batch of one. */
type UserCheck = {
  readonly items: ItemSource & { detach(): void };
  readonly context: (LazyContext & { readonly json: string }) | null;
};

/** A Check. */
export class CheckWork implements JobWork, Asked {
  readonly isLong = false;
  readonly isReadFirst: boolean;
  readonly keepsEvaluator = true;
  readonly isPartlySent = false;
  readonly #context: JobContext;
  readonly #request: ReceivedRequest;
  #task: EvaluationTask<boolean> | null = null;
  #user: UserCheck | null = null;
  #bound: BoundEngine | null = null;
  /** Name ids of the query. */
  #namespace = -1;
  #relation = -1;

  constructor(context: JobContext, request: ReceivedRequest) {
    this.#context = context;
    this.#request = request;
    this.isReadFirst = request.isLong;
  }

  read(sliceEndMs: number): boolean {
    return this.#request.read(sliceEndMs);
  }

  start(bound: BoundEngine, reader: TupleReader): void {
    const query = this.#decodedQuery;
    this.#bound = bound;
    if (query === null || query.subject.kind === 'user') {
      this.#startUser(this.#userCheck(query, reader), bound);
      return;
    }
    const nowMs = this.#context.clock.nowMs();
    this.#user = null;
    this.#task = bound.evaluator.startCheck(query, nowMs, this.#request.scope.readBudget);
  }

  /** null: a scanner has read it. */
  get #decodedQuery(): CheckQuery | null {
    const { decoded } = this.#request;
    return decoded?.method === 'check' ? decoded.query : null;
  }

  #userCheck(query: CheckQuery | null, reader: TupleReader): UserCheck {
    const { source, fields } = this.#request;
    if (query?.subject.kind !== 'user') {
      const items = new RawItems(reader, source, fields.items, fields.itemCount);
      return { items, context: rawContextOf(fields, source) };
    }
    const { contextJson: json, subject } = query;
    const items = new TextItems(reader, [{ ...query, userId: subject.userId }]);
    return { items, context: json === '' ? null : { value: () => parseContext(json), json } };
  }

  #startUser(user: UserCheck, { evaluator }: BoundEngine): void {
    const { items, context } = user;
    items.load(0, 1, queryChunk);
    const object = queryChunk.objects[0] as number;
    const relation = queryChunk.relations[0] as number;
    const userEntity = queryChunk.users[0] as number;
    this.#namespace = queryChunk.namespaces[0] as number;
    this.#relation = relation;
    this.#user = user;
    this.#task = null;
    const { readBudget } = this.#request.scope;
    const nowMs = this.#context.clock.nowMs();
    const quick = evaluator.checkUser(object, relation, userEntity, nowMs, readBudget, context);
    if (quick === CHECK_GENERAL) {
      items.detach();
      const json = context === null ? '' : context.json;
      this.#task = evaluator.startCheckIds(object, relation, userEntity, nowMs, readBudget, json);
    } else {
      const { stats } = this.#context;
      stats.reads.Check.add(evaluator.lastReads);
      stats.project.answered(evaluator.lastReads);
      if (evaluator.lastBackstops !== 0) stats.backstops(evaluator.lastBackstops);
      this.#answer(quick === CHECK_ALLOWED);
    }
  }

  advance(sliceEndMs: number): 'done' | 'more' {
    const task = this.#task;
    if (task === null) return 'done';
    const rpc = this.#user === null ? 'CheckSet' : 'Check';
    try {
      if (runCounted(this.#context.stats, rpc, task, sliceEndMs, this) === 'more') return 'more';
    } catch (error) {
      this.#counter().error += 1;
      throw error;
    }
    this.#answer(task.result());
    return 'done';
  }

  refusedQuery(): RefusedQuery | null {
    const query = this.#decodedQuery;
    if (query !== null) return { kind: 'check', ...query };
    if (this.#user === null) return null;
    const { items, context } = this.#user;
    const asked = items.queryText(0);
    const contextJson = context === null ? '' : context.json;
    return asked.kind === 'check' ? { ...asked, contextJson } : asked;
  }

  #answer(isAllowed: boolean): void {
    const counter = this.#counter();
    if (isAllowed) counter.allowed += 1;
    else counter.denied += 1;
    this.#context.writer.kind(this.#request.requestId, isAllowed ? ANSWER_ALLOWED : ANSWER_DENIED);
  }

  #counter(): PairCounter {
    const { stats } = this.#context;
    const bound = this.#bound;
    const user = this.#user;
    if (bound === null) return stats.other;
    if (user !== null) {
      return this.#context.counterOf(bound, this.#namespace, this.#relation, user.items, 0);
    }
    const query = this.#decodedQuery;
    return query === null
      ? stats.other
      : stats.counter(bound.model, query.namespace, query.relation);
  }

  ended(): void {
    this.#request.ended();
  }
}
