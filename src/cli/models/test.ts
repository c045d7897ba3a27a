import { dirname, resolve } from 'node:path';
import { type AssertionDocument, readAssertionFile } from '../../assertions/assertion-file.ts';
import { type AssertionFailure, runAssertions } from '../../assertions/run-assertions.ts';
import { modelOfText } from '../../assertions/test-files.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import { type CliReason, EXIT_NO, EXIT_OK, EXIT_USAGE } from '../core/exit-codes.ts';
import { fileError, readText, writeText } from '../core/files.ts';
import { type JunitCase, type JunitSuite, junitXml } from './files/junit.ts';
import { filesOf, say } from './files/model-files.ts';

/** The service's defaults. */
const LIMITS = { depthMax: 256, readBudget: 10_000 };

/** The outcome of a file. */
type TestedFile = { readonly code: number; readonly suite: JunitSuite };

/** `model test`: runs files of assertions. */
export function testModels(line: CliLine): Promise<number> {
  const paths = filesOf(line);
  const junit = line.text('junit');
  const tested = testFiles(line, paths);
  if (junit !== undefined) writeText(junit, junitXml(tested.map(({ suite }) => suite)));
  return Promise.resolve(Math.max(...tested.map(({ code }) => code)));
}

/**
 * Tests each file. An error of a file is printed and the other files still run; without a valid
 * `--model` none runs.
 */
function testFiles(line: CliLine, paths: readonly string[]): readonly TestedFile[] {
  const modelPath = line.text('model');
  const given = attempt(line, () => (modelPath === undefined ? undefined : modelOfFile(modelPath)));
  if ('error' in given) return paths.map((path) => wrongFile(path, given.error));
  return paths.map((path) => {
    const tested = attempt(line, () => testFile(line, path, given.value));
    return 'error' in tested ? wrongFile(path, tested.error) : tested.value;
  });
}

function attempt<T>(
  line: CliLine,
  work: () => T,
): { readonly value: T } | { readonly error: string } {
  try {
    return { value: work() };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    say(line, error.message);
    return { error: error.message };
  }
}

function wrongFile(file: string, error: string): TestedFile {
  return { code: EXIT_USAGE, suite: { file, cases: [], error } };
}

function testFile(line: CliLine, path: string, given: NamespaceModel | undefined): TestedFile {
  const { document, problems } = readAssertionFile(readText(path));
  if (document === undefined) {
    const texts = problems.map((one) => `${path}:${one.line}:${one.column}: ${one.message}`);
    throw new AppError<CliReason>('FILE_INVALID', texts.join('\n'));
  }
  const model = given ?? modelBeside(path, document.model);
  const { assertions, failures } = runAssertions(model, document, LIMITS);
  const { output } = line.screens;
  const texts = failures.map((failure) => `${path}:${failure.line}: ${textOf(failure)}`);
  for (const text of texts) output.line(output.foreign(text));
  if (failures.length > 0) {
    output.line(`${path}: ${assertions} assertions, ${failures.length} failures`);
  } else if (!line.isSet('quiet')) output.line(`${path}: ${assertions} assertions hold`);
  const suite = { file: path, cases: casesOf(document, failures, texts), error: undefined };
  return { code: failures.length > 0 ? EXIT_NO : EXIT_OK, suite };
}

/** A case for each test, and one for tuples of the file if the model does not admit them. */
function casesOf(
  { tests }: AssertionDocument,
  failures: readonly AssertionFailure[],
  texts: readonly string[],
): readonly JunitCase[] {
  const rest = new Set(failures.keys());
  const cases = tests.map(({ name, assertions, tuples }) => {
    // Names may be duplicates.
    const lines = new Set([...assertions, ...tuples].map((one) => one.line));
    const own = [...rest].filter((at) => {
      const failure = failures[at];
      return failure?.test === name && lines.has(failure.line);
    });
    for (const at of own) rest.delete(at);
    return { name, assertions: assertions.length, failures: own.map((at) => texts[at] ?? '') };
  });
  if (rest.size === 0) return cases;
  const others = [...rest].map((at) => texts[at] ?? '');
  return [{ name: '(tuples of the file)', assertions: 0, failures: others }, ...cases];
}

/**
 * The model that a file of assertions names or contains. Errors: FILE_INVALID if there is none, or
 * it is wrong.
 */
function modelBeside(path: string, model: AssertionDocument['model']): NamespaceModel {
  if (model === undefined) throw fileError(path, 'brings no model along: give --model');
  if (model.kind === 'file') return modelOfFile(resolve(dirname(path), model.value));
  return modelOf(`${path}:${model.line}`, model.value);
}

function modelOfFile(path: string): NamespaceModel {
  return modelOf(path, readText(path));
}

function modelOf(place: string, text: string): NamespaceModel {
  try {
    return modelOfText(text);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw fileError(place, error.message);
  }
}

function textOf({ test: name, assertion, expected, actual }: AssertionFailure): string {
  return `${name}: ${assertion}: expected ${expected}, is ${actual}`;
}
