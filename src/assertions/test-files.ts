import { parseGate } from '../language/gate/parse-gate.ts';
import { checkModelDocument, type NamespaceModel } from '../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../model/reasons.ts';
import { AppError } from '../shared/app-error.ts';
import { type AssertionDocument, readAssertionFile } from './assertion-file.ts';
import { type AssertionFailure, type AssertionLimits, runAssertions } from './run-assertions.ts';
import type { YamlProblem } from './yaml-reader.ts';

/** Name and text of a file, as received. */
export type NamedText = { readonly name: string; readonly text: string };

/** An assertion that does not hold, and in which file. */
export type FileFailure = AssertionFailure & { readonly file: string };

/** Result of several files. */
export type FilesResult = {
  /** Number of assertions that were run. */
  readonly assertions: number;
  readonly failures: readonly FileFailure[];
};

/** Returns the model that a file is tested with; called once per file. Errors: AppError. */
export type ModelOfFile = (document: AssertionDocument) => NamespaceModel;

/**
 * Runs files of assertions, one after the other. `fieldOf` names a file in messages about its form. Errors:
 * ASSERTIONS_INVALID for the first malformed file, with the place of its first problem, and for a file whose own model
 * `modelOf` rejects; otherwise those of `modelOf`.
 */
export function testFiles(
  files: readonly NamedText[],
  modelOf: ModelOfFile,
  limits: AssertionLimits,
  fieldOf: (index: number) => string,
): FilesResult {
  const documents = files.map(({ text }, index) => {
    const { document, problems } = readAssertionFile(text);
    if (document === undefined) throw assertionsInvalid(fieldOf(index), problems);
    return document;
  });
  const failures: FileFailure[] = [];
  let assertions = 0;
  for (const [index, document] of documents.entries()) {
    const file = files[index]?.name ?? '';
    const result = runAssertions(modelIn(fieldOf(index), document, modelOf), document, limits);
    assertions += result.assertions;
    for (const failure of result.failures) failures.push({ file, ...failure });
  }
  return { assertions, failures };
}

/** Parses a model from text, JSON or `.gate`, by the rules of a write. Errors: MODEL_INVALID. */
export function modelOfText(text: string): NamespaceModel {
  const json = text.trimStart().startsWith('{') ? text : parseGate(text).json;
  return checkModelDocument(json).model;
}

/** The ASSERTIONS_INVALID error of the first problem, with the number of the others. */
export function assertionsInvalid(field: string, problems: readonly YamlProblem[]): AppError {
  const [first] = problems;
  const { line, column, message } = first ?? { line: 1, column: 1, message: 'cannot be read' };
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  const text = `${field}: line ${line}, column ${column}: ${message}${more}`;
  const metadata = { field, line: String(line), column: String(column) };
  return new AppError<AuthzReason>('ASSERTIONS_INVALID', text, metadata);
}

function modelIn(field: string, document: AssertionDocument, modelOf: ModelOfFile): NamespaceModel {
  try {
    return modelOf(document);
  } catch (error) {
    if (!(error instanceof AppError) || document.model === undefined) throw error;
    const { line } = document.model;
    throw assertionsInvalid(field, [{ line, column: 1, message: error.message }]);
  }
}
