import { LatencyHistogram, type PackedHistogram } from './latency-histogram.ts';
import type { Percentiles } from './run-result.ts';

/** Counts as they travel between processes. */
export type PackedCounts = {
  readonly answered: number;
  readonly wrong: number;
  readonly refused: number;
  readonly latencies: PackedHistogram;
};

/** What became of requests; latencies are of what was answered. */
export class Counts {
  readonly latencies = new LatencyHistogram();
  answered = 0;
  wrong = 0;
  refused = 0;

  /** Adds the counts of another one. */
  add({ answered, wrong, refused, latencies }: PackedCounts): void {
    this.answered += answered;
    this.wrong += wrong;
    this.refused += refused;
    this.latencies.add(latencies);
  }

  /** The counts as plain values. */
  pack(): PackedCounts {
    const { answered, wrong, refused, latencies } = this;
    return { answered, wrong, refused, latencies: latencies.pack() };
  }
}

/** The value of a key, made where there is none. */
export function ensured<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Adds to the number of a key. */
export function increase(map: Map<string, number>, key: string, count: number): void {
  map.set(key, (map.get(key) ?? 0) + count);
}

/** The percentiles that reports show, in milliseconds. */
export function percentilesOf(histogram: LatencyHistogram): Percentiles {
  const [p50, p90, p99, p999, max] = [50, 90, 99, 99.9, 100].map((percent) =>
    histogram.percentile(percent),
  ) as [number, number, number, number, number];
  return { p50, p90, p99, p999, max };
}
