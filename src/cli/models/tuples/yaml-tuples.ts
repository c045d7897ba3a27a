import { type Document, isMap, isScalar, LineCounter } from 'yaml';
import { openFgaTuple } from '../../../language/openfga/openfga-tuple.ts';
import {
  membersOf,
  optionalList,
  shapeError,
  stringOf,
} from '../../../language/peers/json-shape.ts';
import { yamlDocument } from '../../../language/peers/read-yaml.ts';
import { pathBeside, readText } from '../../core/files.ts';
import { relationshipLine, type TupleSource } from './read-tuples.ts';

const STORE = ['name', 'model', 'model_file', 'tuples', 'tuple_file', 'tuple_files', 'tests'];
const VALIDATION = [
  'schema',
  'schemaFile',
  'relationships',
  'relationshipsFile',
  'assertions',
  'validation',
];

/** Tuples of a YAML file: its own, and the files that it names, in this order. */
export type YamlTuples = {
  readonly own: Iterable<TupleSource>;
  readonly files: readonly string[];
  /** True if the file names a model, which defines its names. */
  readonly hasModel: boolean;
};

/**
 * Tuples of a YAML file: a list of OpenFGA's, a store file, or a validation file of SpiceDB.
 * Aliases, depth and size are bounded (read-yaml.ts). Errors: FIELD_INVALID naming the line;
 * FILE_INVALID for files.
 */
export function yamlTuples(file: string): YamlTuples {
  const lines = new LineCounter();
  const { document, value } = yamlDocument(readText(file), file, lines);
  const lineOf = (path: readonly (string | number)[]): number => {
    const node = document.getIn(path, true) as { range?: readonly number[] | null } | undefined;
    return lines.linePos(node?.range?.[0] ?? 0).line;
  };
  const listed = (list: unknown, path: readonly string[]): readonly TupleSource[] =>
    optionalList(list, file).map((one, at) => ({
      place: `${file}:${lineOf([...path, at])}`,
      read: () => openFgaTuple(one),
    }));
  if (Array.isArray(value)) return { own: listed(value, []), files: [], hasModel: false };
  const root = membersOf(value, file);
  const isValidation = VALIDATION.some((name) => root[name] !== undefined);
  const known = isValidation ? VALIDATION : STORE;
  const other = Object.keys(root).find((name) => !known.includes(name));
  if (other !== undefined)
    throw shapeError(`${file}:${lineOf([other])}: ${other}`, 'is not known here');
  const beside = (one: unknown, member: string): string =>
    pathBeside(file, stringOf(one, `${file}: ${member}`));
  if (isValidation) {
    const hasModel = root['schema'] !== undefined || root['schemaFile'] !== undefined;
    const named = root['relationshipsFile'];
    const text = root['relationships'] ?? '';
    if (typeof text !== 'string') throw shapeError(`${file}: relationships`, 'must be a text');
    // A text that is a single word without a relation is the name of a file.
    const isPath = /^[^\s#@]+$/.test(text.trim());
    const files = [...(named === undefined ? [] : [named]), ...(isPath ? [text.trim()] : [])];
    return {
      own: isPath ? [] : relationshipsOf(text, file, document, lines),
      files: files.map((one) => beside(one, 'relationshipsFile')),
      hasModel,
    };
  }
  const files = [...optionalList(root['tuple_files'], `${file}: tuple_files`), root['tuple_file']];
  return {
    own: listed(root['tuples'], ['tuples']),
    files: files.filter((one) => one !== undefined).map((one) => beside(one, 'tuple_file')),
    hasModel: root['model'] !== undefined || root['model_file'] !== undefined,
  };
}

/** Relationships of a block of text, with the lines of the file. */
function relationshipsOf(
  text: string,
  file: string,
  document: Document,
  lines: LineCounter,
): readonly TupleSource[] {
  const root = document.contents;
  const node = isMap(root) ? root.get('relationships', true) : undefined;
  const isBlock = isScalar(node) && String(node.type).startsWith('BLOCK');
  const first = isScalar(node) ? lines.linePos(node.range?.[0] ?? 0).line + (isBlock ? 1 : 0) : 1;
  return text.split('\n').flatMap((line, at) => [...relationshipLine(line, file, first + at)]);
}
