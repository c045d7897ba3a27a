import type {
  Machine,
  MeasuredRecord,
  RecordedTable,
  TranscribedRecord,
} from '../../bench/harness/record.ts';

/** A file of bench/results. */
export type BenchmarkRecord = TranscribedRecord | MeasuredRecord;

const INTRO = `# Benchmarks

Generated from \`bench/results/*.json\` by \`npm run docs:benchmarks\`; edit the records there. \`npm run bench -- NAME… --json
bench/results/FILE.json\` adds a record with machine, load and commit. A record whose commit is "transcribed" was copied from an
earlier document. [performance.md](performance.md) says why the figures are what they are, and [adr](adr) what was rejected.

Ratios within one run count. Absolute figures of different runs do not compare: the machines were shared. "In turns" means that
both sides ran by turns in the same minutes. A CPU-second counts all threads of the service.

Micro-benchmarks run together by \`npm run bench\`; \`-- --compare\` sets their ratios beside \`bench/baseline.json\`.
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

function measuredBlocks({ micro, programs, comparisons }: MeasuredRecord): readonly string[] {
  const blocks: string[] = [];
  if (micro.length > 0) {
    const changeOf = new Map(comparisons.map((one) => [one.name, `${one.change}, ${one.verdict}`]));
    blocks.push(
      tableText({
        columns: ['benchmark', 'yields', 'median', 'fastest', 'noise', 'over the baseline'],
        rows: micro.map((one) => [
          `\`${one.name}\``,
          one.yields,
          `${one.nsPerOperation}`,
          `${one.nsFastest}`,
          `±${(one.noise * 100).toFixed(0)} %`,
          changeOf.get(one.name) ?? '',
        ]),
      }),
    );
  }
  for (const { name, yields, code, results } of programs) {
    const lines = results.map((result) => JSON.stringify(result)).join('\n');
    const ending = code === 0 ? '' : ` It ended with exit code ${String(code)}.`;
    blocks.push(`\`${name}\`: ${yields}.${ending}`, `\`\`\`json\n${lines}\n\`\`\``);
  }
  return blocks;
}

/** A table in Markdown. Rows that are shorter than the head are filled up. */
function tableText({ columns, rows }: RecordedTable): string {
  const line = (cells: readonly string[]): string =>
    `| ${columns.map((_, index) => (cells[index] ?? '').replaceAll(/(?<!\\)\|/g, '\\|')).join(' | ')} |`;
  return [line(columns), `|${columns.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
