import type { RunResult, RunSecond } from '../drive/run-result.ts';

const SECONDS_MAX = 3000;

/**
 * A run with at most 3,000 rows of time: of a longer one so many seconds become one row, with their sums and their
 * worst percentiles.
 */
export function thinned(run: RunResult): RunResult {
  const size = Math.ceil(run.seconds.length / SECONDS_MAX);
  if (size <= 1) return run;
  const seconds = Array.from({ length: Math.ceil(run.seconds.length / size) }, (_, i) =>
    merged(run.seconds.slice(i * size, (i + 1) * size), size),
  );
  const server = run.server.filter((_, i) => i % size === 0);
  return { ...run, seconds, server };
}

/** Counts become those of one second, so that rates read alike. */
function merged(group: readonly RunSecond[], size: number): RunSecond {
  const mean = (of: (second: RunSecond) => number): number =>
    Math.round(group.reduce((sum, second) => sum + of(second), 0) / size);
  const worst = (of: (second: RunSecond) => number): number => Math.max(...group.map(of));
  const reasons = new Set(group.flatMap(({ refused }) => Object.keys(refused)));
  return {
    second: group[0]?.second ?? 0,
    offered: mean(({ offered }) => offered),
    notSent: mean(({ notSent }) => notSent),
    answered: mean(({ answered }) => answered),
    wrong: mean(({ wrong }) => wrong),
    refused: Object.fromEntries(
      [...reasons].map((reason) => [reason, mean(({ refused }) => refused[reason] ?? 0)]),
    ),
    latencies: {
      p50: worst(({ latencies }) => latencies.p50),
      p90: worst(({ latencies }) => latencies.p90),
      p99: worst(({ latencies }) => latencies.p99),
      p999: worst(({ latencies }) => latencies.p999),
      max: worst(({ latencies }) => latencies.max),
    },
  };
}
