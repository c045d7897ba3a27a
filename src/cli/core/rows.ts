import { once } from 'node:events';
import type { CliLine } from './command.ts';

/**
 * Prints rows: a table under `columns` by default, one array with `--json`, a row a line with
 * `--jsonl`. `cells` returns the texts of a row, one for each column.
 */
export function showRows<Row>(
  line: CliLine,
  rows: readonly Row[],
  columns: readonly string[],
  cells: (row: Row) => readonly string[],
): void {
  const { output } = line.screens;
  if (line.isSet('jsonl')) {
    for (const row of rows) output.line(JSON.stringify(row));
    return;
  }
  if (line.isSet('json')) {
    output.line(JSON.stringify(rows, undefined, 2));
    return;
  }
  const texts = rows.map((row) => cells(row).map((cell) => output.foreign(cell)));
  const widths = columns.map((name, column) =>
    Math.max(name.length, ...texts.map((row) => row[column]?.length ?? 0)),
  );
  const laid = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  output.line(output.paint(laid(columns.map((name) => name.toUpperCase())), 'bold'));
  for (const row of texts) output.line(laid(row));
}

/** Prints an answer: as received with `--json`, otherwise the lines that `words` makes of it. */
export function showAnswer<T>(
  line: CliLine,
  answer: T,
  words: (answer: T) => readonly string[],
): void {
  const { output } = line.screens;
  if (line.isSet('json')) output.line(JSON.stringify(answer, undefined, 2));
  else for (const text of words(answer)) output.line(output.foreign(text));
}

/**
 * Resolves once the reader of the standard output has taken the written data, so that the buffer
 * does not grow.
 */
export async function outputTaken(): Promise<void> {
  // Lines are written at the end of the turn.
  await Promise.resolve();
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
}

/** Writes bytes, and resolves once more can be written. */
export async function writeOutput(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
}
