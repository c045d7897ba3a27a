/**
 * `npm run bench` runs every micro-benchmark; `npm run bench -- NAME…` those named, long ones too.
 * Each yields the number that `--list` states. JSON goes to stdout, progress to stderr; what differs
 * from the baseline is told, never a failure: machines are noisy.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compareWithBaseline, readBaseline, writeBaseline } from './harness/baseline.ts';
import { measureMicro, type MicroResult } from './harness/measure.ts';
import { PROGRAMS, runProgram } from './harness/programs.ts';
import {
  commitOfTree,
  loadNow,
  machineOf,
  type ProgramResult,
  writeRecord,
} from './harness/record.ts';
import { MICRO_BENCHES } from './micro/all.ts';

const FLAGS = {
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
  compare: { type: 'boolean', default: false },
  'save-baseline': { type: 'boolean', default: false },
  out: { type: 'string' },
  json: { type: 'string' },
  ms: { type: 'string', default: '100' },
  scale: { type: 'string', default: '1' },
} as const;

const listed = ({ name, yields }: { readonly name: string; readonly yields: string }): string =>
  `  ${name.padEnd(20)} ${yields}`;
const USAGE = `usage: npm run bench -- [NAME…] [--compare] [--save-baseline] [--out FILE] [--json FILE] [--ms 100] [--scale 1] [-- ARGUMENTS…]
micro-benchmarks, all of them without a NAME:
${MICRO_BENCHES.map(listed).join('\n')}
--json writes a record for bench/results, from which docs/benchmarks.md is made.
long benchmarks, by name; ARGUMENTS go to the program, a DATA_DIR left out is made at --scale:
${PROGRAMS.map(listed).join('\n')}
`;

type Options = {
  readonly names: readonly string[];
  readonly programArguments: readonly string[];
  readonly roundMs: number;
  readonly scale: number;
  readonly out: string | undefined;
  /** Where the record of the run goes: machine, load, commit, results. */
  readonly json: string | undefined;
  readonly isCompared: boolean;
  readonly isSaved: boolean;
};

/** Undefined when the usage was asked for. Errors: says what is wrong with them. */
function optionsOf(args: readonly string[]): Options | undefined {
  const border = args.indexOf('--');
  const { values, positionals } = parseArgs({
    args: border < 0 ? [...args] : args.slice(0, border),
    allowPositionals: true,
    options: FLAGS,
  });
  if (values.list || values.help) return undefined;
  const known = new Set([...MICRO_BENCHES, ...PROGRAMS].map(({ name }) => name));
  const stranger = positionals.find((name) => !known.has(name));
  if (stranger !== undefined) throw new Error(`there is no benchmark "${stranger}"`);
  for (const name of ['ms', 'scale'] as const) {
    const number = Number(values[name]);
    if (!Number.isFinite(number) || number <= 0) throw new Error(`--${name} is not above 0`);
  }
  return {
    names: positionals.length > 0 ? positionals : MICRO_BENCHES.map(({ name }) => name),
    programArguments: border < 0 ? [] : args.slice(border + 1),
    roundMs: Number(values.ms),
    scale: Number(values.scale),
    out: values.out,
    json: values.json,
    isCompared: values.compare,
    isSaved: values['save-baseline'],
  };
}

async function main(): Promise<number> {
  let options: Options | undefined;
  try {
    options = optionsOf(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
  if (options === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  const machine = machineOf();
  // Before the run: without a checkout it ends here, not after an hour.
  const commit = options.json === undefined ? '' : commitOfTree();
  const before = loadNow();
  const micro: MicroResult[] = [];
  for (const bench of MICRO_BENCHES) {
    if (!options.names.includes(bench.name)) continue;
    const result = await measureMicro(bench, options.roundMs);
    micro.push(result);
    const noise = (result.noise * 100).toFixed(0);
    process.stderr.write(`${bench.name}: ${result.nsPerOperation} ${bench.yields}, ±${noise} %\n`);
  }
  const programs: ProgramResult[] = [];
  let exitCode = 0;
  for (const program of PROGRAMS) {
    if (!options.names.includes(program.name)) continue;
    process.stderr.write(`${program.name}: ${program.yields}\n`);
    const { scale, programArguments } = options;
    const { results, code } = await runProgram(program, { scale, arguments: programArguments });
    programs.push({ name: program.name, yields: program.yields, code, results });
    if (code !== 0) exitCode = 1;
  }
  if (options.isSaved) writeBaseline(micro, machine);
  const comparisons = options.isCompared ? compareWithBaseline(micro, readBaseline()) : [];
  for (const { name, change, noise, verdict } of comparisons) {
    process.stderr.write(`${name}: ${change} × the baseline, ${verdict} (±${noise})\n`);
  }
  const text = `${JSON.stringify({ machine, micro, programs, comparisons }, null, 2)}\n`;
  process.stdout.write(text);
  if (options.out !== undefined) writeFileSync(options.out, text);
  if (options.json !== undefined) {
    writeRecord(options.json, {
      title: options.names.join(', '),
      command: ['npm run bench --', ...process.argv.slice(2)].join(' '),
      date: new Date().toISOString().slice(0, 10),
      commit,
      machine,
      load: { before, after: loadNow() },
      micro,
      programs,
      comparisons,
    });
  }
  return exitCode;
}

process.exitCode = await main();
