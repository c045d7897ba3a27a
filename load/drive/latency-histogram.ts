/** Counts by bucket, as they travel between processes: bucket, count, bucket, count … */
export type PackedHistogram = readonly number[];

/** Buckets of one power of two: values are kept to one part in 128. */
const STEPS = 128;
const STEP_BITS = 7;
/** 2^36 µs are 19 hours. */
const BUCKETS = 30 * STEPS;

/**
 * Latencies in whole microseconds, in buckets whose width grows with the value (as in HdrHistogram): at most 0.8 %
 * off. Those of several processes add up, which the histograms of node:perf_hooks cannot do.
 */
export class LatencyHistogram {
  readonly #counts = new Float64Array(BUCKETS);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Counts one latency in milliseconds. Negative ones count as none. */
  record(ms: number): void {
    const index = bucketOf(Math.max(0, Math.round(ms * 1000)));
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#count += 1;
  }

  /** Adds the counts of another one. */
  add(packed: PackedHistogram): void {
    for (let i = 0; i + 1 < packed.length; i += 2) {
      const [bucket, count] = [packed[i] as number, packed[i + 1] as number];
      this.#counts[bucket] = (this.#counts[bucket] as number) + count;
      this.#count += count;
    }
  }

  /** The buckets that hold something, in order. */
  pack(): PackedHistogram {
    const packed: number[] = [];
    this.#counts.forEach((count, bucket) => {
      if (count > 0) packed.push(bucket, count);
    });
    return packed;
  }

  /** The largest latency of the fastest `percent` of all, in milliseconds; 0 while there is none. O(buckets). */
  percentile(percent: number): number {
    const wanted = Math.max(1, Math.ceil((percent / 100) * this.#count));
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.#counts[bucket] as number;
      if (seen >= wanted) return valueOf(bucket) / 1000;
    }
    return 0;
  }
}

/** The histogram of what `pack` gave. */
export function unpackHistogram(packed: PackedHistogram): LatencyHistogram {
  const histogram = new LatencyHistogram();
  histogram.add(packed);
  return histogram;
}

/** Values below twice the steps have a bucket each, then each power of two has as many as there are steps. */
function bucketOf(us: number): number {
  if (us < 2 * STEPS) return us;
  const shift = Math.floor(Math.log2(us)) - STEP_BITS;
  return Math.min(BUCKETS - 1, shift * STEPS + Math.floor(us / 2 ** shift));
}

/** The middle of a bucket, in microseconds. */
function valueOf(bucket: number): number {
  if (bucket < 2 * STEPS) return bucket;
  const shift = Math.floor(bucket / STEPS) - 1;
  return (bucket - shift * STEPS + 0.5) * 2 ** shift;
}
