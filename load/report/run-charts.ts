import { unpackHistogram } from '../drive/latency-histogram.ts';
import type { Percentiles, RunResult, ServerSample } from '../drive/run-result.ts';
import { type Point, type Series, lineChart } from './chart.ts';

/** A run in a chart; of two runs the first is dashed and its names say so. */
export type Shown = { readonly run: RunResult; readonly label: string; readonly isDashed: boolean };

const PERCENTS = [
  ...Array.from({ length: 90 }, (_, i) => i),
  ...Array.from({ length: 90 }, (_, i) => 90 + i / 10),
  ...Array.from({ length: 90 }, (_, i) => 99 + i / 100),
  ...Array.from({ length: 90 }, (_, i) => 99.9 + i / 1000),
  ...Array.from({ length: 100 }, (_, i) => 99.99 + i / 10_000),
];
const PERCENT_TICKS = [0, 50, 90, 99, 99.9, 99.99, 99.999];
const REASONS_SHOWN = 8;

/** Each further nine is as wide as the one before. */
const nines = (percent: number): number => -Math.log10(1 - percent / 100);
const named = ({ label }: Shown, name: string): string =>
  label === '' ? name : `${label} ${name}`;

/** Latency percentiles over time, the distribution, throughput, refusals, and what the service said of itself. */
export function runCharts(runs: readonly Shown[]): string {
  const last = runs.at(-1);
  const bands = last?.run.stages ?? [];
  return [
    latencyChart(runs, bands),
    hdrChart(runs),
    rateChart(runs, bands),
    refusalChart(runs, bands),
  ]
    .concat(serverCharts(runs, bands))
    .join('\n');
}

type Bands = RunResult['stages'];

function latencyChart(runs: readonly Shown[], bands: Bands): string {
  // Of two runs fewer lines, or nobody could tell them apart.
  const all: readonly (keyof Percentiles)[] = ['p50', 'p90', 'p99', 'p999', 'max'];
  const shown = runs.length === 1 ? all : all.filter((key) => key === 'p50' || key === 'p99');
  const series = runs.flatMap((one) =>
    shown.map((key): Series => ({
      name: named(one, key === 'p999' ? 'p99.9' : key),
      tone: all.indexOf(key),
      isDashed: one.isDashed,
      points: overTime(one.run, (second) =>
        second.answered === 0 ? Number.NaN : second.latencies[key],
      ),
    })),
  );
  return lineChart({
    title: 'Latency over time',
    unit: 'ms, logarithmic',
    series,
    isLog: true,
    bands,
  });
}

function hdrChart(runs: readonly Shown[]): string {
  const series = runs.map((one, i): Series => {
    const histogram = unpackHistogram(one.run.latencies);
    // Beyond one in as many as there are, a percentile is the largest of all.
    const percents = PERCENTS.filter(
      (percent) => nines(percent) <= Math.log10(histogram.count + 1),
    );
    return {
      name: named(one, `${histogram.count} answers`),
      tone: i * 2,
      isDashed: one.isDashed,
      points: percents.map((percent): Point => [nines(percent), histogram.percentile(percent)]),
    };
  });
  const widest = Math.max(1, ...series.flatMap(({ points }) => points.map(([x]) => x)));
  const xTicks = PERCENT_TICKS.map((percent) => ({
    x: nines(percent),
    label: `${percent} %`,
  })).filter(({ x }) => x <= widest + 1e-9);
  return lineChart({
    title: 'Distribution of latency',
    unit: 'ms, logarithmic, by percentile',
    series,
    isLog: true,
    xTicks,
  });
}

function rateChart(runs: readonly Shown[], bands: Bands): string {
  const series = runs.flatMap((one): Series[] => [
    {
      name: named(one, 'asked'),
      tone: 7,
      isDashed: one.isDashed,
      points: overTime(one.run, ({ offered }) => offered),
    },
    {
      name: named(one, 'answered'),
      tone: 2,
      isDashed: one.isDashed,
      points: overTime(one.run, ({ answered }) => answered),
    },
  ]);
  return lineChart({ title: 'Throughput', unit: 'requests a second', series, bands });
}

function refusalChart(runs: readonly Shown[], bands: Bands): string {
  const series = runs.flatMap((one): Series[] => {
    const totals = new Map<string, number>();
    for (const { refused } of one.run.seconds) {
      for (const [why, count] of Object.entries(refused)) {
        totals.set(why, (totals.get(why) ?? 0) + count);
      }
    }
    const reasons = [...totals].toSorted((a, b) => b[1] - a[1]).slice(0, REASONS_SHOWN);
    const lines = reasons.map(([why], i): Series => ({
      name: named(one, why),
      tone: 3 + i,
      isDashed: one.isDashed,
      points: overTime(one.run, ({ refused }) => refused[why] ?? 0),
    }));
    const notSent: Series = {
      name: named(one, 'not sent by the generators'),
      tone: 1,
      isDashed: one.isDashed,
      points: overTime(one.run, (second) => second.notSent),
    };
    const wrong: Series = {
      name: named(one, 'WRONG ANSWERS'),
      tone: 0,
      isDashed: one.isDashed,
      points: overTime(one.run, (second) => second.wrong),
    };
    return [...lines, notSent, wrong].filter(({ points }) => points.some(([, y]) => y > 0));
  });
  return lineChart({
    title: 'Refusals',
    unit: 'a second, by code and reason',
    series,
    bands,
    none: 'There were none.',
  });
}

type Figure = keyof Omit<ServerSample, 'second'>;

function serverCharts(runs: readonly Shown[], bands: Bands): string[] {
  const chart = (title: string, unit: string, figures: readonly [Figure, string][]): string =>
    lineChart({
      title,
      unit,
      bands,
      series: runs.flatMap((one) =>
        figures.map(([figure, name], i): Series => ({
          name: named(one, name),
          tone: i,
          isDashed: one.isDashed,
          points: one.run.server.map((sample): Point => [
            sample.second,
            sample[figure] ?? Number.NaN,
          ]),
        })),
      ),
    });
  if (runs.every(({ run }) => run.server.length === 0)) return [];
  return [
    chart('Processors of the service', 'cores busy', [['cpuCores', 'service']]),
    chart('Memory of the service', 'MiB resident', [['residentMib', 'service']]),
    chart('Waiting in the service', 'requests', [
      ['workerQueue', 'for a worker'],
      ['writeQueue', 'writes'],
      ['poolWaiting', 'for a connection to PostgreSQL'],
    ]),
    chart('Delay of the gateway’s thread', 'ms, 99th percentile', [['loopDelayP99Ms', 'service']]),
  ];
}

function overTime(
  { seconds }: RunResult,
  value: (second: RunResult['seconds'][number]) => number,
): readonly Point[] {
  return seconds.map((second): Point => [second.second, value(second)]);
}
