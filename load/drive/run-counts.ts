import { Counts, ensured, increase, percentilesOf } from './counts.ts';
import { LatencyHistogram } from './latency-histogram.ts';
import type { LoadPlan } from './load-plan.ts';
import type { GeneratorWindow } from './messages.ts';
import type { RunResult, RunSecond, StageSpan } from './run-result.ts';

const FAILURES_KEPT = 5;
/** Of refusals with texts of their own, as a proxy's; the others are counted together. */
const REASONS_MAX = 20;

class Second extends Counts {
  readonly reasons = new Map<string, number>();
  offered = 0;
  notSent = 0;
}

/** Where the stages of a plan lie, in seconds from the start. */
export function stageSpans(plan: LoadPlan | undefined): readonly StageSpan[] {
  let to = 0;
  return (plan?.stages ?? []).map(({ name, seconds }) => ({ name, from: to, to: (to += seconds) }));
}

/** Adds up what the generators count. A second of a histogram is 30 KB until the run ends. */
export class RunCounts {
  readonly #spans: readonly StageSpan[];
  readonly #seconds: Second[] = [];
  readonly #operations = new Map<string, Map<string, Counts>>();
  readonly #reasons = new Set<string>();
  readonly #all = new LatencyHistogram();
  readonly #late = new LatencyHistogram();
  readonly #failures: string[] = [];
  #cpuSeconds = 0;

  constructor(plan: LoadPlan | undefined) {
    this.#spans = stageSpans(plan);
  }

  add(window: GeneratorWindow): void {
    while (this.#seconds.length <= window.second) this.#seconds.push(new Second());
    const second = this.#seconds[window.second] as Second; // as it was made
    second.offered += window.offered;
    second.notSent += window.notSent;
    this.#cpuSeconds += window.cpuSeconds;
    this.#late.add(window.late);
    this.#failures.push(...window.failures.slice(0, FAILURES_KEPT - this.#failures.length));
    const stage = ensured(this.#operations, this.stageName(window.second), () => new Map());
    for (const [name, counts] of Object.entries(window.operations)) {
      second.add(counts);
      ensured(stage, name, () => new Counts()).add(counts);
      this.#all.add(counts.latencies);
    }
    for (const [why, count] of Object.entries(window.refused)) {
      const isKnown = this.#reasons.has(why) || this.#reasons.size < REASONS_MAX;
      this.#reasons.add(isKnown ? why : 'other');
      increase(second.reasons, isKnown ? why : 'other', count);
    }
  }

  /** What was answered within a second after the end belongs to the last one: it is no second of its own. */
  #foldEnd(): void {
    const [last, before] = [this.#seconds.at(-1), this.#seconds.at(-2)];
    const end = this.#spans.at(-1)?.to;
    if (end === undefined || this.#seconds.length !== Math.ceil(end) + 1) return;
    if (last === undefined || before === undefined || last.offered > 0) return;
    before.add(last.pack());
    for (const [why, count] of last.reasons) increase(before.reasons, why, count);
    this.#seconds.pop();
  }

  /** The seconds that are over. */
  get secondsSoFar(): number {
    return this.#seconds.length;
  }

  /** The figures of a second that is over; undefined of others. */
  second(index: number): RunSecond | undefined {
    const counts = this.#seconds[index];
    if (counts === undefined) return undefined;
    const { offered, notSent, answered, wrong } = counts;
    const refused = Object.fromEntries(counts.reasons);
    const latencies = percentilesOf(counts.latencies);
    return { second: index, offered, notSent, answered, wrong, refused, latencies };
  }

  /** The stage of a second, by its middle: what a stage asked at its very end is answered in the next one's first second. */
  stageName(second: number): string {
    const span = this.#spans.find(({ to }) => second + 0.5 < to) ?? this.#spans.at(-1);
    return span?.name ?? 'all';
  }

  /** Call it once, at the end. */
  result() {
    this.#foldEnd();
    const lasted = Math.max(1, this.#seconds.length);
    return {
      seconds: this.#seconds.flatMap((_, i) => this.second(i) ?? []),
      stages: this.#spans,
      operations: [...this.#operations].flatMap(([stage, ofStage]) => {
        const span = this.#spans.find(({ name }) => name === stage) ?? { from: 0, to: Infinity };
        const seconds = Math.max(1, Math.min(span.to, lasted) - span.from);
        return [...ofStage].map(([operation, counts]) => {
          const { answered, wrong, refused } = counts;
          const perSecond = answered / seconds;
          const latencies = percentilesOf(counts.latencies);
          return { stage, operation, answered, wrong, refused, perSecond, latencies };
        });
      }),
      latencies: this.#all.pack(),
      generatorCpuCores: this.#cpuSeconds / lasted,
      sentLateP99Ms: this.#late.percentile(99),
      failures: this.#failures,
    } satisfies Partial<RunResult>;
  }
}
