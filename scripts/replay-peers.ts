/**
 * Replays the assertions of other systems' repositories through the importers: npm run replay:peers -- FOLDER…
 * Takes every store file of OpenFGA (`*.fga.yaml`), file of its own suite (`tests/*.yaml` with stages) and
 * validation file of SpiceDB in the folders, imports each model, and asks the engine what the file asserts.
 * Ends with 0 when every assertion that could be asked of an imported model is answered as there, 1 when
 * one is not, 2 when a folder cannot be read. Models that are refused are named with the reason.
 *
 * `-- --against URL-or-program` compares with a running OpenFGA instead, or with a program of it that is started ('found': the one on
 * this machine): scripts/peers/replay-against.ts. `--questions N`, `--seed S` and `--versions N` say how much, which, and how many versions a model has.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { readPeerFile } from '../src/cli/models/files/read-peer-file.ts';
import { runSuite } from '../src/cli/models/files/run-suite.ts';
import { readOpenFgaDsl } from '../src/language/openfga/read-openfga-model.ts';
import { readSuiteFile } from '../src/language/openfga/read-suite-file.ts';
import { importPeerModel } from '../src/language/peers/import-peer-model.ts';
import { importSuite } from '../src/language/peers/import-suite.ts';
import { membersOf } from '../src/language/peers/json-shape.ts';
import type { PeerModel, PeerSuite } from '../src/language/peers/peer-model.ts';
import { readYaml } from '../src/language/peers/read-yaml.ts';
import { AppError } from '../src/shared/app-error.ts';
import { replayAgainst } from './peers/replay-against.ts';

type Replay = { readonly name: string; readonly peer: PeerModel; readonly suite: PeerSuite };

const { values: flags, positionals: folders } = parseArgs({
  allowPositionals: true,
  options: {
    against: { type: 'string' },
    questions: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now()) },
    versions: { type: 'string', default: '3' },
  },
});
if (flags.against !== undefined) {
  process.exitCode = await replayAgainst(
    flags.against,
    Number(flags.questions),
    flags.seed,
    Number(flags.versions),
  );
} else if (folders.length === 0) {
  process.stderr.write(
    'usage: npm run replay:peers -- FOLDER… | --against URL-or-program [--questions N] [--seed S] [--versions N]\n',
  );
  process.exitCode = 2;
}
for (const folder of folders) replayFolder(folder);

function replayFolder(folder: string): void {
  const counts = { models: 0, refused: 0, assertions: 0, equal: 0, notAsked: 0 };
  const reasons = new Map<string, number>();
  const files = globSync('**/*.yaml', { cwd: folder }).toSorted();
  for (const { name, peer, suite } of files.flatMap((file) => replaysOf(path.join(folder, file)))) {
    counts.models += 1;
    const imported = importPeerModel(peer, { userType: undefined });
    if (imported.document === undefined) {
      counts.refused += 1;
      const [first] = imported.problems;
      process.stdout.write(`refused: ${name}: ${first?.place}: ${first?.text}\n`);
      continue;
    }
    const asked = importSuite(imported, suite);
    const { assertions, differences } = runSuite(JSON.stringify(imported.document), asked);
    counts.assertions += assertions;
    counts.equal += assertions - differences.length;
    counts.notAsked += asked.unsupported.length;
    for (const { text } of asked.unsupported) reasons.set(text, (reasons.get(text) ?? 0) + 1);
    for (const difference of differences) process.stdout.write(`differs: ${name}: ${difference}\n`);
    if (differences.length > 0) process.exitCode = 1;
  }
  if (counts.models === 0) process.exitCode = 2;
  for (const [reason, count] of reasons) process.stdout.write(`not asked, ${count}: ${reason}\n`);
  const { models, refused, assertions, equal, notAsked } = counts;
  process.stdout.write(
    `${folder}: ${models} models, ${refused} refused; ${equal} of ${assertions} assertions equal, ` +
      `${notAsked} not asked\n`,
  );
}

/** What a file has to replay; nothing, if it is none of the three kinds. */
function replaysOf(file: string): readonly Replay[] {
  try {
    const text = readFileSync(file, 'utf8');
    const members = membersOf(readYaml(text, file), file);
    const has = (member: string): boolean => members[member] !== undefined;
    if (has('tests') && !has('model') && !has('model_file')) {
      return readSuiteFile(text).map(({ name, model, suite }) => {
        return { name: `${file}, ${name}`, peer: readOpenFgaDsl(model), suite };
      });
    }
    const isPeerFile = ['model', 'model_file', 'schema', 'schemaFile'].some(has);
    return isPeerFile ? [{ name: file, ...readPeerFile(file, undefined) }] : [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    process.stdout.write(`not read: ${file}: ${error.message}\n`);
    return [];
  }
}
