import type { CliLine } from '../core/command.ts';
import { connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption } from '../core/json-values.ts';
import { outputTaken } from '../core/rows.ts';
import { counted, type TupleJson, wordsOfTuple } from '../core/tuple-json.ts';
import { Retries } from './retries.ts';
import { queryOf } from './tuple-filter.ts';
import { exportedParts, type TuplePart } from './tuple-parts.ts';

const LIMIT_DEFAULT = 1000;
const LIMIT_MAX = 1e15 - 1;

/** `read`. */
export async function readTuples(line: CliLine): Promise<number> {
  const connection = await connectionOf(line);
  const asked = integerOfOption('limit', line.text('limit'), 0, LIMIT_MAX) ?? LIMIT_DEFAULT;
  const limit = asked === 0 ? Infinity : asked;
  const query = queryOf(line, connection);
  const token = line.text('at-least');
  if (token !== undefined) query.set('at_least_consistency_token', token);
  const rows = new TupleRows(line);
  const { notes } = line.screens;
  // No retries: the output has one revision, so that a lost connection ends it.
  for await (const part of exportedParts(connection, query, new Retries(line, 0))) {
    for (const tuple of tuplesOf(part)) {
      if (rows.count === limit) {
        rows.finish();
        notes.line(`there are more than ${counted(limit, 'tuple')}: --limit shows more`);
        return EXIT_OK;
      }
      rows.add(tuple);
    }
    await outputTaken();
  }
  rows.finish();
  if (rows.count === 0) notes.line('no tuples');
  return EXIT_OK;
}

function* tuplesOf({ bytes }: TuplePart): Generator<TupleJson> {
  const lines = bytes.toString('utf8').split('\n');
  // The tuples are followed by the mark and an empty text behind its newline.
  for (const text of lines.slice(0, -2)) yield (JSON.parse(text) as { tuple: TupleJson }).tuple;
}

/** Prints tuples one by one. */
class TupleRows {
  readonly #line: CliLine;
  count = 0;

  constructor(line: CliLine) {
    this.#line = line;
  }

  add(tuple: TupleJson): void {
    const { output } = this.#line.screens;
    if (this.#line.isSet('jsonl')) output.line(JSON.stringify(tuple));
    else if (this.#line.isSet('json')) {
      output.line(`${this.count === 0 ? '[' : ','}${JSON.stringify(tuple)}`);
    } else output.line(output.foreign(wordsOfTuple(tuple)));
    this.count += 1;
  }

  finish(): void {
    if (this.#line.isSet('jsonl') || !this.#line.isSet('json')) return;
    this.#line.screens.output.line(this.count === 0 ? '[]' : ']');
  }
}
