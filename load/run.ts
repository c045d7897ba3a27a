/** `npm run load`: a scenario, a run by a file against any service, or a comparison of two runs. load/README.md. */
import { parseArgs } from 'node:util';
import { type Service, startService } from '../bench/harness/service.ts';
import {
  DRIVE_USAGE,
  compareCommand,
  driveCommand,
  isDrive,
  isExplained,
} from './drive/drive-command.ts';
import type { LoadOptions } from './harness/scenario.ts';
import { figuresTable } from './report/run-table.ts';
import { SCENARIOS } from './scenarios.ts';

const USAGE = `usage: ${DRIVE_USAGE}a scenario, against a service of its own:
  npm run load -- <scenario> [--scale 1] [--seconds 20] [--rate N] [--connections 32] [--seed 7]
scenarios:
${SCENARIOS.map((s) => `  ${s.name.padEnd(22)} ${s.purpose}`).join('\n')}`;

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  try {
    if (args[0] === 'compare') return compareCommand(args.slice(1));
    if (isDrive(args)) return await driveCommand(args);
  } catch (error) {
    if (!isExplained(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  return await scenario();
}

function readArgs() {
  return parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean', default: false },
      scale: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '20' },
      rate: { type: 'string' },
      connections: { type: 'string', default: '32' },
      seed: { type: 'string', default: '7' },
    },
  });
}

async function scenario(): Promise<number> {
  let args: ReturnType<typeof readArgs>;
  try {
    args = readArgs();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    return 2;
  }
  const { values, positionals } = args;
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const chosen = SCENARIOS.find((s) => s.name === positionals[0]);
  const options: LoadOptions = {
    scale: Number(values.scale),
    seconds: Number(values.seconds),
    rate: values.rate === undefined ? undefined : Number(values.rate),
    connections: Number(values.connections),
    seed: Number(values.seed),
  };
  const bad = Object.entries(options).find(
    ([, v]) => v !== undefined && !(Number.isFinite(v) && v > 0),
  );
  if (chosen === undefined || bad !== undefined) {
    process.stderr.write(
      `${bad === undefined ? '' : `--${bad[0]} must be a positive number\n`}${USAGE}\n`,
    );
    return 2;
  }
  const running: Service[] = [];
  const start = async (env?: Readonly<Record<string, string>>): Promise<Service> => {
    const service = await startService(env);
    running.push(service);
    return service;
  };
  process.stderr.write(`${chosen.name}: ${chosen.question}\n`);
  try {
    const result = await chosen.run(options, start);
    process.stdout.write(
      `${JSON.stringify({ scenario: chosen.name, options, result }, null, 2)}\n`,
    );
    process.stderr.write(`\n${figuresTable(result).join('\n')}\n`);
    return 0;
  } finally {
    for (const service of running) await service.stop();
  }
}

process.exitCode = await main();
