import { IndexAudit } from '../../cache/index-audit.ts';
import { TupleIndex } from '../../cache/tuple-index.ts';
import type { RowBytes, TupleRow } from '../../cache/tuple-row.ts';
import { parsePackedChanges } from '../../model/packed-changes.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { assert } from '../../shared/assert.ts';
import type { ShardIndex } from './ports.ts';

const OP_INSERT = 1;

/** The index of one shard, fed with snapshot rows and packed changes. */
export class TupleShardIndex implements ShardIndex {
  readonly #index: TupleIndex;
  #audit: { readonly run: IndexAudit; readonly seqOf: () => number } | null = null;

  /** Errors of every change: SHARD_TOO_LARGE beyond `bytesMax`; the index must then be dropped. */
  constructor(bytesMax: number) {
    this.#index = new TupleIndex({ bytesMax });
  }

  get reader(): TupleReader {
    return this.#index;
  }

  get bytes(): number {
    return this.#index.bytes;
  }

  get tupleCount(): number {
    return this.#index.tupleCount;
  }

  insertRow(bytes: Uint8Array, bounds: Int32Array): void {
    const row: RowBytes = { bytes, bounds, rows: 1, expiryFormat: 'binary' };
    this.#index.insertRows(row);
  }

  apply(changes: string): void {
    for (const entry of parsePackedChanges(changes)) {
      const row: TupleRow = {
        namespace: entry[1],
        objectId: entry[2],
        relation: entry[3],
        subjectNamespace: entry[4],
        subjectId: entry[5],
        subjectRelation: entry[6],
        expiresAtUs: entry[7] === null ? null : BigInt(entry[7]),
        conditionName: entry[8],
        conditionParams: entry[9],
      };
      this.#audit?.run.before(row);
      if (entry[0] === OP_INSERT) this.#index.insert(row);
      else this.#index.remove(row);
      this.#audit?.run.after(row, this.#audit.seqOf());
    }
  }

  startAudit(seqOf: () => number): IndexAudit {
    assert(this.#audit === null, 'an index is compared once at a time');
    const run = new IndexAudit(this.#index);
    this.#audit = { run, seqOf };
    return run;
  }

  endAudit(): void {
    this.#audit = null;
  }
}
