import { EMPTY_NAME } from '../../model/tuple-reader.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { RefusedQuery } from '../../protocol/read-figures.ts';
import type { BatchItem } from '../../protocol/shard-client.ts';
import type { ItemChunk, ItemSource } from './batch-evaluation.ts';

/** Decoded items as ids of one index. */
export class TextItems implements ItemSource {
  readonly count: number;
  readonly #reader: TupleReader;
  readonly #items: readonly BatchItem[];

  constructor(reader: TupleReader, items: readonly BatchItem[]) {
    this.#reader = reader;
    this.#items = items;
    this.count = items.length;
  }

  load(first: number, count: number, chunk: ItemChunk): void {
    const reader = this.#reader;
    for (let i = 0; i < count; i++) {
      const { namespace, objectId, relation, userId } = this.#item(first + i);
      const name = reader.nameId(namespace);
      chunk.namespaces[i] = name;
      chunk.relations[i] = reader.nameId(relation);
      chunk.objects[i] = name < 0 ? 0 : reader.entityId(name, objectId);
      chunk.users[i] = reader.entityId(EMPTY_NAME, userId);
    }
  }

  detach(): void {
    // The items are its own.
  }

  namespaceText(index: number): string {
    return this.#item(index).namespace;
  }

  relationText(index: number): string {
    return this.#item(index).relation;
  }

  queryText(index: number): RefusedQuery {
    const { userId, ...query } = this.#item(index);
    return { kind: 'check', ...query, subject: { kind: 'user', userId }, contextJson: '' };
  }

  #item(index: number): BatchItem {
    return this.#items[index] as BatchItem; // below count
  }
}
