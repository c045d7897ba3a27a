/** `npm run load`: a scenario, a run by a file against any service, or a comparison of two runs. load/README.md. */
import { parseArgs } from 'node:util';
import { withCleanup } from '../bench/harness/cleanup.ts';
import {
  DRIVE_USAGE,
  UsageError,
  assertWritable,
  compareCommand,
  driveCommand,
  isDrive,
  isExplained,
  tellRemarks,
  writeReport,
} from './drive/drive-command.ts';
import { figureLines } from './report/figures.ts';
import { SCENARIOS } from './scenarios.ts';
import { Interrupted } from './scenarios/scenario.ts';

const USAGE = `usage: ${DRIVE_USAGE}a scenario, against a service of its own:
  npm run load -- <scenario> [--scale 1] [--seconds 20] [--rate N] [--connections 32] [--generators 1] [--seed 7] [--report FILE.html]
scenarios:
${SCENARIOS.map(({ name, question }) => `  ${name.padEnd(16)} ${question}`).join('\n')}
`;

/** The least of each number; a smaller data set has no deep grants to ask about. */
const LEAST = {
  scale: 0.1,
  seconds: 1,
  rate: 0.01,
  connections: 1,
  generators: 1,
  seed: 0,
} as const;

const OPTIONS = {
  help: { type: 'boolean', default: false },
  scale: { type: 'string', default: '1' },
  seconds: { type: 'string', default: '20' },
  rate: { type: 'string' },
  connections: { type: 'string', default: '32' },
  generators: { type: 'string', default: '1' },
  seed: { type: 'string', default: '7' },
  report: { type: 'string' },
} as const;

async function main(args: string[]): Promise<number> {
  const names = SCENARIOS.map(({ name }) => name);
  const isScenario = args[0] !== 'compare' && !isDrive(args, names);
  try {
    if (isScenario) return await scenario(args);
    return args[0] === 'compare' ? compareCommand(args.slice(1)) : await driveCommand(args);
  } catch (error) {
    if (error instanceof Interrupted) {
      process.stderr.write(`${error.message}\n`);
      return 130;
    }
    if (!isExplained(error)) throw error;
    process.stderr.write(`${error.message}\n${isScenario ? USAGE : ''}`);
    return 2;
  }
}

async function scenario(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: OPTIONS });
  const [name, ...others] = positionals;
  if (values.help || name === undefined) {
    process.stdout.write(USAGE);
    return 0;
  }
  const chosen = SCENARIOS.find((one) => one.name === name);
  if (chosen === undefined) throw new UsageError(`there is no scenario ${name}`);
  if (others.length > 0) throw new UsageError('one scenario at a time');
  assertWritable(values.report);
  const numberOf = (option: keyof typeof LEAST): number => {
    const value = Number(values[option]);
    const least = LEAST[option];
    const isWhole = Number.isInteger(value) || option === 'scale' || option === 'rate';
    if (Number.isFinite(value) && value >= least && isWhole) return value;
    throw new UsageError(`--${option} must be a ${isWhole ? '' : 'whole '}number from ${least} on`);
  };
  const options = {
    scale: numberOf('scale'),
    seconds: numberOf('seconds'),
    rate: values.rate === undefined ? undefined : numberOf('rate'),
    connections: numberOf('connections'),
    generators: numberOf('generators'),
    seed: numberOf('seed'),
  };
  process.stderr.write(`${name}: ${chosen.question}\n`);
  const { figures, runs = [] } = await chosen.run(options);
  process.stdout.write(
    `${JSON.stringify({ scenario: name, options, result: figures }, null, 2)}\n`,
  );
  process.stderr.write(`\n${figureLines(figures).join('\n')}\n`);
  const codes = runs.map(({ run }) => tellRemarks(run));
  if (values.report !== undefined && runs.length > 0) writeReport(values.report, runs);
  else if (values.report !== undefined) process.stderr.write(`${name} has no report\n`);
  return Math.max(0, ...codes);
}

process.exitCode = await withCleanup(() => main(process.argv.slice(2)));
