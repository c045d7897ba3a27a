import path from 'node:path';
import { parseArgs } from 'node:util';
import { printGate } from '../../src/language/gate/print-gate.ts';
import { assertionFileOf } from '../../src/language/peers/assertion-file.ts';
import { importPeerModel } from '../../src/language/peers/import-peer-model.ts';
import { importSuite, type ImportedSuite } from '../../src/language/peers/import-suite.ts';
import type { PeerRemark } from '../../src/language/peers/peer-model.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { say, writeText } from './files.ts';
import { readPeerFile } from './read-peer-file.ts';
import { runSuite } from './run-suite.ts';
import { EXIT_OK, EXIT_PROBLEM, type Subcommand, UsageError } from './subcommand.ts';

const HELP = `usage: npm run model -- import FILE [--from openfga|spicedb] [--user-type TYPE] [--out FILE] [--tests FILE]

Writes a model of OpenFGA (.fga, fga.mod, .json, .fga.yaml) or SpiceDB (.zed, validation files) as .gate, and
says on the standard error what it could not express, with the place and the reason, or what is called
otherwise. A model is imported whole or not at all. Assertions that the file brings along are asked of the
imported model, and the model is not written if one is answered otherwise.

  --from openfga|spicedb   whose file it is, where its name does not say
  --user-type TYPE         the type whose objects are users: the type user where it is not given; none is
                           no type, for models that walk through users
  --out FILE               where to write the model; the standard output where it is not given
  --tests FILE             where to write the assertions, as a file of assertions

exit codes: 0 imported, and every assertion holds; 1 refused, or an assertion does not hold; 2 the command or
a file is wrong
`;

/** Imports models of OpenFGA and SpiceDB. */
export const importModel: Subcommand = {
  help: HELP,
  run: (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        from: { type: 'string' },
        'user-type': { type: 'string' },
        out: { type: 'string', default: '-' },
        tests: { type: 'string' },
      },
      allowPositionals: true,
    });
    const [file, ...others] = positionals;
    if (file === undefined || others.length > 0) throw new UsageError('import: one file, please');
    if (![undefined, 'openfga', 'spicedb'].includes(values.from)) {
      throw new UsageError('import: --from is openfga or spicedb');
    }
    const { from, out, tests, 'user-type': userType } = values;
    return importFile({ file, from, userType, out, tests });
  },
};

type Options = {
  readonly file: string;
  readonly from: string | undefined;
  readonly userType: string | undefined;
  readonly out: string;
  readonly tests: string | undefined;
};

function importFile({ file, from, userType, out, tests }: Options): number {
  try {
    const { peer, suite } = readPeerFile(file, from);
    const imported = importPeerModel(peer, { userType });
    tell(file, 'note', imported.notes);
    tell(file, 'cannot be expressed', imported.problems);
    if (imported.document === undefined) {
      say(`${file}: refused`);
      return EXIT_PROBLEM;
    }
    const asked = importSuite(imported, suite);
    if (!holds(file, JSON.stringify(imported.document), asked)) return EXIT_PROBLEM;
    writeText(out, printGate(imported.document));
    if (tests !== undefined) writeTests(file, tests, out, asked);
    return EXIT_OK;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    say(`${file}: ${error.message}`);
    return EXIT_PROBLEM;
  }
}

function holds(file: string, modelJson: string, asked: ImportedSuite): boolean {
  tell(file, 'left out', asked.problems);
  tell(file, 'not asked', asked.unsupported);
  const { assertions, differences } = runSuite(modelJson, asked);
  for (const difference of differences) say(`${file}: differs: ${difference}`);
  const left = asked.problems.length + asked.unsupported.length;
  if (assertions + left > 0) {
    const equal = assertions - differences.length;
    say(`${file}: ${equal} of ${assertions} assertions hold, ${left} could not be asked`);
  }
  return differences.length === 0;
}

function writeTests(file: string, tests: string, out: string, asked: ImportedSuite): void {
  const modelFile = path.relative(path.dirname(tests), out === '-' ? 'model.gate' : out);
  const text = assertionFileOf(asked, modelFile);
  if (text === undefined) say(`${file}: it has no assertions to write`);
  else writeText(tests, text);
}

function tell(file: string, kind: string, remarks: readonly PeerRemark[]): void {
  for (const { place, text } of remarks) say(`${file}: ${kind}: ${place}: ${text}`);
}
