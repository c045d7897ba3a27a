import { parseArgs } from 'node:util';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { printGate } from '../../src/language/gate/print-gate.ts';
import { findDuplicateKey } from '../../src/model/duplicate-key.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { isJson, readText, say, writeText } from './files.ts';
import { EXIT_OK, EXIT_PROBLEM, type Subcommand, UsageError } from './subcommand.ts';

/** Deeper than any model. */
const DEPTH_MAX = 100;

const HELP = `usage: npm run model -- convert FILE [--to gate|json] [--out FILE]

Writes a model in its other form: JSON as .gate, .gate as JSON. Both say the same, member for member; comments
are in .gate only. - is the standard input.

  --to gate|json   the form to write; the other one than FILE has, where it is not given
  --out FILE       where to; the standard output where it is not given

exit codes: 0 written; 1 FILE is no model; 2 the command or a file is wrong
`;

/** Writes a model in its other form. */
export const convert: Subcommand = {
  help: HELP,
  run: (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { to: { type: 'string' }, out: { type: 'string', default: '-' } },
      allowPositionals: true,
    });
    const [path, ...others] = positionals;
    if (path === undefined || others.length > 0) throw new UsageError('convert: one file, please');
    const text = readText(path);
    const isFromJson = isJson(path, text);
    const to = values.to ?? (isFromJson ? 'gate' : 'json');
    if (to !== 'gate' && to !== 'json') throw new UsageError('convert: --to is gate or json');
    try {
      const document: unknown = isFromJson ? parseJson(text) : parseGate(text).document;
      const duplicate = isFromJson ? findDuplicateKey(text, DEPTH_MAX) : undefined;
      if (duplicate !== undefined) {
        say(
          `${path}: ${duplicate.path}: duplicate key "${duplicate.key}", of which one would be lost`,
        );
        return EXIT_PROBLEM;
      }
      const gate = printGate(document);
      writeText(values.out, to === 'gate' ? gate : `${JSON.stringify(document, null, 2)}\n`);
      return EXIT_OK;
    } catch (error) {
      if (!(error instanceof AppError) && !(error instanceof SyntaxError)) throw error;
      say(`${path}: ${error.message}`);
      return EXIT_PROBLEM;
    }
  },
};

function parseJson(text: string): unknown {
  return JSON.parse(text);
}
