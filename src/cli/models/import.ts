import path from 'node:path';
import { usage } from '../../command-line/parse-words.ts';
import { printGate } from '../../language/gate/print-gate-tree.ts';
import { assertionFileOf } from '../../language/peers/assertion-file.ts';
import { importPeerModel } from '../../language/peers/import-peer-model.ts';
import { importSuite, type ImportedSuite } from '../../language/peers/import-suite.ts';
import type { PeerRemark } from '../../language/peers/peer-model.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { writeText } from '../core/files.ts';
import { fileOf, isOfContent, say } from './files/model-files.ts';
import { readPeerFile } from './files/read-peer-file.ts';
import { runSuite } from './files/run-suite.ts';

/** `model import`: writes a model of OpenFGA or SpiceDB as `.gate`. */
export function importModel(line: CliLine): Promise<number> {
  const file = fileOf(line);
  const from = line.text('from');
  if (![undefined, 'openfga', 'spicedb'].includes(from)) {
    throw usage('--from is openfga or spicedb');
  }
  return Promise.resolve(importFile(line, file, from));
}

function importFile(line: CliLine, file: string, from: string | undefined): number {
  const out = line.text('out') ?? '-';
  const tests = line.text('tests');
  try {
    const { peer, suite } = readPeerFile(file, from);
    const imported = importPeerModel(peer, { userType: line.text('user-type') });
    sayRemarks(line, file, 'note', imported.notes);
    sayRemarks(line, file, 'cannot be expressed', imported.problems);
    if (imported.document === undefined) {
      say(line, `${file}: refused`);
      return EXIT_NO;
    }
    const asked = importSuite(imported, suite);
    if (!holds(line, file, JSON.stringify(imported.document), asked)) return EXIT_NO;
    writeText(out, printGate(imported.document));
    if (tests !== undefined) writeTests(line, tests, asked);
    return EXIT_OK;
  } catch (error) {
    if (!isOfContent(error)) throw error;
    say(line, `${file}: ${error.message}`);
    return EXIT_NO;
  }
}

function holds(line: CliLine, file: string, modelJson: string, asked: ImportedSuite): boolean {
  sayRemarks(line, file, 'left out', asked.problems);
  sayRemarks(line, file, 'not asked', asked.unsupported);
  const { assertions, differences } = runSuite(modelJson, asked);
  for (const difference of differences) say(line, `${file}: differs: ${difference}`);
  const left = asked.problems.length + asked.unsupported.length;
  if (assertions + left > 0) {
    const equal = assertions - differences.length;
    say(line, `${file}: ${equal} of ${assertions} assertions hold, ${left} could not be asked`);
  }
  return differences.length === 0;
}

function writeTests(line: CliLine, tests: string, asked: ImportedSuite): void {
  const out = line.text('out') ?? '-';
  const modelFile = path.relative(path.dirname(tests), out === '-' ? 'model.gate' : out);
  const text = assertionFileOf(asked, modelFile);
  if (text === undefined) say(line, `${fileOf(line)}: it has no assertions to write`);
  else writeText(tests, text);
}

function sayRemarks(
  line: CliLine,
  file: string,
  kind: string,
  remarks: readonly PeerRemark[],
): void {
  for (const { place, text } of remarks) say(line, `${file}: ${kind}: ${place}: ${text}`);
}
