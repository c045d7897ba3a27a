/** `npm run bench` lists the benchmarks, `npm run bench -- NAME…` runs them. A JSON line a row goes to stderr as it comes, all of them to stdout. */
import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { PROGRAMS, type ProgramResult, runProgram } from './harness/programs.ts';
import { commitOfTree, loadNow, machineOf, writeRecord } from './harness/record.ts';

const USAGE = `usage: npm run bench -- NAME… [--seconds 2] [--rounds 7] [--scale 0.1] [--json FILE] [-- ARGUMENT…]
${PROGRAMS.map(({ name, yields }) => `  ${name.padEnd(14)} ${yields}`).join('\n')}
ARGUMENTs go to the benchmark: a CHECKOUT is the directory of another checkout with its dependencies installed, which takes
turns with this one; columns that begin with "first" have this one's figure over that of the row. --scale 1 is 101,000 tuples. --json writes a record for bench/results (npm run docs:benchmarks).
`;

/** A smaller data set has no deep grants to ask about. */
const LEAST = { seconds: 0.1, rounds: 1, scale: 0.1 } as const;

type Options = {
  readonly names: readonly string[];
  readonly programArguments: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where the record of the run goes: machine, load, commit, results. */
  readonly json: string | undefined;
};

/** Errors: throws with what is wrong with the arguments. */
function optionsOf(args: readonly string[]): Options {
  const border = args.indexOf('--');
  const { values, positionals } = parseArgs({
    args: border < 0 ? [...args] : args.slice(0, border),
    allowPositionals: true,
    options: {
      help: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      scale: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const known = new Set(PROGRAMS.map(({ name }) => name));
  const unknown = positionals.find((name) => !known.has(name));
  if (unknown !== undefined) throw new Error(`there is no benchmark "${unknown}"`);
  const env: Record<string, string> = {};
  for (const name of ['seconds', 'rounds', 'scale'] as const) {
    const value = values[name];
    if (value === undefined) continue;
    const least = LEAST[name];
    if (!(Number(value) >= least && Number(value) < Infinity))
      throw new Error(`--${name} must be at least ${least}`);
    env[`BENCH_${name.toUpperCase()}`] = value;
  }
  if (values.json !== undefined) accessSync(dirname(values.json), constants.W_OK);
  return {
    names: values.help ? [] : positionals,
    programArguments: border < 0 ? [] : args.slice(border + 1),
    env,
    json: values.json,
  };
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = optionsOf(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
  const { names, env, programArguments, json } = options;
  if (names.length === 0) {
    process.stdout.write(USAGE);
    return 0;
  }
  const machine = machineOf();
  // Before the run: without a checkout it ends here, not after an hour.
  const commit = json === undefined ? '' : commitOfTree();
  const before = loadNow();
  const programs: ProgramResult[] = [];
  for (const program of PROGRAMS.filter(({ name }) => names.includes(name))) {
    process.stderr.write(`${program.name}: ${program.yields}\n`);
    programs.push(await runProgram(program, { env, arguments: programArguments }));
  }
  process.stdout.write(`${JSON.stringify({ machine, programs }, null, 2)}\n`);
  if (json !== undefined) {
    const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
    const date = new Date().toISOString().slice(0, 10);
    const load = { before, after: loadNow() };
    writeRecord(json, { title: names.join(', '), command, date, commit, machine, load, programs });
  }
  return programs.every(({ code }) => code === 0) ? 0 : 1;
}

// The benchmark hears of Ctrl-C as well, and ends what it started first.
process.on('SIGINT', () => undefined);
process.exitCode = await main();
