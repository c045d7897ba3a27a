import { assertExact, parseExactJson } from '../peers/exact-numbers.ts';
import { type JsonMembers, membersOf, shapeError } from '../peers/json-shape.ts';
import type { PeerTuple } from '../peers/peer-model.ts';
import { tupleOf } from './read-store-file.ts';

/** Columns of a CSV of OpenFGA. The optional ones may be missing. */
const CSV_REQUIRED = ['user_type', 'user_id', 'relation', 'object_type', 'object_id'] as const;
const CSV_OPTIONAL = ['user_relation', 'condition_name', 'condition_context'] as const;

/**
 * Reads a tuple as OpenFGA prints it: `{user,relation,object,condition}`, or that within a `key`.
 * Refuses unknown members, whose meaning would be lost.
 * Errors: FIELD_INVALID, naming the field.
 */
export function openFgaTuple(value: unknown): PeerTuple {
  const outer = membersOf(value, 'the tuple');
  const isKeyed = outer['key'] !== undefined;
  // The time of the write does not affect what the tuple grants.
  if (isKeyed) refuseOthers(outer, ['key', 'timestamp'], '');
  const tuple = isKeyed ? membersOf(outer['key'], 'key') : outer;
  refuseOthers(tuple, ['user', 'relation', 'object', 'condition'], isKeyed ? 'key.' : '');
  const condition = tuple['condition'];
  if (condition !== undefined && condition !== null) {
    const members = membersOf(condition, 'condition');
    refuseOthers(members, ['name', 'context'], 'condition.');
    if (Object.keys(members).length > 0 && !members['name']) {
      throw shapeError('condition.name', 'must be a string');
    }
  }
  return tupleOf(tuple, 'the tuple');
}

/**
 * Reads rows of a CSV by its header. Errors: FIELD_INVALID for a missing, duplicate or unknown
 * column.
 */
export function csvTupleReader(header: readonly string[]): (row: readonly string[]) => PeerTuple {
  const columns = new Map(header.map((name, at) => [name.trim(), at]));
  if (columns.size < header.length) throw shapeError('the header', 'names a column twice');
  const known: readonly string[] = [...CSV_REQUIRED, ...CSV_OPTIONAL];
  for (const name of columns.keys()) {
    if (!known.includes(name)) {
      throw shapeError(
        'the header',
        `the column ${JSON.stringify(name)} is not known: ${known.join(', ')}`,
      );
    }
  }
  for (const name of CSV_REQUIRED) {
    if (!columns.has(name)) throw shapeError('the header', `has no column ${name}`);
  }
  return (row) => {
    if (row.length !== header.length) {
      throw shapeError('the row', `has ${row.length} fields, and the header ${header.length}`);
    }
    const at = (name: string): string => row[columns.get(name) ?? -1] ?? '';
    const must = (name: string): string => {
      if (at(name) === '') throw shapeError(name, 'is required');
      return at(name);
    };
    const condition = at('condition_name');
    const contextJson = at('condition_context');
    const context = contextJson === '' ? undefined : jsonOf(contextJson);
    assertExact(context, 'condition_context');
    return {
      object: { type: must('object_type'), id: must('object_id'), relation: '' },
      relation: must('relation'),
      subject: { type: must('user_type'), id: must('user_id'), relation: at('user_relation') },
      condition: condition === '' ? undefined : condition,
      context,
      expiresAt: undefined,
      place: '',
    };
  };
}

function refuseOthers(members: JsonMembers, known: readonly string[], prefix: string): void {
  for (const name of Object.keys(members)) {
    if (known.includes(name)) continue;
    throw shapeError(`${prefix}${name}`, `is not known here: ${known.join(', ')} are`);
  }
}

function jsonOf(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw shapeError('condition_context', 'is no JSON');
    if (error instanceof RangeError) throw shapeError('condition_context', 'is nested too deeply');
    throw error;
  }
}
