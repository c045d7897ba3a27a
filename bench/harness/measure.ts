// Measures one micro-benchmark; yields nothing by itself.
import { Bench } from 'tinybench';
import type { MicroBench } from './micro-bench.ts';
import { createReference } from './reference.ts';

/** What a micro-benchmark came to. */
export type MicroResult = {
  readonly name: string;
  readonly yields: string;
  /** Median over the rounds. */
  readonly nsPerOperation: number;
  /** Time of an operation in units of one call of the reference, measured in the same rounds. */
  readonly ratio: number;
  /** Half the distance between the lowest and the highest ratio of a round, relative to the median. */
  readonly noise: number;
};

const ROUNDS = 5;

/**
 * Measures in rounds, the reference and the benchmark by turns, so that a busy neighbour or a slower
 * machine touches both: ratios can be compared between machines and days, times cannot.
 * `roundMs` is the time of the benchmark in one round; the reference takes a third of it.
 */
export async function measureMicro(bench: MicroBench, roundMs: number): Promise<MicroResult> {
  const work = bench.prepare();
  const reference = createReference();
  const times: number[] = [];
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const referenceNs = await medianCallNs(reference, roundMs / 3);
    const ns = (await medianCallNs(work, roundMs)) / bench.operations;
    times.push(ns);
    ratios.push(ns / referenceNs);
  }
  ratios.sort((a, b) => a - b);
  const ratio = medianOf(ratios);
  const spread = ((ratios.at(-1) ?? ratio) - (ratios[0] ?? ratio)) / 2;
  return {
    name: bench.name,
    yields: bench.yields,
    nsPerOperation: rounded(medianOf(times)),
    ratio: rounded(ratio),
    noise: rounded(spread / ratio),
  };
}

/** Median time of one call, in nanoseconds. */
async function medianCallNs(work: () => unknown, timeMs: number): Promise<number> {
  const bench = new Bench({ time: timeMs, warmupTime: timeMs / 4, iterations: 8, throws: true });
  bench.add('work', work);
  const [task] = await bench.run();
  const result = task?.result;
  if (result?.state !== 'completed') throw new Error(`a benchmark ended as ${result?.state}`);
  return result.latency.p50 * 1e6;
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
