import { createReadStream } from 'node:fs';
import { csvTupleReader, openFgaTuple } from '../../../language/openfga/openfga-tuple.ts';
import { parseExactJson } from '../../../language/peers/exact-numbers.ts';
import { membersOf, optionalString, shapeError } from '../../../language/peers/json-shape.ts';
import type { PeerTuple } from '../../../language/peers/peer-model.ts';
import { relationshipOf } from '../../../language/spicedb/relationship-text.ts';
import { findDuplicateKey } from '../../../model/namespace/duplicate-key.ts';
import { CsvRows } from './csv-rows.ts';
import { JsonValues } from './json-values.ts';

/**
 * Place of a tuple, and its parser, which refuses a tuple that cannot be converted. Errors of
 * `read`: FIELD_*.
 */
export type TupleSource = { readonly place: string; readonly read: () => PeerTuple };

const LINE_MAX = 1 << 20;
const DEPTH_MAX = 100;

/**
 * Text of a file, or of the standard input for `-`, in chunks. Errors: FIELD_INVALID for invalid
 * UTF-8; those of the file.
 */
async function* textOf(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const stream = file === '-' ? process.stdin : createReadStream(file);
  try {
    for await (const chunk of stream) yield decoder.decode(chunk as Uint8Array, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw shapeError(file, 'is no UTF-8');
  }
}

/**
 * Tuples of OpenFGA as JSON: a list, a list in an object, or consecutive objects. Errors:
 * FIELD_INVALID naming the line.
 */
export async function* jsonTuples(file: string): AsyncGenerator<TupleSource> {
  const values = new JsonValues();
  for await (const chunk of textOf(file)) {
    for (const { text, line, isAround } of values.feed(chunk)) {
      const place = `${file}:${line}`;
      if (isAround) checkAround(parse(text), place);
      else yield { place, read: () => openFgaTuple(parse(text)) };
    }
  }
  values.finish();
}

function parse(text: string): unknown {
  try {
    const value = parseExactJson(text);
    const duplicate = findDuplicateKey(text, DEPTH_MAX);
    if (duplicate === undefined) return value;
    throw shapeError(duplicate.path, `duplicate key "${duplicate.key}"`);
  } catch (error) {
    if (error instanceof SyntaxError) throw shapeError('the tuple', `is no JSON: ${error.message}`);
    if (error instanceof RangeError) throw shapeError('the tuple', 'is nested too deeply');
    throw error;
  }
}

/** Refuses a page with a token for the next page, because tuples are missing. */
function checkAround(value: unknown, place: string): void {
  const token = optionalString(membersOf(value, place)['continuation_token'], place);
  if (token === undefined) return;
  throw shapeError(
    `${place}: continuation_token`,
    'says that there are more tuples: read all pages',
  );
}

/** Tuples of OpenFGA as CSV with its column names. Errors: FIELD_INVALID naming the line. */
export async function* csvTuples(file: string): AsyncGenerator<TupleSource> {
  const rows = new CsvRows();
  let read: ReturnType<typeof csvTupleReader> | undefined;
  for await (const { fields, line } of rowsOf(file, rows)) {
    const reader = read;
    if (reader === undefined) read = csvTupleReader(fields);
    else yield { place: `${file}:${line}`, read: () => reader(fields) };
  }
  if (read === undefined) throw shapeError(file, 'has no header');
}

async function* rowsOf(file: string, rows: CsvRows) {
  for await (const chunk of textOf(file)) yield* rows.feed(chunk);
  yield* rows.finish();
}

/**
 * Relationships of SpiceDB, one a line; skips empty lines and those that begin with `//`. Errors:
 * FIELD_INVALID.
 */
export async function* textTuples(file: string): AsyncGenerator<TupleSource> {
  let rest = '';
  let line = 0;
  for await (const chunk of textOf(file)) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX)
      throw shapeError(`${file}:${line + lines.length + 1}`, 'the line is too long');
    for (const text of lines) yield* relationshipLine(text, file, ++line);
  }
  yield* relationshipLine(rest, file, line + 1);
}

/** The relationship of a line, if it has one. */
export function* relationshipLine(
  text: string,
  file: string,
  line: number,
): Generator<TupleSource> {
  const relationship = text.trim();
  if (relationship === '' || relationship.startsWith('//')) return;
  yield { place: `${file}:${line}`, read: () => relationshipOf(relationship, 'the relationship') };
}
