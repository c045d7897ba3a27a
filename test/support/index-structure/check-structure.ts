import type { IndexParts } from '../../../src/cache/edge-writer.ts';
import {
  ADDRESS_FIRST,
  BLOCK_WORDS_MIN,
  type Dictionary,
  FREE_OWNER,
  RECORD_LINK,
  RECORD_OWNER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_WORDS,
  binOf,
  blockWords,
  RECORD_LENGTH_MASK,
} from '../../../src/cache/tables/dictionary.ts';
import { type ListStore, ORDER_MIN } from '../../../src/cache/tables/list-store.ts';
import { QUALIFIER_NODE, QUALIFIER_SUBJECT } from '../../../src/cache/tables/qualifier-store.ts';
import { hashPair } from '../../../src/cache/tables/text-scratch.ts';
import type { TupleIndex } from '../../../src/cache/tuple-index.ts';
import { assert } from '../../../src/shared/assert.ts';
import { HASH_END, checkSegmentAt } from './sound-hash.ts';
import { checkFreeBlocks, checkFreeHeads, wordsOfList } from './sound-lists.ts';
import { checkName, recordWord } from './sound-nodes.ts';
import { StructureTally } from './structure-tally.ts';

/**
 * Checks all parts of an index by themselves and with each other, what no answer depends on yet included: every node, record, name
 * and entry, free memory, and what was counted of them. Throws at the first breach. O(nodes + records + slots).
 */
export function checkStructure(index: TupleIndex): void {
  const { parts } = index;
  const { dictionary, nodes, names, adjacency } = parts;
  const tally = new StructureTally(parts);
  for (let node = 1; node < nodes.top; node++) tally.node(node);
  const records = checkRecords(dictionary, tally);
  for (let id = 1; id < names.top; id++) checkName(parts, id);
  checkQualifiers(parts, tally);
  for (const table of [dictionary.table, nodes.table, adjacency.positions]) {
    let entries = 0;
    for (let from = 0; from < HASH_END;) {
      from = checkSegmentAt(table, from, () => {
        entries += 1;
      });
    }
    assert(entries === table.entries, 'a table counts its entries');
  }
  tally.compare(index.tupleCount);
  assert(records === dictionary.count, 'records are counted');
  checkListMemory(adjacency.lists, tally.listWords);
}

/** As Dictionary.next, which trusts what it reads. Returns the live records. */
function checkRecords(dictionary: Dictionary, tally: StructureTally): number {
  const { bins, top } = dictionary;
  /** Per size of free blocks: what they are, and where they lead. */
  const ids = new Int32Array(bins.length);
  const links = new Int32Array(bins.length);
  let records = 0;
  let at = ADDRESS_FIRST;
  while (at < top) {
    const rest = RECORD_PAGE_WORDS - (at & RECORD_PAGE_MASK);
    let words = rest;
    if (rest >= BLOCK_WORDS_MIN) {
      const head = recordWord(dictionary, at, 0);
      if (recordWord(dictionary, at, RECORD_OWNER) === FREE_OWNER) {
        words = head;
        const { bin, next } = checkFreeRecord(dictionary, at, words);
        ids[bin] = (ids[bin] as number) + at;
        links[bin] = (links[bin] as number) + next;
      } else {
        words = blockWords(head & RECORD_LENGTH_MASK);
        records += 1;
        tally.record(at);
      }
      assert(words >= BLOCK_WORDS_MIN && words <= rest, 'blocks follow each other');
    }
    at += words;
  }
  assert(at === top, 'the last block ends where the next one begins');
  bins.forEach((head, bin) => {
    const isLine = ids[bin] === (((links[bin] as number) + head) | 0);
    assert(isLine, 'free blocks of one size stand in one line');
  });
  return records;
}

function checkFreeRecord(
  dictionary: Dictionary,
  address: number,
  words: number,
): { readonly bin: number; readonly next: number } {
  const bin = binOf(words);
  const next = recordWord(dictionary, address, RECORD_LINK);
  const isPlaced = bin >= 0 && bin < dictionary.bins.length && next < dictionary.top;
  assert(isPlaced, 'a free block has a size');
  const isLine =
    next === 0 ||
    (recordWord(dictionary, next, RECORD_OWNER) === FREE_OWNER &&
      binOf(recordWord(dictionary, next, 0)) === bin);
  assert(isLine, 'a free block leads to one of its size');
  return { bin, next };
}

function checkQualifiers(parts: IndexParts, tally: StructureTally): void {
  const { qualifiers, adjacency, nodes } = parts;
  const { lists } = adjacency;
  for (let from = 0; from < HASH_END;) {
    from = checkSegmentAt(qualifiers.table, from, (hash, record) => {
      wordsOfList(lists, record);
      const node = lists.get(record, QUALIFIER_NODE);
      const subject = lists.get(record, QUALIFIER_SUBJECT);
      const isOwn = node < nodes.top && subject < nodes.top && hashPair(node, subject) === hash;
      assert(isOwn, 'what an edge carries names its edge');
      tally.qualifier(node, subject);
    });
  }
}

/** Checks the free blocks of lists, and that with `used` words they are all that there is. */
function checkListMemory(lists: ListStore, used: number): void {
  let words = 0;
  let known = used + (1 << ORDER_MIN);
  for (const [index, page] of lists.pages.entries()) {
    words += page.length;
    known += checkFreeBlocks(lists, index);
  }
  checkFreeHeads(lists);
  assert(known === words, 'blocks are free or of one list');
}
