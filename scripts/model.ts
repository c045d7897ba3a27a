/**
 * Models on the command line, without a service: npm run model -- SUBCOMMAND …
 * Ends with 0 when all is well, 1 when something is wrong with a model, 2 when the command or a file is.
 */
import { check } from './model/check.ts';
import { convert } from './model/convert.ts';
import { format } from './model/format.ts';
import { importModel } from './model/import.ts';
import { EXIT_USAGE, type Subcommand, UsageError } from './model/subcommand.ts';
import { test } from './model/test.ts';

/** By name; a new one is one more line. */
const SUBCOMMANDS: ReadonlyMap<string, Subcommand> = new Map([
  ['format', format],
  ['check', check],
  ['convert', convert],
  ['import', importModel],
  ['test', test],
]);

const [name = '--help', ...args] = process.argv.slice(2);
process.exitCode = await run(name, args);

async function run(subcommandName: string, rest: readonly string[]): Promise<number> {
  if (['--help', '-h', 'help'].includes(subcommandName)) {
    process.stdout.write(overview());
    return process.argv.length > 2 ? 0 : EXIT_USAGE;
  }
  const subcommand = SUBCOMMANDS.get(subcommandName);
  if (subcommand === undefined) {
    process.stderr.write(`model: there is no ${subcommandName}\n\n${overview()}`);
    return EXIT_USAGE;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(subcommand.help);
    return 0;
  }
  try {
    return await subcommand.run(rest);
  } catch (error) {
    if (!isOfUsage(error)) throw error;
    process.stderr.write(`model: ${error.message}\n\n${subcommand.help}`);
    return EXIT_USAGE;
  }
}

/** Ours, and what parseArgs says of options that are not there. */
function isOfUsage(error: unknown): error is Error {
  if (error instanceof UsageError) return true;
  return (
    error instanceof TypeError && String(Reflect.get(error, 'code')).startsWith('ERR_PARSE_ARGS_')
  );
}

function overview(): string {
  const lines = [...SUBCOMMANDS].map(([one, { summary }]) => `  ${one.padEnd(9)}${summary}\n`);
  return `usage: npm run model -- SUBCOMMAND …\n\n${lines.join('')}\nSUBCOMMAND --help says more.\n`;
}
