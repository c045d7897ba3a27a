import type {
  Machine,
  MeasuredRecord,
  RecordedTable,
  TranscribedRecord,
} from '../../bench/harness/record.ts';

/** A file of bench/results. */
export type BenchmarkRecord = TranscribedRecord | MeasuredRecord;

const INTRO = `# Benchmarks

Generated from \`bench/results/*.json\` by \`npm run docs:benchmarks\`. \`npm run bench -- NAME… --json bench/results/FILE.json\` adds a record with machine, load and commit; a \`+\` behind
the commit means uncommitted changes. "Transcribed" figures were copied from an earlier document. [performance.md](performance.md) explains the figures.

Compare ratios within one run only: the machines were shared. "In turns" means that both sides ran by turns in the same minutes. A CPU-second counts all threads of the service. Columns
that begin with "first" have the first contestant's figure over that of the row: medians of pairs of one round.
`;

/** The page docs/benchmarks.md: a section for each record, in their order. */
export function benchmarkMarkdown(records: readonly BenchmarkRecord[]): string {
  return [INTRO, ...records.map(sectionOf)].join('\n');
}

function sectionOf(record: BenchmarkRecord): string {
  const { title, command, date, commit } = record;
  const measuredOn = 'tables' in record ? record.machine : machineText(record.machine);
  const load =
    'tables' in record
      ? record.load
      : `load ${record.load.before} before, ${record.load.after} after`;
  const commands = command
    .split('; ')
    .map((one) => (/^(?:npm|npx|node|[A-Z_]+=)/.test(one) ? `\`${one}\`` : one));
  const blocks = [
    `## ${title}`,
    `${commands.join(', ')}\n${date}, commit ${commit}; ${measuredOn}; ${load}.`,
    ...('tables' in record ? transcribedBlocks(record) : measuredBlocks(record)),
  ];
  return `${blocks.join('\n\n')}\n`;
}

function machineText({ cpu, cores, memoryGiB, node }: Machine): string {
  return `${cores} cores of ${cpu}, ${memoryGiB} GiB; Node.js ${node.replace(/^v/, '')}`;
}

function transcribedBlocks({ about, tables }: TranscribedRecord): readonly string[] {
  return [
    ...about,
    ...tables.flatMap((table) =>
      table.caption === undefined ? [tableText(table)] : [`${table.caption}:`, tableText(table)],
    ),
  ];
}

function measuredBlocks({ programs }: MeasuredRecord): readonly string[] {
  return programs.flatMap(({ name, yields, code, results }) => {
    const columns = [...new Set(results.flatMap((row) => Object.keys(row)))];
    const rows = results.map((row) => columns.map((column) => cellOf(row[column])));
    const ending = code === 0 ? '' : ` It ended with exit code ${String(code)}.`;
    return [`\`${name}\`: ${yields}.${ending}`, tableText({ columns: columns.map(headOf), rows })];
  });
}

/** A value of a row; numbers from 10,000 on with commas. */
function cellOf(value: unknown): string {
  if (typeof value === 'number') return value < 10_000 ? `${value}` : value.toLocaleString('en-US');
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** `perCpuSecond` as "per cpu second". */
function headOf(column: string): string {
  return column.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** A table in Markdown. Rows that are shorter than the head are filled up. */
function tableText({ columns, rows }: RecordedTable): string {
  const line = (cells: readonly string[]): string =>
    `| ${columns.map((_, index) => (cells[index] ?? '').replaceAll(/(?<!\\)\|/g, '\\|')).join(' | ')} |`;
  return [line(columns), `|${columns.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
