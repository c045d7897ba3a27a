import { IndexAudit, type IndexDifference } from '../../../src/cache/index-audit.ts';
import type { TupleIndex } from '../../../src/cache/tuple-index.ts';
import type { RowBytes, TupleRow } from '../../../src/cache/tuple-row.ts';

/** The stored rows of a shard, as pages in the order of their keys. */
export class Store {
  readonly #rows = new Map<
    string,
    { readonly key: string; readonly bytes: Buffer; row: TupleRow }
  >();
  /** In the order of their keys; undefined after a change. */
  #sorted: readonly { readonly key: string; readonly bytes: Buffer; row: TupleRow }[] | undefined;

  put(row: TupleRow): void {
    const key = keyText(row);
    this.#rows.set(key, { key, bytes: Buffer.from(key), row });
    this.#sorted = undefined;
  }

  remove(row: TupleRow): void {
    this.#rows.delete(keyText(row));
    this.#sorted = undefined;
  }

  page(after: string | null, limit: number): { page: RowBytes; last: string | null } {
    this.#sorted ??= [...this.#rows.values()].toSorted((a, b) => Buffer.compare(a.bytes, b.bytes));
    const end = after === null ? null : Buffer.from(after);
    const from = this.#sorted.findIndex(({ bytes }) => !end || Buffer.compare(bytes, end) > 0);
    const found = from < 0 ? [] : this.#sorted.slice(from, from + limit);
    const page = bytesOf(found.map(({ row }) => row));
    return { page, last: found.length < limit ? null : (found.at(-1)?.key ?? null) };
  }
}

function keyText(row: TupleRow): string {
  return [
    row.namespace,
    row.objectId,
    row.relation,
    row.subjectNamespace,
    row.subjectId,
    row.subjectRelation,
  ].join('\0');
}

function bytesOf(rows: readonly TupleRow[]): RowBytes {
  const parts: Buffer[] = [];
  const bounds: number[] = [];
  let end = 0;
  for (const row of rows) {
    const expires = Buffer.alloc(8);
    if (typeof row.expiresAtUs === 'bigint') expires.writeBigInt64BE(row.expiresAtUs);
    const columns = [
      ...keyText(row)
        .split('\0')
        .map((text) => Buffer.from(text)),
      typeof row.expiresAtUs === 'bigint' ? expires : null,
      typeof row.conditionName === 'string' ? Buffer.from(row.conditionName) : null,
      typeof row.conditionParams === 'string' ? Buffer.from(row.conditionParams) : null,
    ];
    for (const column of columns) {
      if (column === null) bounds.push(-1, -1);
      else {
        parts.push(column);
        bounds.push(end, (end += column.length));
      }
    }
  }
  const bytes = Buffer.concat(parts);
  return { bytes, bounds: Int32Array.from(bounds), rows: rows.length, expiryFormat: 'binary' };
}

/** Checks the whole index; `between` runs between any two slices, notified of the audit to report changes. */
export function audit(
  index: TupleIndex,
  store: Store,
  between: (audit: IndexAudit, revisionOf: () => number) => void = () => undefined,
  pageRows = 7,
): IndexDifference | null | 'void' {
  const run = new IndexAudit(index);
  let seq = 0;
  const revisionOf = (): number => (seq += 1);
  while (!run.isWalked) {
    const { difference } = run.walk(() => true);
    if (difference !== null) return difference;
    between(run, revisionOf);
  }
  for (let after: string | null = null, isLast = false; !isLast;) {
    run.beginPage();
    between(run, revisionOf);
    const { page, last } = store.page(after, pageRows);
    const pageRevision = seq;
    isLast = last === null;
    after = last;
    for (let row = 0; row < page.rows;) {
      row = run.compareRows(page, row, () => true);
      between(run, revisionOf);
    }
    const difference = run.endPage(page, pageRevision, isLast);
    if (run.isVoid) return 'void';
    if (difference !== null) return difference;
    between(run, revisionOf);
  }
  return run.isVoid ? 'void' : run.finish();
}
