import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { History, Operation } from './history.ts';

const FORMAT = 'gatehouse-verify-1';

/** Columns of an operation, in order: names are written once. */
const COLUMNS = [
  'id',
  'client',
  'instance',
  'project',
  'tenant',
  'action',
  'outcome',
  'called',
  'returned',
  'calledMs',
  'returnedMs',
  'found',
  'error',
] as const satisfies readonly (keyof Operation)[];

/** What a file holds beside the history: how many instances there were. */
export type SavedRun = { readonly history: History; readonly instances: number };

/** Writes a run as gzipped lines of JSON: what it is, then an operation a line (about 25 bytes each). */
export function saveRun(path: string, { history, instances }: SavedRun): void {
  const { operations, ...header } = history;
  const lines = [
    JSON.stringify({ format: FORMAT, columns: COLUMNS, instances, ...header }),
    ...operations.map((operation) =>
      JSON.stringify(COLUMNS.map((column) => operation[column] ?? null)),
    ),
  ];
  writeFileSync(path, gzipSync(`${lines.join('\n')}\n`));
}

/** Reads what `saveRun` wrote. Errors: throws where the file is none of these. */
export function loadRun(path: string): SavedRun {
  const [first = '', ...lines] = gunzipSync(readFileSync(path)).toString().trimEnd().split('\n');
  const { format, columns, instances, ...header } = JSON.parse(first) as {
    readonly format: string;
    readonly columns: readonly string[];
    readonly instances: number;
  } & Omit<History, 'operations'>;
  if (format !== FORMAT) throw new Error(`${path}: is no history of this version (${FORMAT})`);
  const operations = lines.map((line) => {
    const values = JSON.parse(line) as readonly unknown[];
    const entries = columns.map((column, index) => [column, values[index]] as const);
    return Object.fromEntries(
      entries.filter(([, value]) => value !== null),
    ) as unknown as Operation;
  });
  return { history: { ...header, operations }, instances };
}
