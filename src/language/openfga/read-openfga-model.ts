import { transformer, validator } from '@openfga/syntax-transformer';
import { AppError } from '../../shared/app-error.ts';
import type { PeerModel, PeerRemark } from '../peers/peer-model.ts';
import { peerModelOfJson } from './openfga-json.ts';
import { type DslFile, OpenFgaPlaces } from './openfga-places.ts';

/** Most characters of all files of a model. */
const LENGTH_MAX = 1024 * 1024;
/** Most nested parentheses: the library's parser recurses for each. */
const NESTING_MAX = 100;
const MODULES_VERSION = '1.2';

/**
 * Reads a model in the language of OpenFGA (schema 1.1 and 1.2) by OpenFGA's own parser and its
 * rules. Unreadable parts are in `problems`; throws nothing.
 * Cost: the library's, which is above linear for odd texts; a text has at most 1 MiB.
 */
export function readOpenFgaDsl(text: string): PeerModel {
  const file = { name: '', text };
  return guarded([file], () => {
    const model: unknown = transformer.transformDSLToJSONObject(text);
    withRules(() => validator.validateDSL(text));
    return model;
  });
}

/**
 * Reads a modular model: files that begin with `module`, some of which extend types of others. Like
 * `readOpenFgaDsl`.
 */
export function readOpenFgaModules(files: readonly DslFile[]): PeerModel {
  return guarded(files, () => {
    const modules = files.map(({ name, text }) => ({ name, contents: text }));
    return transformer.transformModuleFilesToModel(modules, MODULES_VERSION);
  });
}

/** Reads a model in the JSON of OpenFGA's API. Like `readOpenFgaDsl`. */
export function readOpenFgaJson(text: string): PeerModel {
  if (text.length > LENGTH_MAX) return unread([{ place: 'the model', text: TOO_LONG }]);
  return guarded([], () => JSON.parse(text) as unknown);
}

const TOO_LONG = `it is longer than ${LENGTH_MAX} characters`;

/** The files that an `fga.mod` lists, or its problems. Throws nothing. */
export function readOpenFgaMod(text: string): {
  readonly files: readonly string[];
  readonly problems: readonly PeerRemark[];
} {
  if (text.length > LENGTH_MAX)
    return { files: [], problems: [{ place: 'fga.mod', text: TOO_LONG }] };
  try {
    const { contents } = transformer.transformModFileToJSON(text);
    return { files: contents.value.map(({ value }) => value), problems: [] };
  } catch (error) {
    return { files: [], problems: remarksOf(error, 'fga.mod') };
  }
}

/**
 * Runs the library's rules and passes their errors on. They crash on some valid models (walks over
 * a tupleset with a condition). Then only the importer's own rules apply, which are sufficient.
 */
function withRules(validateModel: () => void): void {
  try {
    validateModel();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

function guarded(files: readonly DslFile[], read: () => unknown): PeerModel {
  const refused = files.flatMap(limitProblems);
  if (files.reduce((sum, { text }) => sum + text.length, 0) > LENGTH_MAX) {
    refused.push({ place: 'the model', text: TOO_LONG });
  }
  if (refused.length > 0) return unread(refused);
  try {
    return peerModelOfJson(read(), new OpenFgaPlaces(files));
  } catch (error) {
    return unread(remarksOf(error, 'the model'));
  }
}

function limitProblems({ name, text }: DslFile): PeerRemark[] {
  let depth = 0;
  let deepest = 0;
  for (const character of text) {
    if ('([<{'.includes(character)) deepest = Math.max(deepest, ++depth);
    else if (')]>}'.includes(character)) depth = Math.max(0, depth - 1);
  }
  if (deepest <= NESTING_MAX) return [];
  return [{ place: name || 'the model', text: `it is nested more than ${NESTING_MAX} deep` }];
}

function unread(problems: readonly PeerRemark[]): PeerModel {
  return { types: [], conditions: [], problems, notes: [] };
}

/**
 * Remarks for an error of the library: errors with lines from 0, or any other error about a text.
 */
function remarksOf(error: unknown, place: string): readonly PeerRemark[] {
  if (error instanceof AppError) return [{ place, text: error.message }];
  const { errors } = error as { readonly errors?: readonly LibraryError[] };
  if (!Array.isArray(errors) || errors.length === 0) {
    return [{ place, text: error instanceof Error ? error.message : String(error) }];
  }
  return (errors as readonly LibraryError[]).map((one) => {
    const { line, column, file, msg } = one;
    const where = [
      ...(file === undefined ? [] : [file]),
      ...(line === undefined ? [] : [`line ${line.start + 1}`]),
      ...(column === undefined ? [] : [`column ${column.start + 1}`]),
    ];
    return { place: where.join(', ') || place, text: msg ?? 'it cannot be read' };
  });
}

type LibraryError = {
  readonly msg?: string;
  readonly file?: string;
  readonly line?: { readonly start: number };
  readonly column?: { readonly start: number };
};
