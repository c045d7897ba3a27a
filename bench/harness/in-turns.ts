import { OPTIONS, quantile } from './options.ts';

/** One turn of one contestant. */
export type Turn = {
  /** Requests, items or objects that were answered within `seconds`. */
  readonly operations: number;
  readonly seconds: number;
  /** All that the CPU time was taken for: also what was under way when the turn was over. */
  readonly operationsInAll: number;
  /** User and system time that the contestant took; NaN where /proc is missing. */
  readonly cpuSeconds: number;
  /** Processors that the load generator took: near 1 it is what limits the rate. */
  readonly generatorCores: number;
  /** Milliseconds of a request. */
  readonly p50Ms: number;
  readonly p99Ms: number;
};

/** A server under the same load as the others. */
export type Contestant = { readonly name: string; readonly turn: () => Promise<Turn> };

/** Medians over the turns; ratios are medians of those of one round, the first contestant's over this one's. */
export type Standing = {
  readonly contestant: string;
  readonly perSecond: number;
  readonly perCpuSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly generatorCores: number;
  readonly firstPerSecond?: number;
  readonly firstPerCpuSecond?: number;
  /** Lower and upper quartile of `firstPerCpuSecond`. */
  readonly quartiles?: string;
  readonly firstP99?: number;
};

/**
 * Loads the contestants in turns, so that all see the same neighbours on the machine; the order is reversed in every
 * other round. The first round warms up and is not counted.
 */
export async function inTurns(contestants: readonly Contestant[]): Promise<readonly Standing[]> {
  const turns = new Map<Contestant, Turn[]>(contestants.map((one) => [one, []]));
  for (let round = 0; round <= OPTIONS.rounds; round++) {
    for (const one of round % 2 === 0 ? contestants : contestants.toReversed()) {
      const turn = await one.turn();
      if (round > 0) turns.get(one)?.push(turn);
    }
  }
  const [first = []] = turns.values();
  return contestants.map((one, i) =>
    standingOf(one.name, turns.get(one) ?? [], i > 0 ? first : []),
  );
}

const perSecond = (turn: Turn): number => turn.operations / turn.seconds;
const perCpuSecond = (turn: Turn): number => turn.operationsInAll / turn.cpuSeconds;

function standingOf(contestant: string, turns: readonly Turn[], first: readonly Turn[]): Standing {
  const standing = {
    contestant,
    perSecond: Math.round(quantile(turns.map(perSecond))),
    perCpuSecond: Math.round(quantile(turns.map(perCpuSecond))),
    p50Ms: quantile(turns.map(({ p50Ms }) => p50Ms)),
    p99Ms: quantile(turns.map(({ p99Ms }) => p99Ms)),
    generatorCores: quantile(turns.map(({ generatorCores }) => generatorCores)),
  };
  if (first.length === 0) return standing;
  const ratios = (of: (turn: Turn) => number): readonly number[] =>
    first.map((turn, i) => of(turn) / of(turns[i] as Turn)); // as every contestant took every round
  const byCpu = ratios(perCpuSecond);
  return {
    ...standing,
    firstPerSecond: quantile(ratios(perSecond)),
    firstPerCpuSecond: quantile(byCpu),
    quartiles: [0.25, 0.75].map((q) => quantile(byCpu, q).toFixed(2)).join(' to '),
    firstP99: quantile(ratios(({ p99Ms }) => p99Ms)),
  };
}
