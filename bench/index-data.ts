// Rows and figures shared by the benchmarks of the index; yields nothing by itself.
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { ROW_BOUNDS } from '../src/cache/tuple-row.ts';
import type { RowBytes, TupleRow } from '../src/cache/tuple-row.ts';

type Line = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject: string;
};

/** Rows of DATA_DIR/tuples.jsonl, in the order of the file, or in the order of the table's key. */
export function readRows(dataDir: string, order: 'file' | 'key'): TupleRow[] {
  const text = readFileSync(join(dataDir, 'tuples.jsonl'), 'utf8').trim();
  const rows = text.split('\n').map((line) => rowOfLine(JSON.parse(line) as Line));
  if (order === 'key') rows.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return rows;
}

function rowOfLine(line: Line): TupleRow {
  const colon = line.subject.indexOf(':');
  const hash = line.subject.indexOf('#');
  const namespace = line.subject.slice(0, colon);
  return {
    namespace: line.namespace,
    objectId: line.object_id,
    relation: line.relation,
    subjectNamespace: namespace === 'user' ? '' : namespace,
    subjectId: line.subject.slice(colon + 1, hash < 0 ? undefined : hash),
    subjectRelation: hash < 0 ? '' : line.subject.slice(hash + 1),
  };
}

// The ids of the data are ASCII, so this orders as the table does.
function keyOf(row: TupleRow): string {
  return [
    row.namespace,
    row.objectId,
    row.relation,
    row.subjectNamespace,
    row.subjectId,
    row.subjectRelation,
  ].join('\u0001');
}

/** Plain rows as bytes, in batches of `batchRows`, as a snapshot delivers them. */
export function rowBatches(rows: readonly TupleRow[], batchRows: number): RowBytes[] {
  const batches: RowBytes[] = [];
  for (let first = 0; first < rows.length; first += batchRows) {
    const part = rows.slice(first, first + batchRows);
    const bounds = new Int32Array(part.length * ROW_BOUNDS).fill(-1);
    const texts: string[] = [];
    let length = 0;
    part.forEach((row, i) => {
      const columns = [
        row.namespace,
        row.objectId,
        row.relation,
        row.subjectNamespace,
        row.subjectId,
        row.subjectRelation,
      ];
      columns.forEach((column, c) => {
        bounds[i * ROW_BOUNDS + c * 2] = length;
        length += Buffer.byteLength(column);
        bounds[i * ROW_BOUNDS + c * 2 + 1] = length;
        texts.push(column);
      });
    });
    const bytes = new Uint8Array(Buffer.from(texts.join('')));
    batches.push({ bytes, bounds, rows: part.length, expiryFormat: 'binary' });
  }
  return batches;
}

/** UTF-8 bytes of the distinct strings that the rows make an index hold. */
export function distinctStringBytes(rows: readonly TupleRow[]): number {
  const entities = new Set<string>();
  const names = new Set<string>();
  let bytes = 0;
  const entity = (namespace: string, id: string): void => {
    const key = `${namespace}:${id}`;
    if (entities.has(key)) return;
    entities.add(key);
    bytes += Buffer.byteLength(id);
  };
  for (const row of rows) {
    entity(row.namespace, row.objectId);
    entity(row.subjectNamespace, row.subjectId);
    for (const name of [row.namespace, row.relation, row.subjectNamespace, row.subjectRelation]) {
      names.add(name);
    }
  }
  for (const name of names) bytes += Buffer.byteLength(name);
  return bytes;
}

/** JS heap in use after two full collections; needs --expose-gc. */
export function heapBytes(): number {
  const gc = (globalThis as { gc?: () => void }).gc;
  if (gc === undefined) throw new Error('run with --expose-gc');
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}

/** Prints one JSON line with the machine's facts beside the figures. */
export function report(bench: string, figures: Readonly<Record<string, unknown>>): void {
  const machine = { node: process.version, cpu: cpus()[0]?.model ?? '', cores: cpus().length };
  process.stdout.write(`${JSON.stringify({ bench, ...figures, machine })}\n`);
}
