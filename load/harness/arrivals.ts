import { type RecordableHistogram, createHistogram } from "node:perf_hooks";

/** Starts request `index`; must call `done` exactly once, with false when the answer was wrong or an error. */
export type Issue = (index: number, done: (ok: boolean) => void) => void;

export type Latencies = {
  readonly count: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
};
export type RateResult = Latencies & { readonly perSecond: number; readonly abandoned: number };

/** Requests that may wait at once: beyond it the target is saturated and arrivals are counted as abandoned. */
const OUTSTANDING_MAX = 20_000;

const newHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });

function latenciesOf(histogram: RecordableHistogram, failed: number): Latencies {
  const ms = (percentile: number): number => histogram.percentile(percentile) / 1e6;
  return {
    count: histogram.count,
    failed,
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
 * coordinated omission; G. Tene, "How NOT to measure latency").
 */
export async function runAtRate(options: {
  readonly perSecond: number;
  readonly seconds: number;
  readonly issue: Issue;
}): Promise<RateResult> {
  const { perSecond, seconds, issue } = options;
  const total = Math.floor(perSecond * seconds);
  const histogram = newHistogram();
  const { promise, resolve } = Promise.withResolvers<void>();
  const startMs = performance.now() + 5;
  let issued = 0;
  let answered = 0;
  let failed = 0;
  let abandoned = 0;
  const finish = (): void => {
    if (issued === total && answered + abandoned === total) resolve();
  };
  const issueOne = (index: number): void => {
    const dueMs = startMs + (index * 1000) / perSecond;
    issue(index, (ok) => {
      histogram.record(Math.max(1, Math.round((performance.now() - dueMs) * 1e6)));
      answered++;
      if (!ok) failed++;
      finish();
    });
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
    if (issued < total) setImmediate(tick);
    else finish();
  };
  setTimeout(tick, 5);
  await promise;
  const lastedS = (performance.now() - startMs) / 1000;
  return { ...latenciesOf(histogram, failed), perSecond: answered / lastedS, abandoned };
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
  let failed = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const sentMs = performance.now();
      const ok = await new Promise<boolean>((done) => options.issue(index++, done));
      histogram.record(Math.max(1, Math.round((performance.now() - sentMs) * 1e6)));
      if (!ok) failed++;
    }
  };
  await Promise.all(Array.from({ length: options.inFlight }, caller));
  const lastedS = (performance.now() - startMs) / 1000;
  return { ...latenciesOf(histogram, failed), perSecond: histogram.count / lastedS, abandoned: 0 };
}
