import { parseArgs } from 'node:util';
import { formatGate } from '../../src/language/gate/print-gate.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { readText, say, writeText } from './files.ts';
import { EXIT_OK, EXIT_PROBLEM, type Subcommand, UsageError } from './subcommand.ts';

const HELP = `usage: npm run model -- format [--check] FILE.gate…

Lays files out in the one way that there is, and keeps their comments. - reads the standard input and
writes the standard output.

  --check   changes nothing, and names the files that are laid out otherwise

exit codes: 0 all are laid out so, now or already; 1 one is not (--check), or is no model;
2 the command or a file is wrong
`;

/** Formats `.gate` files in place. */
export const format: Subcommand = {
  help: HELP,
  run: (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { check: { type: 'boolean', default: false } },
      allowPositionals: true,
    });
    if (positionals.length === 0) throw new UsageError('format: which files?');
    const codes = positionals.map((path) => formatFile(path, values.check));
    return Math.max(...codes);
  },
};

function formatFile(path: string, isCheck: boolean): number {
  const text = readText(path);
  try {
    const formatted = formatGate(text);
    if (isCheck) {
      if (formatted === text) return EXIT_OK;
      say(`${path}: is laid out otherwise`);
      return EXIT_PROBLEM;
    }
    if (formatted !== text || path === '-') writeText(path, formatted);
    return EXIT_OK;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    say(`${path}: ${error.message}`);
    return EXIT_PROBLEM;
  }
}
