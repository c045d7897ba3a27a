import { ADJACENCY_LIST, ADJACENCY_MASK } from '../../src/cache/tables/adjacency.ts';
import {
  RECORD_HEADER,
  RECORD_PAGE_MASK,
  RECORD_PAGE_SHIFT,
} from '../../src/cache/tables/dictionary.ts';
import { LIST_PAGE_MASK, LIST_PAGE_SHIFT } from '../../src/cache/tables/list-store.ts';
import { NODE_REVERSE, NODE_SETS, NODE_USERS } from '../../src/cache/tables/node-table.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS } from '../../src/cache/tables/segmented-hash.ts';
import type { SegmentedHash } from '../../src/cache/tables/segmented-hash.ts';
import type { TupleIndex } from '../../src/cache/tuple-index.ts';

/** Where a bit of an index is flipped, so that answers differ; the index must hold what the name says. */
const FLIPS = {
  'the text of an object': (index) => {
    const { records } = index.parts.dictionary;
    const entity = someEntity(index);
    const page = records.pages[entity >>> RECORD_PAGE_SHIFT] as Uint32Array;
    return [page, (entity & RECORD_PAGE_MASK) + RECORD_HEADER];
  },
  'the hash of texts': (index) => usedSlot(index.parts.dictionary.table),
  'the users of an object': (index) => nodeField(index, NODE_USERS),
  'the usersets of an object': (index) => nodeField(index, NODE_SETS),
  'the objects of a subject': (index) => nodeField(index, NODE_REVERSE),
  'the hash of objects with many relations': (index) => usedSlot(index.parts.nodes.table),
  'an entry of a forward list': (index) => listEntry(index, NODE_USERS),
  'an entry of a reverse list': (index) => listEntry(index, NODE_REVERSE),
  'the hash of positions in long lists': (index) => usedSlot(index.parts.adjacency.positions),
  'the hash of expiries and conditions': (index) => usedSlot(index.parts.qualifiers.table),
  'an expiry': (index) => qualifierWord(index, 2),
  'a condition': (index) => qualifierWord(index, 4),
  'the parameters of a condition': (index) => qualifierWord(index, 6),
} as const satisfies Readonly<Record<string, (index: TupleIndex) => Place>>;

type Place = readonly [words: Uint32Array, at: number];

/** The places that `flipBit` knows. */
export type FlippedPart = keyof typeof FLIPS;
export const FLIPPED_PARTS = Object.keys(FLIPS) as FlippedPart[];

/** Flips the lowest bit of a word of one part of the index, as a fault of the memory would. */
export function flipBit(index: TupleIndex, part: FlippedPart): void {
  const [words, at] = FLIPS[part](index);
  if (at < 0 || at >= words.length) throw new Error(`the index has nothing of ${part}`);
  words[at] = (words[at] as number) ^ 1;
}

function someEntity(index: TupleIndex): number {
  const out = new Uint32Array(1);
  index.readEntitiesOf(index.nameId('doc'), 0, out, 0);
  return out[0] as number;
}

function usedSlot(table: SegmentedHash): Place {
  for (const segment of table.directory) {
    for (let slot = 0; slot < (segment[SEGMENT_SLOTS] as number); slot++) {
      const at = SEGMENT_HEADER + slot * 2 + 1;
      if (segment[at] !== 0) return [segment, at];
    }
  }
  return [new Uint32Array(0), -1];
}

function nodeField(index: TupleIndex, field: number, isList = false): Place {
  const { nodes } = index.parts;
  for (let node = 2; node < nodes.top; node++) {
    const word = nodes.field(node, field);
    if (word === 0 || (isList && (word & ADJACENCY_LIST) === 0)) continue;
    return [nodes.pages[0] as Uint32Array, node * 6 + field];
  }
  return [new Uint32Array(0), -1];
}

function listEntry(index: TupleIndex, field: number): Place {
  const [page, at] = nodeField(index, field, true);
  const list = (page[at] as number) & ADJACENCY_MASK;
  const { pages } = index.parts.adjacency.lists;
  return [pages[list >>> LIST_PAGE_SHIFT] as Uint32Array, (list & LIST_PAGE_MASK) + 1];
}

/** The first record that is long enough to have the word. */
function qualifierWord(index: TupleIndex, word: number): Place {
  const { qualifiers, adjacency } = index.parts;
  for (const segment of qualifiers.table.directory) {
    for (let at = SEGMENT_HEADER + 1; at < segment.length; at += 2) {
      const record = segment[at] as number;
      if (record === 0 || adjacency.lists.count(record) <= word) continue;
      const page = adjacency.lists.pages[record >>> LIST_PAGE_SHIFT] as Uint32Array;
      return [page, (record & LIST_PAGE_MASK) + 1 + word];
    }
  }
  return [new Uint32Array(0), -1];
}
