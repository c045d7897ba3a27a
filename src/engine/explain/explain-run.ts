import type { Explanation } from '../../model/explanation.ts';
import type { CheckQuery } from '../../model/relation-tuple.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { EvaluationTask } from '../bound/evaluator-api.ts';
import { UNDETERMINED, TRUE, type Value } from '../bound/scope.ts';
import type { Steps } from '../general/gate-system.ts';
import { explainAllow } from './explain-allow.ts';
import { explainDeny } from './explain-deny.ts';
import { ExplainContext, type ExplainGround } from './explain-ground.ts';

const STEPS_PER_CLOCK_READ = 8;

/**
 * Explains Check's answer to a query. The answer itself is that of the general evaluation, with its budget and its
 * error when that runs out. The explanation has four times as many reads for itself, and sets `truncated` where they
 * end.
 */
export class ExplainRun implements EvaluationTask<Explanation> {
  readonly #ground: ExplainGround;
  readonly #query: CheckQuery;
  readonly #clock: Clock;
  readonly #remediesMax: number;
  readonly #check: EvaluationTask<Value>;
  #steps: Steps<Explanation> | undefined;
  #context: ExplainContext | undefined;
  #explanation: Explanation | undefined;

  constructor(ground: ExplainGround, query: CheckQuery, remediesMax: number, clock: Clock) {
    this.#ground = ground;
    this.#query = query;
    this.#remediesMax = remediesMax;
    this.#clock = clock;
    this.#check = ground.evaluator.startDecision(query, ground.nowMs, ground.readBudget);
  }

  get backstops(): number {
    return this.#check.backstops;
  }

  /** Reads of the evaluation and of the explanation. */
  get reads(): number {
    return (this.#check.reads ?? 0) + (this.#context?.reads ?? 0);
  }

  run(sliceEndMs: number): 'done' | 'more' {
    if (this.#steps === undefined) {
      if (this.#check.run(sliceEndMs) === 'more') return 'more';
      this.#steps = this.#explain();
    }
    for (let steps = 1; ; steps++) {
      const step = this.#steps.next();
      if (step.done === true) {
        this.#explanation = step.value;
        return 'done';
      }
      if (steps % STEPS_PER_CLOCK_READ === 0 && this.#clock.monotonicMs() >= sliceEndMs) {
        return 'more';
      }
    }
  }

  result(): Explanation {
    if (this.#explanation === undefined) throw new Error('assertion failed: it is explained');
    return this.#explanation;
  }

  *#explain(): Steps<Explanation> {
    const value = this.#check.result();
    const context = new ExplainContext(this.#ground, this.#query);
    this.#context = context;
    const allowed = value === TRUE;
    const undecided = value === UNDETERMINED;
    // The read that would have been one too many counts, too.
    const reads = Math.min(this.#check.reads ?? 0, this.#ground.readBudget);
    if (allowed) {
      const { isTruncated: truncated, ...reason } = yield* explainAllow(context);
      return { allowed, undecided, ...reason, obstacles: [], remedies: [], truncated, reads };
    }
    const reason = yield* explainDeny(context, undecided, this.#remediesMax);
    const { obstacles, remedies, isTruncated: truncated } = reason;
    const none = { derivation: undefined, witness: undefined, holdsUntilUs: undefined };
    return { allowed, undecided, ...none, obstacles, remedies, truncated, reads };
  }
}
