import { type RecordableHistogram, createHistogram } from 'node:perf_hooks';

/** Takes the outcome of one request: undefined when it was right, else what was wrong with it. */
export type Done = (failure: string | undefined) => void;

/** Starts request `index`; must call `done` exactly once. */
export type Issue = (index: number, done: Done) => void;

/** As Issue, told when the request was due, on the clock of performance.now(). */
export type DueIssue = (index: number, done: Done, dueMs: number) => void;

export type Latencies = {
  readonly count: number;
  readonly failed: number;
  /** What was wrong with the first few that failed. */
  readonly failures?: readonly string[];
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
};
export type RateResult = Latencies & {
  readonly perSecond: number;
  readonly abandoned: number;
  /** How late the generator itself sent, part of the latencies: large where the machine is too small for both. */
  readonly sentLateP99Ms?: number;
};

/** Requests that may wait at once: beyond it the target is saturated and arrivals are counted as abandoned. */
const OUTSTANDING_MAX = 20_000;
const FAILURES_KEPT = 3;

const newHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });

/** Counts failures and keeps the words of the first few. */
class Failures {
  readonly first: string[] = [];
  count = 0;

  add(failure: string | undefined): void {
    if (failure === undefined) return;
    this.count++;
    if (this.first.length < FAILURES_KEPT) this.first.push(failure);
  }
}

function latenciesOf(histogram: RecordableHistogram, failures: Failures): Latencies {
  const ms = (percentile: number): number => histogram.percentile(percentile) / 1e6;
  return {
    count: histogram.count,
    failed: failures.count,
    ...(failures.count > 0 ? { failures: failures.first } : {}),
    p50Ms: ms(50),
    p90Ms: ms(90),
    p99Ms: ms(99),
    p999Ms: ms(99.9),
    maxMs: histogram.max / 1e6,
  };
}

/**
 * Open loop: request i is due at start + i / rate, whatever became of the earlier ones, and its
 * latency counts from when it was due. So a stall shows in every request that it delayed (no
 * coordinated omission; G. Tene, "How NOT to measure latency"). Requests leave on a timer of 1 ms, which
 * their latencies include: a loop that never sleeps would take a core from the service it measures.
 */
export async function runAtRate(options: {
  readonly perSecond: number;
  readonly seconds: number;
  readonly issue: DueIssue;
}): Promise<RateResult> {
  const { perSecond, seconds, issue } = options;
  const total = Math.floor(perSecond * seconds);
  const histogram = newHistogram();
  const late = newHistogram();
  const { promise, resolve } = Promise.withResolvers<void>();
  const startMs = performance.now() + 5;
  let issued = 0;
  let answered = 0;
  const failures = new Failures();
  let abandoned = 0;
  const finish = (): void => {
    if (issued === total && answered + abandoned === total) resolve();
  };
  const issueOne = (index: number): void => {
    const dueMs = startMs + (index * 1000) / perSecond;
    late.record(Math.max(1, Math.round((performance.now() - dueMs) * 1e6)));
    const done: Done = (failure) => {
      histogram.record(Math.max(1, Math.round((performance.now() - dueMs) * 1e6)));
      answered++;
      failures.add(failure);
      finish();
    };
    issue(index, done, dueMs);
  };
  const tick = (): void => {
    const dueCount = Math.min(
      total,
      Math.floor(((performance.now() - startMs) * perSecond) / 1000) + 1,
    );
    while (issued < dueCount) {
      if (issued - answered - abandoned >= OUTSTANDING_MAX) abandoned++;
      else issueOne(issued);
      issued++;
    }
    if (issued < total) setTimeout(tick, 1);
    else finish();
  };
  setTimeout(tick, 5);
  await promise;
  const lastedS = (performance.now() - startMs) / 1000;
  return {
    ...latenciesOf(histogram, failures),
    perSecond: answered / lastedS,
    abandoned,
    sentLateP99Ms: late.percentile(99) / 1e6,
  };
}

/** Closed loop: `inFlight` callers, each asking again as soon as it was answered. For rates, not for latencies. */
export async function runClosed(options: {
  readonly inFlight: number;
  readonly seconds: number;
  readonly issue: Issue;
}): Promise<RateResult> {
  const histogram = newHistogram();
  const startMs = performance.now();
  const endMs = startMs + options.seconds * 1000;
  let index = 0;
  const failures = new Failures();
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const sentMs = performance.now();
      const failure = await new Promise<string | undefined>((done) => options.issue(index++, done));
      histogram.record(Math.max(1, Math.round((performance.now() - sentMs) * 1e6)));
      failures.add(failure);
    }
  };
  await Promise.all(Array.from({ length: options.inFlight }, caller));
  const lastedS = (performance.now() - startMs) / 1000;
  return {
    ...latenciesOf(histogram, failures),
    perSecond: histogram.count / lastedS,
    abandoned: 0,
  };
}
