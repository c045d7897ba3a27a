import { unpackHistogram } from '../drive/latency-histogram.ts';
import { percentilesOf } from '../drive/run-counts.ts';
import type { RunResult, ServerSample } from '../drive/run-result.ts';
import { formatNumber } from './chart.ts';
import { totalsOf } from './run-report.ts';

/** Rows of cells as lines, the first column to the left and all others to the right. O(cells). */
export function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows.reduce<number[]>((most, row) => {
    for (const [at, cell] of row.entries()) most[at] = Math.max(most[at] ?? 0, cell.length);
    return most;
  }, []);
  return rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/** The figures of a run for people, by stage and operation, and what the service took. */
export function runTable(run: RunResult): readonly string[] {
  const head = [
    '',
    'answered',
    'a second',
    'refused',
    'wrong',
    'p50 ms',
    'p99 ms',
    'p99.9 ms',
    'max ms',
  ];
  const totals = totalsOf(run);
  const all = percentilesOf(unpackHistogram(run.latencies));
  const row = (
    name: string,
    {
      answered,
      perSecond,
      refused,
      wrong,
    }: Pick<typeof totals, 'answered' | 'perSecond' | 'refused' | 'wrong'>,
    { p50, p99, p999, max }: typeof all,
  ): readonly string[] => [
    name,
    ...[answered, perSecond, refused, wrong, p50, p99, p999, max].map(figureOf),
  ];
  const operations = run.operations.map((one) =>
    row([one.stage, one.operation].filter((name) => name !== '').join(' '), one, one.latencies),
  );
  const lines = tableLines([head, ...operations, row('all', totals, all)]);
  return [...lines, ...serverLines(run)];
}

function serverLines({ server, metricsOf = 1 }: RunResult): readonly string[] {
  const mean = (of: (sample: ServerSample) => number | undefined): number | undefined => {
    const values = server.flatMap((sample) => of(sample) ?? []);
    return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length;
  };
  const cores = mean(({ cpuCores }) => cpuCores);
  const memory = Math.max(0, ...server.flatMap(({ residentMib }) => residentMib ?? []));
  if (cores === undefined && memory === 0) return [];
  const whose =
    metricsOf === 1
      ? 'one process, whose --metrics-url was given: others of the target are not in it'
      : `${metricsOf} processes, summed`;
  const cpu = cores === undefined ? '' : `${figureOf(cores)} cores on average, `;
  return [`service: ${cpu}${figureOf(memory)} MiB resident at most (${whose})`];
}

/** The figures of a scenario for people: a line for each number, by its path; lists by their place. O(figures). */
export function figuresTable(result: unknown): readonly string[] {
  const rows: (readonly string[])[] = [];
  const walk = (value: unknown, path: string): void => {
    if (typeof value === 'number') rows.push([path, figureOf(value)]);
    else if (typeof value === 'string' || typeof value === 'boolean')
      rows.push([path, String(value)]);
    else if (typeof value === 'object' && value !== null) {
      for (const [name, one] of Object.entries(value))
        walk(one, path === '' ? name : `${path} ${name}`);
    }
  };
  walk(result, '');
  return tableLines(rows);
}

/** A whole number as it is, and of others three digits. */
function figureOf(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString('en-GB') : formatNumber(value);
}
