import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ItemSource } from '../batch-evaluation.ts';
import { POSITIONS_PER_ITEM, sameBytes } from './raw-fields.ts';

/**
 * Items of a scanned body as ids of one index. Hot: ids are looked up from bytes; names that equal
 * those of the item before are not looked up again.
 */
export class RawItems implements ItemSource {
  readonly count: number;
  namespace = -1;
  relation = -1;
  object = 0;
  user = 0;
  readonly #reader: TupleReader;
  readonly #bytes: Uint8Array;
  #positions: Uint32Array;
  #loaded = -1;

  constructor(reader: TupleReader, bytes: Uint8Array, positions: Uint32Array, count: number) {
    this.#reader = reader;
    this.#bytes = bytes;
    this.#positions = positions;
    this.count = count;
  }

  /** Copies the positions, which belong to the scanner: its next scan overwrites them. */
  keep(): void {
    this.#positions = this.#positions.slice(0, this.count * POSITIONS_PER_ITEM);
  }

  load(index: number): void {
    const reader = this.#reader;
    const bytes = this.#bytes;
    const at = this.#positions;
    const i = index * POSITIONS_PER_ITEM;
    const before = this.#loaded * POSITIONS_PER_ITEM;
    this.#loaded = index;
    if (before < 0 || !this.#isSame(before, i)) {
      this.namespace = reader.nameIdOfBytes(bytes, at[i] as number, at[i + 1] as number);
    }
    if (before < 0 || !this.#isSame(before + 4, i + 4)) {
      this.relation = reader.nameIdOfBytes(bytes, at[i + 4] as number, at[i + 5] as number);
    }
    this.object =
      this.namespace < 0
        ? 0
        : reader.entityIdOfBytes(this.namespace, bytes, at[i + 2] as number, at[i + 3] as number);
    if (before < 0 || !this.#isSame(before + 6, i + 6)) {
      this.user = reader.entityIdOfBytes(0, bytes, at[i + 6] as number, at[i + 7] as number);
    }
  }

  namespaceText(index: number): string {
    return this.#text(index * POSITIONS_PER_ITEM);
  }

  relationText(index: number): string {
    return this.#text(index * POSITIONS_PER_ITEM + 4);
  }

  userText(index: number): string {
    return this.#text(index * POSITIONS_PER_ITEM + 6);
  }

  #text(position: number): string {
    const start = this.#positions[position] as number;
    const end = this.#positions[position + 1] as number;
    const { buffer, byteOffset } = this.#bytes;
    return Buffer.from(buffer, byteOffset + start, end - start).toString('utf8');
  }

  #isSame(before: number, now: number): boolean {
    const at = this.#positions;
    return sameBytes(
      this.#bytes,
      at[before] as number,
      at[before + 1] as number,
      at[now] as number,
      at[now + 1] as number,
    );
  }
}
