import { CHECK_ALLOWED, CHECK_GENERAL } from '../../engine/bound/evaluator-api.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import type { RawScope, ReadScope, WireFormat } from '../../protocol/shard-client.ts';
import { equalsText } from '../raw/raw-fields.ts';
import { createItemChunk } from './batch-evaluation.ts';
import { type BoundEngine } from './bound-engine.ts';
import { type JobContext, NAMES_MAX } from './job-context.ts';
import type { JobIndex } from './job.ts';
import { RawItems } from './raw-items.ts';

/** Reads of one evaluation at most, whatever its project may have. */
const READS_MAX = 256;
/**
 * Steps of one evaluation at most: none takes longer than some tens of microseconds then, caches filled on the way
 * included.
 */
const STEPS_MAX = 1_000;
/**
 * Steps that each Check of a shard refills: about the cost of sending it to a worker, on this thread. Over time no
 * shard takes more of the thread than twice what its Checks took without a replica, however expensive they are; at
 * once, what it has saved.
 */
const STEPS_REFILLED = 100;
const STEPS_SAVED_MAX = 20_000;
/** After one that was too much, so many of its shape are left before another one is tried; twice as many after the next. */
const LEFT_FIRST = 16;
const LEFT_MAX = 4_096;
/** Shapes of one index and model that are distinguished. */
const SHAPES_MAX = 256;

/** Steps that a shard was refilled with and has not spent. */
class StepBucket {
  #steps = STEPS_SAVED_MAX;

  /** One more Check has come. Whether there is enough for what it may take. */
  refill(): boolean {
    this.#steps = Math.min(STEPS_SAVED_MAX, this.#steps + STEPS_REFILLED);
    return this.#steps >= STEPS_MAX;
  }

  spend(steps: number): void {
    this.#steps -= steps;
  }
}

/** Shapes and steps of one index under one model. */
type InstantAccount = {
  readonly shapes: Map<number, CheckShape>;
  readonly bucket: StepBucket;
};

/** Checks of one relation of one namespace, over one index and under one model. */
export class CheckShape {
  /** Whether one of them has been answered by a worker. */
  isProven = false;
  /** How many are left to workers before one is tried again. */
  left = 0;
  #step = 0;

  failed(): void {
    this.#step = Math.min(LEFT_MAX, Math.max(LEFT_FIRST, this.#step * 2));
    this.left = this.#step;
  }

  answered(): void {
    this.#step >>= 1;
  }
}

/**
 * `left`: to a worker. A shape: likewise, and the caller marks it as proven if the worker answers, since none has yet.
 */
export type InstantAnswer = 'allowed' | 'denied' | 'left' | CheckShape;

/**
 * Checks that are answered in the call that brings them, on a thread on which nothing may take long. Only what the hot path
 * of the engine decides within few steps is; no text of a caller's is parsed but names and ids, and no condition is evaluated:
 * without a context none can be, and with one the worker does.
 * A shape that takes more is remembered, and mostly left alone. What is counted is what a worker counts.
 */
export class InstantChecks {
  readonly #context: JobContext;
  readonly #accounts = new WeakMap<BoundEngine, InstantAccount>();
  readonly #query = createItemChunk();

  constructor(context: JobContext) {
    this.#context = context;
  }

  /**
   * The answer to `body` over an index that may answer for `scope`; `expected` is what was routed and guarded. Errors: those of a damaged
   * index. Hot: allocates its source and items.
   */
  answer(
    index: JobIndex,
    model: NamespaceModel,
    format: WireFormat,
    body: Uint8Array,
    scope: ReadScope,
    expected: RawScope,
  ): InstantAnswer {
    const context = this.#context;
    const { fields, stats } = context;
    const scanner = format === 'json' ? context.json : context.proto;
    if (!scanner.check(body, 0, body.length) || !this.#isAsExpected(body, expected)) return 'left';
    const bound = context.engines.of(index, model);
    const { reader } = index;
    const items = new RawItems(reader, { bytes: body }, fields.items, fields.itemCount);
    const query = this.#query;
    items.load(0, 1, query);
    const namespace = query.namespaces[0] as number;
    const relation = query.relations[0] as number;
    const { shapes, bucket } = this.#accountOf(bound);
    const isAffordable = bucket.refill();
    const shape = shapeOf(shapes, namespace, relation);
    if (shape === undefined) return 'left';
    if (!shape.isProven) return shape;
    if (!isAffordable) return 'left';
    if (shape.left > 0) {
      shape.left -= 1;
      return 'left';
    }
    const { evaluator } = bound;
    evaluator.boundSteps(STEPS_MAX);
    const code = evaluator.checkUser(
      query.objects[0] as number,
      relation,
      query.users[0] as number,
      context.clock.nowMs(),
      Math.min(scope.readBudget, READS_MAX),
    );
    const reads = evaluator.lastReads;
    bucket.spend(evaluator.lastSteps + reads);
    const hasContext = fields.contextEnd !== 0;
    if (code === CHECK_GENERAL || (hasContext && evaluator.isLastUndecided)) {
      shape.failed();
      return 'left';
    }
    shape.answered();
    stats.turnTo({ requestId: 0, scope });
    stats.reads.Check.add(reads);
    stats.project.answered(reads);
    if (evaluator.lastBackstops !== 0) stats.backstops(evaluator.lastBackstops);
    const counter = context.counterOf(bound, namespace, relation, items, 0);
    if (code === CHECK_ALLOWED) counter.allowed += 1;
    else counter.denied += 1;
    return code === CHECK_ALLOWED ? 'allowed' : 'denied';
  }

  #isAsExpected(body: Uint8Array, { projectId, tenantId, token }: RawScope): boolean {
    const at = this.#context.fields.scope;
    return (
      equalsText(body, at[0] as number, at[1] as number, projectId) &&
      equalsText(body, at[2] as number, at[3] as number, tenantId) &&
      equalsText(body, at[4] as number, at[5] as number, token)
    );
  }

  #accountOf(bound: BoundEngine): InstantAccount {
    const known = this.#accounts.get(bound);
    if (known !== undefined) return known;
    const made = {
      shapes: new Map<number, CheckShape>(),
      bucket: new StepBucket(),
    };
    this.#accounts.set(bound, made);
    return made;
  }
}

/** undefined: of names that nothing mentions, or one too many. */
function shapeOf(
  shapes: Map<number, CheckShape>,
  namespace: number,
  relation: number,
): CheckShape | undefined {
  if (namespace <= 0 || relation <= 0) return undefined;
  // Ids of names outside of the model may be used again: shapes of such relations are all the same.
  const key = namespace * NAMES_MAX + relation;
  let shape = shapes.get(key);
  if (shape === undefined && shapes.size < SHAPES_MAX) {
    shape = new CheckShape();
    shapes.set(key, shape);
  }
  return shape;
}
