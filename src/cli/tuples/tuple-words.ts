import { textOfTupleJson, type TupleJson } from '../core/tuple-json.ts';

/** A tuple for people: its text, its expiry and its condition. */
export function wordsOfTuple(tuple: TupleJson): string {
  const { expires_at: expiry, condition_name: condition, condition_params: params } = tuple;
  const until = expiry === undefined ? '' : ` until ${expiry}`;
  const name = condition === undefined || condition === '' ? '' : ` if ${condition}`;
  const bound = params === undefined || name === '' ? '' : ` ${JSON.stringify(params)}`;
  return `${textOfTupleJson(tuple)}${until}${name}${bound}`;
}

/** A number of things: `1 tuple`, `2 tuples`. */
export function counted(count: number | string, thing: string): string {
  return `${count} ${thing}${String(count) === '1' ? '' : 's'}`;
}
