import { LatencyHistogram } from './latency-histogram.ts';
import type { LoadPlan } from './load-plan.ts';
import type { GeneratorWindow } from './messages.ts';
import type { OperationTotal, Percentiles, RunResult, RunSecond } from './run-result.ts';

const FAILURES_KEPT = 5;
/** Of refusals with texts of their own, as a proxy's; the others are counted together. */
const REASONS_MAX = 20;

type Counts = { answered: number; wrong: number; refused: number; latencies: LatencyHistogram };
type Second = Counts & { offered: number; notSent: number; reasons: Map<string, number> };
type StageSpan = { readonly name: string; readonly from: number; readonly to: number };

const newCounts = (): Counts => ({
  answered: 0,
  wrong: 0,
  refused: 0,
  latencies: new LatencyHistogram(),
});

export function percentilesOf(histogram: LatencyHistogram): Percentiles {
  return {
    p50: histogram.percentile(50),
    p90: histogram.percentile(90),
    p99: histogram.percentile(99),
    p999: histogram.percentile(99.9),
    max: histogram.percentile(100),
  };
}

/** Where the stages of a plan lie, in seconds from the start. */
export function stageSpans(plan: LoadPlan | undefined): readonly StageSpan[] {
  let from = 0;
  return (plan?.stages ?? []).map(({ name, seconds }) => {
    const span = { name, from, to: from + seconds };
    from = span.to;
    return span;
  });
}

/** Adds up what the generators count. A second of a histogram is 30 KB until the run ends. */
export class RunCounts {
  readonly #spans: readonly StageSpan[];
  readonly #seconds: Second[] = [];
  readonly #operations = new Map<string, Counts>();
  readonly #reasons = new Set<string>();
  readonly #all = new LatencyHistogram();
  readonly #late = new LatencyHistogram();
  readonly #failures: string[] = [];
  #cpuSeconds = 0;

  constructor(plan: LoadPlan | undefined) {
    this.#spans = stageSpans(plan);
  }

  add(window: GeneratorWindow): void {
    const second = this.#secondOf(window.second);
    second.offered += window.offered;
    second.notSent += window.notSent;
    this.#cpuSeconds += window.cpuSeconds;
    this.#late.add(window.late);
    const room = Math.max(0, FAILURES_KEPT - this.#failures.length);
    this.#failures.push(...window.failures.slice(0, room));
    // By the middle of the second: what a stage asked at its very end is answered in the next one's first second.
    const stage = this.#stageAt(window.second + 0.5);
    for (const [name, counts] of Object.entries(window.operations)) {
      for (const into of [second, this.#operation(stage, name)]) {
        into.answered += counts.answered;
        into.wrong += counts.wrong;
        into.refused += counts.refused;
        into.latencies.add(counts.latencies);
      }
      this.#all.add(counts.latencies);
    }
    for (const [why, count] of Object.entries(window.refused)) {
      const isKnown = this.#reasons.has(why) || this.#reasons.size < REASONS_MAX;
      const reason = isKnown ? why : 'other';
      this.#reasons.add(reason);
      second.reasons.set(reason, (second.reasons.get(reason) ?? 0) + count);
    }
  }

  /** What was answered within a second after the end belongs to the last one: it is no second of its own. */
  #foldEnd(): void {
    const [last, before] = [this.#seconds.at(-1), this.#seconds.at(-2)];
    const end = this.#spans.at(-1)?.to;
    if (end === undefined || this.#seconds.length !== Math.ceil(end) + 1) return;
    if (last === undefined || before === undefined || last.offered > 0) return;
    before.answered += last.answered;
    before.wrong += last.wrong;
    before.refused += last.refused;
    before.latencies.add(last.latencies.pack());
    for (const [why, count] of last.reasons) {
      before.reasons.set(why, (before.reasons.get(why) ?? 0) + count);
    }
    this.#seconds.pop();
  }

  /** The seconds that are over. */
  get secondsSoFar(): number {
    return this.#seconds.length;
  }

  second(index: number): RunSecond | undefined {
    const counts = this.#seconds[index];
    if (counts === undefined) return undefined;
    const { offered, notSent, answered, wrong, reasons, latencies } = counts;
    const refused = Object.fromEntries(reasons);
    return {
      second: index,
      offered,
      notSent,
      answered,
      wrong,
      refused,
      latencies: percentilesOf(latencies),
    };
  }

  stageName(second: number): string {
    return this.#stageAt(second + 0.5);
  }

  /** Call it once, at the end. */
  result(): Pick<
    RunResult,
    | 'seconds'
    | 'stages'
    | 'operations'
    | 'latencies'
    | 'generatorCpuCores'
    | 'sentLateP99Ms'
    | 'failures'
  > {
    this.#foldEnd();
    const lasted = Math.max(1, this.#seconds.length);
    return {
      seconds: this.#seconds.map((_, i) => this.second(i) as RunSecond),
      stages: this.#spans,
      operations: [...this.#operations].map(([key, counts]) => this.#total(key, counts)),
      latencies: this.#all.pack(),
      generatorCpuCores: this.#cpuSeconds / lasted,
      sentLateP99Ms: this.#late.percentile(99),
      failures: this.#failures,
    };
  }

  #total(key: string, { answered, wrong, refused, latencies }: Counts): OperationTotal {
    const [stage = '', operation = ''] = key.split('\u0000');
    const span = this.#spans.find(({ name }) => name === stage);
    const seconds = Math.max(
      1,
      Math.min(span?.to ?? Infinity, this.#seconds.length) - (span?.from ?? 0),
    );
    const perSecond = answered / seconds;
    return {
      stage,
      operation,
      answered,
      wrong,
      refused,
      perSecond,
      latencies: percentilesOf(latencies),
    };
  }

  #stageAt(second: number): string {
    const span = this.#spans.find(({ to }) => second < to) ?? this.#spans.at(-1);
    return span?.name ?? 'all';
  }

  #operation(stage: string, name: string): Counts {
    const key = `${stage}\u0000${name}`;
    let counts = this.#operations.get(key);
    if (counts === undefined) this.#operations.set(key, (counts = newCounts()));
    return counts;
  }

  #secondOf(index: number): Second {
    while (this.#seconds.length <= index) {
      this.#seconds.push({ ...newCounts(), offered: 0, notSent: 0, reasons: new Map() });
    }
    return this.#seconds[index] as Second;
  }
}
