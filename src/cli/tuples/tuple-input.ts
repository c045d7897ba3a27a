import { usage } from '../../command-line/parse-words.ts';
import { AppError } from '../../shared/app-error.ts';
import { parseTimestamp } from '../../shared/time/instant.ts';
import type { CliLine } from '../core/command.ts';
import { fileError, readText } from '../core/files.ts';
import { isObject, type JsonRecord, objectOfOption } from '../core/json-values.ts';
import { type TupleJson, tupleJson } from '../core/tuple-json.ts';

/** A tuple with its origin for errors: its text, or file and line. */
export type GivenTuple = { readonly tuple: TupleJson; readonly place: string };

const STANDARD_INPUT = 'standard input';
const FIELDS = ['namespace', 'object_id', 'relation'] as const;
/** Members of lines of exports that hold no tuple. */
const MARKS = ['begin', 'cursor', 'end'];

/**
 * The tuples of the words, or of `--file`; at least one. Errors: INVALID_REQUEST, FILE_INVALID with
 * file and line.
 */
export function givenTuples(line: CliLine): readonly GivenTuple[] {
  const { words } = line;
  const file = line.text('file');
  if (file === undefined) {
    if (words.length === 0) throw usage('which tuples? Name them, or give --file');
    return words.map((text) => ({ tuple: tupleJson(text), place: text }));
  }
  if (words.length > 0) throw usage(`--file: excludes ${words[0]} on the command line`);
  const name = file === '-' ? STANDARD_INPUT : file;
  const tuples = readText(file)
    .split('\n')
    .flatMap((text, index) => {
      const place = `${name}:${index + 1}`;
      const tuple = tupleOfLine(text.trim(), place);
      return tuple === undefined ? [] : [{ tuple, place }];
    });
  if (tuples.length === 0) throw fileError(name, 'has no tuple');
  return tuples;
}

/** Parses text or JSON; undefined for a line without a tuple. */
function tupleOfLine(text: string, place: string): TupleJson | undefined {
  if (text === '') return undefined;
  if (!text.startsWith('{')) {
    try {
      return tupleJson(text);
    } catch (error) {
      throw fileError(place, (error as Error).message);
    }
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw fileError(place, (error as Error).message);
  }
  if (!isObject(json)) throw fileError(place, 'must be an object');
  if ('error' in json) throw fileError(place, 'says that the export was cut short');
  if (!('namespace' in json) && MARKS.some((mark) => mark in json)) return undefined;
  const { tuple = json } = json;
  if (!isObject(tuple)) throw fileError(place, 'tuple must be an object');
  return checkedTuple(tuple, place);
}

/** Checks the required members of a tuple; the service checks the rest. */
function checkedTuple(tuple: JsonRecord, place: string): TupleJson {
  const wrong = FIELDS.find((field) => typeof tuple[field] !== 'string' || tuple[field] === '');
  if (wrong !== undefined) throw fileError(place, `${wrong} must be a text`);
  if (!isObject(tuple['subject'])) throw fileError(place, 'subject must be an object');
  return tuple as TupleJson;
}

/** Expiry and condition for tuples that have none. */
export type Metadata = Pick<TupleJson, 'expires_at' | 'condition_name' | 'condition_params'>;

/**
 * The metadata of `--expires-at`, `--condition` and `--params`. Errors: INVALID_REQUEST naming the
 * option, FILE_INVALID.
 */
export function metadataOf(line: CliLine): Metadata {
  const expiry = line.text('expires-at');
  if (expiry !== undefined && parseTimestamp(expiry) === undefined) {
    throw usage(`--expires-at: ${expiry} must be a time of RFC 3339, as 2031-01-01T00:00:00Z`);
  }
  const condition = line.text('condition');
  const params = line.text('params');
  if (params !== undefined && condition === undefined) throw usage('--params: needs --condition');
  return {
    ...(expiry === undefined ? {} : { expires_at: expiry }),
    ...(condition === undefined ? {} : { condition_name: condition }),
    ...(params === undefined ? {} : { condition_params: objectOfOption('params', params) }),
  };
}

/** Fills in the metadata that a tuple lacks. A tuple with a condition keeps its own parameters. */
export function withMetadata(tuple: TupleJson, metadata: Metadata): TupleJson {
  const { condition_name: condition = '' } = tuple;
  const { expires_at: expiry, ...conditional } = metadata;
  return {
    ...(expiry === undefined ? {} : { expires_at: expiry }),
    ...(condition === '' ? conditional : {}),
    ...tuple,
  };
}

/**
 * The refusal of an update, with the origin of its tuple instead of its index in the request.
 * Returns other errors as they are.
 */
export function placed(error: unknown, tuples: readonly GivenTuple[]): unknown {
  if (!(error instanceof AppError)) return error;
  const found = /^updates\[(\d+)\](?:\.tuple)?(?:\.|: )/.exec(error.message);
  const place = tuples[Number(found?.[1])]?.place;
  if (found === null || place === undefined) return error;
  const problem = error.message.slice(found[0].length);
  const message = problem.startsWith(place) ? problem : `${place}: ${problem}`;
  return new AppError<string>(error.reason, message, error.metadata, error);
}
