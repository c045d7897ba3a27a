import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readAssertionFile } from '../../src/assertions/assertion-file.ts';
import { type AssertionFailure, runAssertions } from '../../src/assertions/run-assertions.ts';
import { modelOfText } from '../../src/assertions/test-files.ts';
import type { NamespaceModel } from '../../src/model/namespace-model.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { readText, say } from './files.ts';
import { EXIT_OK, EXIT_PROBLEM, EXIT_USAGE, type Subcommand, UsageError } from './subcommand.ts';

const HELP = `usage: npm run model -- test [--model FILE] FILE…

Runs files of assertions: each test over tuples of its own, by the engine of the service, without one.
The model is that of --model (.gate or JSON), else what the file says: model, or model_file beside it.
What does not hold is told by file and line, on the standard output. - is the standard input.

options:
  --model FILE   the model to test, whatever the files say
  --quiet        says nothing of files in which all holds

exit codes: 0 all holds; 1 something does not; 2 the command, a file or a model is wrong
`;

/** As the service's defaults. */
const LIMITS = { depthMax: 256, readBudget: 10_000 };

/** Runs files of assertions. */
export const test: Subcommand = {
  help: HELP,
  run: (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { model: { type: 'string' }, quiet: { type: 'boolean', default: false } },
      allowPositionals: true,
    });
    if (positionals.length === 0) throw new UsageError('test: which files?');
    const given = values.model === undefined ? undefined : modelOfFile(values.model);
    if (given === null) return EXIT_USAGE;
    const codes = positionals.map((path) => testFile(path, given, values.quiet));
    return Math.max(...codes);
  },
};

function testFile(path: string, given: NamespaceModel | undefined, isQuiet: boolean): number {
  const { document, problems } = readAssertionFile(readText(path));
  if (document === undefined) {
    for (const { line, column, message } of problems) say(`${path}:${line}:${column}: ${message}`);
    return EXIT_USAGE;
  }
  const model = given ?? modelBeside(path, document.model);
  if (model === null) return EXIT_USAGE;
  const { assertions, failures } = runAssertions(model, document, LIMITS);
  for (const failure of failures) print(`${path}:${failure.line}: ${textOf(failure)}`);
  if (failures.length > 0) print(`${path}: ${assertions} assertions, ${failures.length} failures`);
  else if (!isQuiet) print(`${path}: ${assertions} assertions hold`);
  return failures.length > 0 ? EXIT_PROBLEM : EXIT_OK;
}

/** The model that a file brings along; null where there is none, which was told. */
function modelBeside(
  path: string,
  model:
    | { readonly kind: 'text' | 'file'; readonly value: string; readonly line: number }
    | undefined,
): NamespaceModel | null {
  if (model === undefined) {
    say(`${path}: brings no model along: give --model`);
    return null;
  }
  if (model.kind === 'file') return modelOfFile(resolve(dirname(path), model.value));
  return modelOf(`${path}:${model.line}`, model.value);
}

function modelOfFile(path: string): NamespaceModel | null {
  return modelOf(path, readText(path));
}

function modelOf(place: string, text: string): NamespaceModel | null {
  try {
    return modelOfText(text);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    say(`${place}: ${error.message}`);
    return null;
  }
}

function textOf({ test: name, assertion, expected, actual }: AssertionFailure): string {
  return `${name}: ${assertion}: expected ${expected}, is ${actual}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
