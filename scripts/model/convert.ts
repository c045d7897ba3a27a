import { parseArgs } from 'node:util';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { printGate } from '../../src/language/gate/print-gate.ts';
import { findDuplicateKey } from '../../src/model/duplicate-key.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { convertTuples } from './convert-tuples.ts';
import { isJson, readText, say, writeText } from './files.ts';
import { EXIT_OK, EXIT_PROBLEM, type Subcommand, UsageError } from './subcommand.ts';

/** Deeper than any model. */
const DEPTH_MAX = 100;

const HELP = `usage: npm run model -- convert FILE [--to gate|json] [--out FILE]
       npm run model -- convert FILE --to tuples [--format json|csv|yaml|text] [--from openfga|spicedb]
                                [--model FILE] [--user-type TYPE] [--skip] [--out FILE]

Writes a model in its other form: JSON as .gate, .gate as JSON. Both say the same, member for member; comments
are in .gate only. - is the standard input.

  --to gate|json   the form to write; the other one than FILE has, where it is not given
  --out FILE       where to; the standard output where it is not given

With --to tuples, or of a file .csv, .jsonl, .ndjson, .yaml or .txt: tuples of OpenFGA (JSON, JSON lines, YAML, store
files, CSV) or SpiceDB (relationships as text, validation files) become lines of JSON for POST /v1/tuples:import.
The first one that cannot be carried over ends it, named by line and field.

  --format FORM    the form of FILE, where its name does not say; text are relationships of SpiceDB
  --model FILE     the model of the peer: names are then those that \`import\` gave them. A store or validation file
                   with a model is its own
  --from WHOSE     whose model that is, where its name does not say
  --user-type TYPE the type whose objects are users: user where it is not given, none for no type
  --skip           leaves out what cannot be carried over, says what, and counts it

exit codes: 0 written; 1 FILE is no model, or a tuple cannot be carried over; 2 the command or a file is wrong
`;

/** Writes a model in its other form. */
export const convert: Subcommand = {
  help: HELP,
  run: async (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        to: { type: 'string' },
        out: { type: 'string', default: '-' },
        format: { type: 'string' },
        from: { type: 'string' },
        model: { type: 'string' },
        'user-type': { type: 'string' },
        skip: { type: 'boolean', default: false },
      },
      allowPositionals: true,
    });
    const [path, ...others] = positionals;
    if (path === undefined || others.length > 0) throw new UsageError('convert: one file, please');
    const { format, from, model, skip: skips, 'user-type': userType } = values;
    if (![undefined, 'openfga', 'spicedb'].includes(from)) {
      throw new UsageError('convert: --from is openfga or spicedb');
    }
    const isTuples = values.to === undefined ? hasTuples(path) : values.to === 'tuples';
    if (isTuples) {
      return await convertTuples({
        file: path,
        out: values.out,
        format,
        from,
        model,
        userType,
        skips,
      });
    }
    const text = readText(path);
    const isFromJson = isJson(path, text);
    const to = values.to ?? (isFromJson ? 'gate' : 'json');
    if (to !== 'gate' && to !== 'json')
      throw new UsageError('convert: --to is gate, json or tuples');
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

/** Whether the name of a file is one of tuples, and never one of a model. */
function hasTuples(path: string): boolean {
  return /\.(?:csv|jsonl|ndjson|ya?ml|zaml|txt)$/i.test(path);
}

function parseJson(text: string): unknown {
  return JSON.parse(text);
}
