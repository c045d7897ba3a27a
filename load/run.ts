/** `npm run load -- <scenario> [--scale 1] [--seconds 20] [--rate N] [--connections 32] [--seed 7]` */
import { parseArgs } from 'node:util';
import type { LoadOptions } from './harness/scenario.ts';
import { type Service, startService } from './harness/service.ts';
import { SCENARIOS } from './scenarios.ts';

const USAGE = `usage: npm run load -- <scenario> [--scale 1] [--seconds 20] [--rate N] [--connections 32] [--seed 7]
scenarios:
${SCENARIOS.map((s) => `  ${s.name.padEnd(22)} ${s.purpose}`).join('\n')}`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      scale: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '20' },
      rate: { type: 'string' },
      connections: { type: 'string', default: '32' },
      seed: { type: 'string', default: '7' },
    },
  });
  const scenario = SCENARIOS.find((s) => s.name === positionals[0]);
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
  if (scenario === undefined || bad !== undefined) {
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
  process.stderr.write(`${scenario.name}: ${scenario.question}\n`);
  try {
    const result = await scenario.run(options, start);
    process.stdout.write(
      `${JSON.stringify({ scenario: scenario.name, options, result }, null, 2)}\n`,
    );
    return 0;
  } finally {
    for (const service of running) await service.stop();
  }
}

process.exitCode = await main();
