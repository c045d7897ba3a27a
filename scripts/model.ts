/**
 * Models on the command line, without a service: npm run model -- SUBCOMMAND …
 * Ends with 0 when all is well, 1 when something is wrong with a model, 2 when the command or a file is.
 */
import { EXIT_USAGE, type Subcommand, UsageError } from './model/subcommand.ts';

/** A subcommand is loaded when it is run: the parsers of other systems take longer than a format. */
type Entry = {
  /** One line for the list of them. */
  readonly summary: string;
  readonly load: () => Promise<Subcommand>;
};

/** By name; a new one is one more entry. */
const SUBCOMMANDS: ReadonlyMap<string, Entry> = new Map<string, Entry>([
  [
    'format',
    {
      summary: 'lay .gate files out, comments kept',
      load: async () => (await import('./model/format.ts')).format,
    },
  ],
  [
    'check',
    {
      summary: 'say what is wrong with models, by line and column',
      load: async () => (await import('./model/check.ts')).check,
    },
  ],
  [
    'convert',
    {
      summary: 'write a model as .gate or as JSON, or tuples of OpenFGA and SpiceDB for :import',
      load: async () => (await import('./model/convert.ts')).convert,
    },
  ],
  [
    'import',
    {
      summary: 'write a model of OpenFGA or SpiceDB as .gate, and try its own assertions',
      load: async () => (await import('./model/import.ts')).importModel,
    },
  ],
  [
    'types',
    {
      summary: 'write a model as a type of TypeScript, for @gatehouse/client',
      load: async () => (await import('./model/types.ts')).types,
    },
  ],
  [
    'test',
    {
      summary: 'run files of assertions against a model',
      load: async () => (await import('./model/test.ts')).test,
    },
  ],
]);

const [name = '--help', ...args] = process.argv.slice(2);
process.exitCode = await run(name, args);

async function run(subcommandName: string, rest: readonly string[]): Promise<number> {
  if (['--help', '-h', 'help'].includes(subcommandName)) {
    process.stdout.write(overview());
    return process.argv.length > 2 ? 0 : EXIT_USAGE;
  }
  const subcommand = await SUBCOMMANDS.get(subcommandName)?.load();
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
