import { BACKGROUND_STEPS_MAX } from './limits.ts';
import type { StepResult, StepRun } from './step-run.ts';

type BackgroundStep = {
  readonly id: string;
  readonly run: StepRun;
  readonly result: Promise<StepResult>;
  /** Makes visible what the step left: called once, when it is first waited for. */
  readonly apply: (result: StepResult) => void;
  isApplied: boolean;
  /** A cancel step named it: that it was cancelled is no trouble of the job. */
  isCancelExpected: boolean;
};

/** The steps of one frame that go on beside the others, and who waits for them. */
export class BackgroundSteps {
  readonly #steps = new Map<string, BackgroundStep>();
  readonly #waiting: (() => void)[] = [];
  #runningCount = 0;

  /** Ids of steps that nobody waited for yet, in the order in which they were started. */
  get unwaited(): readonly string[] {
    return [...this.#steps.values()].filter((step) => !step.isApplied).map((step) => step.id);
  }

  namesOf(ids: readonly string[]): readonly string[] {
    return ids.map((id) => this.#steps.get(id)?.run.name ?? id);
  }

  has(id: string): boolean {
    return this.#steps.has(id);
  }

  /** Runs `body` as soon as fewer than the allowed number are running. `body` must not reject. */
  start(step: {
    readonly id: string;
    readonly run: StepRun;
    readonly body: () => Promise<StepResult>;
    readonly apply: (result: StepResult) => void;
  }): void {
    this.#steps.set(step.id, {
      id: step.id,
      run: step.run,
      result: this.#inTurn(step.body),
      apply: step.apply,
      isApplied: false,
      isCancelExpected: false,
    });
  }

  /**
   * Waits for the steps `ids` (those unknown are left out) and makes visible what they left. The wait is
   * as good as the worst of them. A stop of `waiter` is one of them, too.
   */
  async wait(
    ids: readonly string[],
    waiter?: StepRun,
  ): Promise<'success' | 'failure' | 'cancelled'> {
    const steps = ids.flatMap((id) => this.#steps.get(id) ?? []);
    const forget = waiter?.stop.onRequest(() => {
      for (const { run } of steps) run.cancel();
    });
    const results = await Promise.all(steps.map((step) => step.result));
    forget?.();
    let worst: 'success' | 'failure' | 'cancelled' = 'success';
    for (const [index, step] of steps.entries()) {
      const result = results[index];
      if (result === undefined) continue;
      if (!step.isApplied) {
        step.isApplied = true;
        step.apply(result);
      }
      if (result.conclusion === 'failure') worst = 'failure';
      const isTrouble = result.conclusion === 'cancelled' && !step.isCancelExpected;
      if (isTrouble && worst === 'success') worst = 'cancelled';
    }
    return worst;
  }

  /** Stops one step and waits until it is over. */
  async cancel(id: string): Promise<void> {
    const step = this.#steps.get(id);
    if (step === undefined) return;
    step.isCancelExpected = true;
    step.run.cancel();
    await this.wait([id]);
  }

  async #inTurn(body: () => Promise<StepResult>): Promise<StepResult> {
    if (this.#runningCount >= BACKGROUND_STEPS_MAX) {
      // Whoever ends hands its place on.
      const turn = Promise.withResolvers<void>();
      this.#waiting.push(turn.resolve);
      await turn.promise;
    } else {
      this.#runningCount += 1;
    }
    try {
      return await body();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#runningCount -= 1;
      else next();
    }
  }
}
