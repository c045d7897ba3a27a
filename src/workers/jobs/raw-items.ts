import { createEntityLookups, EMPTY_NAME } from '../../model/tuple-reader.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { ByteSource } from '../raw/raw-context.ts';
import { POSITIONS_PER_ITEM, sameBytes } from '../raw/raw-fields.ts';
import { CHUNK_ITEMS } from './batch-evaluation.ts';
import type { ItemChunk, ItemSource } from './batch-evaluation.ts';

/** An object and a user for each item of a chunk. */
const lookups = createEntityLookups(CHUNK_ITEMS * 2);
/** Which of the lookups is the user of each item. */
const userAt = new Uint8Array(CHUNK_ITEMS);

/**
 * Items of a scanned body as ids of one index. Hot: ids are looked up from bytes, a chunk together;
 * names that equal those of the item before are not looked up again.
 */
export class RawItems implements ItemSource {
  readonly count: number;
  readonly #reader: TupleReader;
  readonly #source: ByteSource;
  #positions: Uint32Array;
  /** The names of the item that was loaded last, which the next ones mostly have too. */
  #loaded = -1;
  #namespace = -1;
  #relation = -1;

  constructor(reader: TupleReader, source: ByteSource, positions: Uint32Array, count: number) {
    this.#reader = reader;
    this.#source = source;
    this.#positions = positions;
    this.count = count;
  }

  /** Copies the positions, which belong to the scanner: its next scan overwrites them. */
  detach(): void {
    this.#positions = this.#positions.slice(0, this.count * POSITIONS_PER_ITEM);
  }

  load(first: number, count: number, chunk: ItemChunk): void {
    const at = this.#positions;
    const { namespaces, starts, ends, entities } = lookups;
    let asked = count;
    for (let i = 0; i < count; i++) {
      const position = (first + i) * POSITIONS_PER_ITEM;
      const before = this.#loaded * POSITIONS_PER_ITEM;
      const isFirst = before < 0;
      this.#loaded = first + i;
      if (isFirst || !this.#isSame(before, position)) this.#namespace = this.#nameAt(position);
      if (isFirst || !this.#isSame(before + 4, position + 4)) {
        this.#relation = this.#nameAt(position + 4);
      }
      chunk.namespaces[i] = this.#namespace;
      chunk.relations[i] = this.#relation;
      namespaces[i] = this.#namespace;
      starts[i] = at[position + 2] as number;
      ends[i] = at[position + 3] as number;
      if (i === 0 || !this.#isSame(before + 6, position + 6)) {
        namespaces[asked] = EMPTY_NAME;
        starts[asked] = at[position + 6] as number;
        ends[asked++] = at[position + 7] as number;
      }
      userAt[i] = asked - 1;
    }
    this.#reader.readEntityIds(this.#source.bytes, lookups, asked);
    for (let i = 0; i < count; i++) {
      chunk.objects[i] = entities[i] as number;
      chunk.users[i] = entities[userAt[i] as number] as number;
    }
  }

  #nameAt(position: number): number {
    const start = this.#positions[position] as number;
    return this.#reader.nameIdOfBytes(
      this.#source.bytes,
      start,
      this.#positions[position + 1] as number,
    );
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

  /** The whole query of an item. */
  queryText(index: number): RefusedQuery {
    return {
      kind: 'check',
      namespace: this.namespaceText(index),
      objectId: this.#text(index * POSITIONS_PER_ITEM + 2),
      relation: this.relationText(index),
      subject: { kind: 'user', userId: this.userText(index) },
      contextJson: '',
    };
  }

  #text(position: number): string {
    const start = this.#positions[position] as number;
    const end = this.#positions[position + 1] as number;
    const { buffer, byteOffset } = this.#source.bytes;
    return Buffer.from(buffer, byteOffset + start, end - start).toString('utf8');
  }

  #isSame(before: number, now: number): boolean {
    const at = this.#positions;
    return sameBytes(
      this.#source.bytes,
      at[before] as number,
      at[before + 1] as number,
      at[now] as number,
      at[now + 1] as number,
    );
  }
}
