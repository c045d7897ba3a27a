import { percentilesOf } from '../drive/counts.ts';
import { unpackHistogram } from '../drive/latency-histogram.ts';
import type { RunResult, RunSecond } from '../drive/run-result.ts';

type Operation = RunResult['operations'][number];
/** Cells by row; the first row is the head, the first column names the others. */
export type Table = readonly (readonly string[])[];

/** A number for people: three digits, whole ones as they are; a dash where there is none. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1000) return Math.round(value).toLocaleString('en-GB');
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** Lines of a table for a terminal: the first column to the left, all others to the right. O(cells). */
export function tableLines(rows: Table): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/** Sums over a run; `perSecond` is what was answered. */
export function totalsOf({ seconds, latencies }: RunResult) {
  const sum = (of: (second: RunSecond) => number): number =>
    seconds.reduce((total, second) => total + of(second), 0);
  const answered = sum((second) => second.answered);
  return {
    asked: sum(({ offered }) => offered),
    answered,
    refused: sum(({ refused }) => Object.values(refused).reduce((a, b) => a + b, 0)),
    wrong: sum(({ wrong }) => wrong),
    notSent: sum(({ notSent }) => notSent),
    perSecond: answered / Math.max(1, seconds.length),
    latencies: percentilesOf(unpackHistogram(latencies)),
  };
}

/** What a reader should know before believing the figures of a run. */
export function warningsOf(run: RunResult): readonly string[] {
  const { wrong, notSent, latencies } = totalsOf(run);
  const warnings: readonly (readonly [boolean, string])[] = [
    [wrong > 0, `${wrong} answers were wrong: see below, and stop here.`],
    [!run.isWhole, 'The run was ended before its time.'],
    [
      notSent > 0,
      `${notSent} requests were due and not sent, since too many were open: the service, or the way to it, is saturated.`,
    ],
    [
      run.generatorCpuCores > 0.85 * run.generators,
      'The generators were busy all the time: what is measured is they. Use more of them (--generators), on processors of their own.',
    ],
    [
      run.sentLateP99Ms > Math.max(5, latencies.p99 / 3),
      `The generators sent late by ${formatNumber(run.sentLateP99Ms)} ms (p99), which the latencies include.`,
    ],
    [run.server.length === 0, 'Without --metrics-url nothing is known of the service itself.'],
  ];
  return warnings.flatMap(([isSo, warning]) => (isSo ? [warning] : []));
}

/** The figures of a run by stage and operation, and of all together. */
export function runTable(run: RunResult): Table {
  const head = 'answered,a second,refused,wrong,p50 ms,p90 ms,p99 ms,p99.9 ms,max ms'.split(',');
  const row = (name: string, one: Omit<Operation, 'stage' | 'operation'>) => {
    const { p50, p90, p99, p999, max } = one.latencies;
    const figures = [one.answered, one.perSecond, one.refused, one.wrong, p50, p90, p99, p999, max];
    return [name, ...figures.map(formatNumber)];
  };
  return [
    ['', ...head],
    ...run.operations.map((one) => row(`${one.stage} ${one.operation}`.trim(), one)),
    row('all', totalsOf(run)),
  ];
}

/** CPU (mean cores) and memory (largest MiB) that the service told of; undefined where it told nothing. */
export function serviceLine({ server, metricsOf = 1 }: RunResult): string | undefined {
  const cores = server.flatMap(({ cpuCores }) => cpuCores ?? []);
  const memory = Math.max(0, ...server.flatMap(({ residentMib }) => residentMib ?? []));
  if (cores.length === 0 && memory === 0) return undefined;
  const whose =
    metricsOf === 1
      ? 'one process, whose --metrics-url was given: others of the target are not in it'
      : `${metricsOf} processes, summed`;
  const cpu = cores.length === 0 ? '' : `${formatNumber(meanOf(cores))} cores on average, `;
  return `service: ${cpu}${formatNumber(memory)} MiB resident at most (${whose})`;
}

/** The figures of two runs beside each other, and the change: of the whole, then of each operation in a stage that both have. */
export function comparisonTable(before: RunResult, after: RunResult): Table {
  const row = (name: string, a: number, b: number, isCost = true): readonly string[] => {
    const percent = (100 * (b - a)) / a;
    const verdict = Math.abs(percent) < 10 ? '' : percent > 0 === isCost ? ' worse' : ' better';
    const change = `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %${verdict}`;
    return [name, formatNumber(a), formatNumber(b), Number.isFinite(percent) ? change : '–'];
  };
  const [a, b] = [totalsOf(before), totalsOf(after)];
  const parts = before.operations.flatMap(({ stage, operation, perSecond, latencies }) => {
    const isSame = (one: Operation): boolean => one.stage === stage && one.operation === operation;
    const other = after.operations.find(isSame);
    if (other === undefined) return [];
    return [
      row(`${stage}, ${operation}: a second`, perSecond, other.perSecond, false),
      row(`${stage}, ${operation}: p50 ms`, latencies.p50, other.latencies.p50),
      row(`${stage}, ${operation}: p99 ms`, latencies.p99, other.latencies.p99),
    ];
  });
  const cpuMs = (run: RunResult): number =>
    (1000 * meanOf(run.server.flatMap(({ cpuCores }) => cpuCores ?? []))) / totalsOf(run).perSecond;
  return [
    ['', 'A', 'B', 'B against A'],
    row('answered a second', a.perSecond, b.perSecond, false),
    row('refused', a.refused, b.refused),
    row('wrong', a.wrong, b.wrong),
    ...(['p50', 'p99', 'p999', 'max'] as const).map((key) =>
      row(`${key === 'p999' ? 'p99.9' : key} ms`, a.latencies[key], b.latencies[key]),
    ),
    row('service, CPU ms for a request', cpuMs(before), cpuMs(after)),
    ...parts,
  ];
}

/** The figures of a scenario: a line for each, by its path. O(figures). */
export function figureLines(result: object): readonly string[] {
  const rowsOf = (value: unknown, path: readonly string[]): Table => {
    if (typeof value === 'object' && value !== null) {
      return Object.entries(value).flatMap(([name, one]) => rowsOf(one, [...path, name]));
    }
    if (value === undefined) return [];
    const text = typeof value === 'number' ? formatNumber(value) : JSON.stringify(value);
    return [[path.join(' '), text]];
  };
  return tableLines(rowsOf(result, []));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}
