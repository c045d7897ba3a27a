// Measures one micro-benchmark; yields nothing by itself.
import { Bench } from 'tinybench';
import type { MicroBench } from './micro-bench.ts';
import { createReference } from './reference.ts';

/** What a micro-benchmark came to. */
export type MicroResult = {
  readonly name: string;
  readonly yields: string;
  /** Median over all calls. */
  readonly nsPerOperation: number;
  /** Of the fastest call: what neighbours on the machine disturb least. */
  readonly nsFastest: number;
  /** Fastest call of a round over that of the reference in the same round; median over the rounds. */
  readonly ratio: number;
  /** Half the distance between the ratios of the rounds, the outermost left out, over the median. */
  readonly noise: number;
};

const ROUNDS = 7;

/**
 * Measures in rounds, the reference and the benchmark by turns, so that a busy neighbour or a slower
 * machine touches both: ratios can be compared between machines and days, times cannot.
 * `roundMs` is the time of the benchmark in one round; the reference takes a third of it.
 */
export async function measureMicro(bench: MicroBench, roundMs: number): Promise<MicroResult> {
  const work = bench.prepare();
  const reference = createReference();
  const medians: number[] = [];
  const fastest: number[] = [];
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const yardstick = await callNs(reference, roundMs / 3);
    const { median, least } = await callNs(work, roundMs);
    medians.push(median / bench.operations);
    fastest.push(least / bench.operations);
    ratios.push(least / bench.operations / yardstick.least);
  }
  ratios.sort((a, b) => a - b);
  const ratio = medianOf(ratios);
  const spread = ((ratios.at(-2) ?? ratio) - (ratios[1] ?? ratio)) / 2;
  return {
    name: bench.name,
    yields: bench.yields,
    nsPerOperation: rounded(medianOf(medians)),
    nsFastest: rounded(Math.min(...fastest)),
    ratio: rounded(ratio),
    noise: rounded(spread / ratio),
  };
}

/** Time of one call, in nanoseconds. */
async function callNs(
  work: () => unknown,
  timeMs: number,
): Promise<{ readonly median: number; readonly least: number }> {
  const bench = new Bench({ time: timeMs, warmupTime: timeMs / 4, iterations: 8, throws: true });
  bench.add('work', work);
  const [task] = await bench.run();
  const result = task?.result;
  if (result?.state !== 'completed') throw new Error(`a benchmark ended as ${result?.state}`);
  return { median: result.latency.p50 * 1e6, least: result.latency.min * 1e6 };
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
