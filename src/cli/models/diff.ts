import { usage } from '../../command-line/parse-words.ts';
import { parseGate } from '../../language/gate/parse-gate.ts';
import type { ModelDocument } from '../../language/model-document.ts';
import { findDuplicateKey } from '../../model/namespace/duplicate-key.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf } from '../core/connection.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { fileError, readText } from '../core/files.ts';
import { PROJECT } from '../core/options.ts';
import { showAnswer } from '../core/rows.ts';
import { isJson } from './files/model-files.ts';
import { type ModelStatement, modelStatements } from './files/model-statements.ts';
import { type ModelJson, modelCall } from './model-calls.ts';

type Statements = ReadonlyMap<string, ModelStatement>;

/** A statement that differs between two models, or that only one of them has. */
type ModelDifference = {
  readonly change: 'added' | 'removed' | 'changed';
  readonly name: string;
  readonly before?: string;
  readonly after?: string;
};

/** Deeper than any model. */
const DEPTH_MAX = 100;

/** `model diff`. */
export async function diffModels(line: CliLine): Promise<number> {
  const [first, second, ...others] = line.words;
  if (first === undefined || others.length > 0) throw usage('one file or two, please');
  if (second !== undefined) {
    const option = Object.keys(PROJECT).find((name) => name !== 'help' && line.isSet(name));
    if (option !== undefined) throw usage(`--${option}: two files need no service`);
    return show(line, differences(ofFile(first), ofFile(second)));
  }
  const after = ofFile(first);
  const { model_json: json } = await modelCall<ModelJson>(await connectionOf(line), 'GetModel', {});
  const before = json === '' ? { namespaces: {} } : (JSON.parse(json) as ModelDocument);
  return show(line, differences(modelStatements(before), after));
}

function show(line: CliLine, found: readonly ModelDifference[]): number {
  showAnswer(line, found, (all) => all.map(textOf));
  return found.length === 0 ? EXIT_OK : EXIT_NO;
}

function textOf({ before, after }: ModelDifference): string {
  if (before === undefined) return `+ ${after}`;
  return after === undefined ? `- ${before}` : `~ ${after} (was ${before})`;
}

function differences(before: Statements, after: Statements): readonly ModelDifference[] {
  return namesOf(before, after).flatMap((name): readonly ModelDifference[] => {
    const [old, now] = [before.get(name), after.get(name)];
    if (old?.meaning === now?.meaning) return [];
    if (old === undefined) return now ? [{ change: 'added', name, after: now.text }] : [];
    if (now === undefined) return [{ change: 'removed', name, before: old.text }];
    return [{ change: 'changed', name, before: old.text, after: now.text }];
  });
}

/** Names of both in one order. A name that only the second has precedes the next common name. */
function namesOf(before: Statements, after: Statements): readonly string[] {
  const names: string[] = [];
  const rest = [...after.keys()];
  for (const name of before.keys()) {
    if (after.has(name)) names.push(...rest.splice(0, rest.indexOf(name)));
    if (rest[0] === name) rest.shift();
    names.push(name);
  }
  return [...names, ...rest];
}

/** The statements of a model file. Errors: FILE_INVALID naming the file and the place in it. */
function ofFile(path: string): Statements {
  const text = readText(path);
  try {
    return modelStatements(
      isJson(path, text) ? documentOfJson(path, text) : parseGate(text).document,
    );
  } catch (error) {
    if (error instanceof SyntaxError) throw fileError(path, error.message);
    if (!(error instanceof AppError) || error.reason === 'FILE_INVALID') throw error;
    throw fileError(path, error.message);
  }
}

function documentOfJson(path: string, text: string): ModelDocument {
  const document = JSON.parse(text) as ModelDocument;
  const duplicate = findDuplicateKey(text, DEPTH_MAX);
  if (duplicate === undefined) return document;
  throw fileError(path, `${duplicate.path}: duplicate key "${duplicate.key}"`);
}
