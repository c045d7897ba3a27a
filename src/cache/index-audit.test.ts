import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Store, audit } from '../../test/support/index-structure/audit-index.ts';
import { checkIndex } from '../../test/support/index-structure/check-index.ts';
import { checkStructure } from '../../test/support/index-structure/check-structure.ts';
import { byLength } from '../../test/support/test-length.ts';
import { OBJECT_STRIDE } from '../model/tuple-reader.ts';
import { EdgeWriter } from './edge-writer.ts';
import { FORWARD, REVERSE } from './tables/adjacency.ts';
import { ChangeJournal } from './tables/change-journal.ts';
import { RECORD_LINK } from './tables/dictionary.ts';
import { NODE_ENTITY, NODE_NEXT, NODE_REVERSE, NODE_USERS } from './tables/node-table.ts';
import { PageAllocator } from './tables/page-allocator.ts';
import { SEGMENT_HEADER, SEGMENT_SLOTS } from './tables/segmented-hash.ts';
import { TupleIndex } from './tuple-index.ts';
import type { TupleRow } from './tuple-row.ts';

const name = fc.constantFrom('doc', 'group', 'folder', 'ünï');
const relation = fc.constantFrom(
  'viewer',
  'owner',
  'member',
  'a',
  'b',
  'c',
  'd',
  'e',
  'f',
  'g',
  'h',
);
const id = fc.integer({ min: 0, max: 40 }).map((n) => `id-${n}${'x'.repeat(n % 9)}`);
const subject = fc.oneof(
  { weight: 6, arbitrary: id.map((who) => ['', who, '']) },
  { weight: 2, arbitrary: fc.tuple(name, id, fc.constantFrom('member', '')) },
  { weight: 1, arbitrary: fc.constant(['*', '', '']) },
  { weight: 1, arbitrary: name.map((of) => ['*', of, '']) },
);
const payload = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.record({ expiresAtUs: fc.bigInt({ min: 0n, max: 2n ** 60n }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      conditionName: fc.constantFrom('cidr', 'before'),
      conditionParams: fc.constantFrom('{"a":1}', '{"list":["longer than a word","ü"]}'),
    }),
  },
);
const row: fc.Arbitrary<TupleRow> = fc
  .tuple(name, id, relation, subject, payload)
  .map(([namespace, objectId, rel, [subjectNamespace, subjectId, subjectRelation], carried]) => ({
    namespace,
    objectId,
    relation: rel,
    subjectNamespace: subjectNamespace ?? '',
    subjectId: subjectId ?? '',
    subjectRelation: subjectRelation ?? '',
    ...carried,
  }));
const change = fc.record({ op: fc.constantFrom('insert', 'insert', 'remove'), row });
type Change = { readonly op: string; readonly row: TupleRow };

function load(rows: readonly TupleRow[]): { index: TupleIndex; store: Store } {
  const index = new TupleIndex();
  index.pinName('viewer');
  index.pinName('unused');
  const store = new Store();
  for (const each of rows) {
    store.put(each);
    index.insert(each);
  }
  return { index, store };
}

function apply(index: TupleIndex, store: Store, { op, row: tuple }: Change): void {
  if (op === 'insert') {
    store.put(tuple);
    index.insert(tuple);
  } else {
    store.remove(tuple);
    index.remove(tuple);
  }
}

const rows = fc.array(row, { minLength: 0, maxLength: 400, size: 'max' });
const FUZZ = Number(process.env['FUZZ_RUNS'] ?? '1');

test('a healthy index equals its rows, whatever changes while it is compared', () => {
  fc.assert(
    fc.property(
      rows,
      fc.array(change, { maxLength: 300, size: 'max' }),
      fc.integer({ min: 1, max: 60 }),
      (stored, changes, pageRows) => {
        const { index, store } = load(stored);
        let next = 0;
        const found = audit(
          index,
          store,
          (run, revisionOf) => {
            const each = changes[next++];
            if (each === undefined) return;
            run.before(each.row);
            apply(index, store, each);
            run.after(each.row, revisionOf());
          },
          pageRows,
        );
        expect(found === 'void' ? null : found).toBeNull();
        checkIndex(index);
        checkStructure(index);
      },
    ),
    { numRuns: byLength(5, 60) * FUZZ },
  );
});

/** Every page of memory that an index consists of, by the part that it belongs to. */
function memoryOf(index: TupleIndex): ReadonlyMap<string, readonly (Uint32Array | Uint8Array)[]> {
  const { dictionary, names, nodes, adjacency, qualifiers } = index.parts;
  return new Map<string, readonly (Uint32Array | Uint8Array)[]>([
    ['records', dictionary.records.pages],
    ['record hash', [...new Set(dictionary.table.directory)]],
    ['names', names.words.pages],
    ['nodes', nodes.words.pages],
    ['node hash', [...new Set(nodes.table.directory)]],
    ['lists', adjacency.lists.pages],
    ['free tags', adjacency.lists.tags],
    ['positions', [...new Set(adjacency.positions.directory)]],
    ['qualifier hash', [...new Set(qualifiers.table.directory)]],
  ]);
}

const MEMBERS = byLength(1_500, 5_000);

/** Many rows with long lists, many relations of one object, many expiries. */
function largeRows(): TupleRow[] {
  const all: TupleRow[] = [];
  const user = (subjectId: string): Omit<TupleRow, 'namespace' | 'objectId' | 'relation'> => ({
    subjectNamespace: '',
    subjectId,
    subjectRelation: '',
  });
  for (let i = 0; i < MEMBERS; i++) {
    all.push({ namespace: 'group', objectId: 'all', relation: 'member', ...user(`u${i}`) });
  }
  for (let i = 0; i < 300; i++) {
    all.push({ namespace: 'doc', objectId: `d${i}`, relation: 'viewer', ...user('u1') });
    all.push({ namespace: 'doc', objectId: 'wide', relation: `r${i % 40}`, ...user(`u${i}`) });
    all.push({
      namespace: 'doc',
      objectId: `d${i}`,
      relation: 'viewer',
      subjectNamespace: 'group',
      subjectId: 'all',
      subjectRelation: 'member',
      ...(i % 2 === 0
        ? { expiresAtUs: BigInt(i) << 31n }
        : { conditionName: `c${i % 5}`, conditionParams: `{"n":${i}}` }),
    });
  }
  return all;
}

/** Everything that the index answers of these tuples and nodes. */
function readout(index: TupleIndex, stored: readonly TupleRow[]): string {
  const out: unknown[] = [index.tupleCount];
  const buffer = new Uint32Array(16);
  const seen = new Set<number>();
  const nameOf = (node: number): string =>
    `${index.nameText(index.namespaceOf(index.entityOf(node)))}:${index.entityText(index.entityOf(node))}#${index.nameText(index.relationOf(node))}`;
  const object = new Uint32Array(64);
  const objectOf = (node: number): unknown[] => {
    const found: unknown[] = [];
    const entity = index.entityOf(node);
    const count = index.readObject(entity, object);
    for (let i = 0; i < count * OBJECT_STRIDE; i++) found.push(object[i]);
    for (let each = index.firstNodeOf(entity); each !== 0; each = index.nextNodeOf(each)) {
      found.push(nameOf(each));
    }
    return found;
  };
  for (const each of stored) {
    const node = index.nodeId(
      index.entityId(index.nameId(each.namespace), each.objectId),
      index.nameId(each.relation),
    );
    const holder = index.subjectNodeOf(each);
    const edge = index.edge(node, holder);
    out.push(edge, edge === 2 ? index.qualifier(node, holder) : null);
    for (const one of [node, holder]) {
      if (seen.has(one)) continue;
      seen.add(one);
      out.push(nameOf(one), ...objectOf(one));
      for (const list of ['readUsers', 'readSets', 'readReverse'] as const) {
        for (let cursor = 0; cursor >= 0; cursor = index.nextCursor) {
          const count = index[list](one, cursor, buffer, 0);
          for (let i = 0; i < count; i++) {
            const entry = buffer[i] as number;
            out.push(nameOf(entry & 0x7fffffff), entry >>> 31);
          }
        }
      }
    }
  }
  return JSON.stringify(out, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

function isSound(index: TupleIndex): boolean {
  try {
    checkStructure(index);
    return true;
  } catch {
    return false;
  }
}

function flip(page: Uint32Array | Uint8Array, bit: number): void {
  const width = page.BYTES_PER_ELEMENT * 8;
  const at = Math.floor(bit / width);
  page[at] = (page[at] as number) ^ (1 << (bit % width));
}

const PARTS = [...memoryOf(new TupleIndex()).keys()];
test.each(PARTS)('a flipped bit in %s is found, or changes nothing, now and later', (part) => {
  const stored = largeRows();
  const gone = stored.splice(MEMBERS - 1_000, 700);
  const fresh = (): { index: TupleIndex; store: Store } => {
    const made = load([...stored, ...gone]);
    for (const each of gone) apply(made.index, made.store, { op: 'remove', row: each });
    return made;
  };
  let { index, store } = fresh();
  const healthy = readout(index, stored);
  let found = 0;
  let runs = 0;
  fc.assert(
    fc.property(fc.noBias(fc.nat()), fc.noBias(fc.nat()), (pick, at) => {
      // Not every bit is in use: the short run continues until one that is was flipped.
      if (runs >= byLength(2, 15) * FUZZ && found > 0) return;
      runs += 1;
      const pages = (memoryOf(index).get(part) ?? []).filter(({ length }) => length > 0);
      const page = pages[pick % pages.length] as Uint32Array;
      const bit = at % (page.length * page.BYTES_PER_ELEMENT * 8);
      flip(page, bit);
      const isDifferent = audit(index, store, undefined, 500) !== null;
      // What the comparison does not find changes no answer: it may be of the structure alone.
      if (!isDifferent) expect(readout(index, stored)).toBe(healthy);
      if (isDifferent || !isSound(index)) {
        found += 1;
        flip(page, bit);
        return;
      }
      for (const each of [...gone, ...gone]) apply(index, store, { op: 'insert', row: each });
      for (const each of stored) apply(index, store, { op: 'remove', row: each });
      checkIndex(index);
      ({ index, store } = fresh());
    }),
    { numRuns: 15 * FUZZ },
  );
  expect(found).toBeGreaterThan(0);
  expect(audit(index, store, undefined, 500)).toBeNull();
});

test('free memory and counts of mentions are of the structure alone', () => {
  const { index, store } = load(largeRows());
  const healthy = readout(index, largeRows());
  const { names, adjacency } = index.parts;
  const tags = adjacency.lists.tags[0] as Uint8Array;
  const references = names.words.pages[0] as Uint32Array;
  for (const [page, at] of [
    [references, index.nameId('viewer') * 2 + 1],
    [tags, tags.findIndex((tag) => tag !== 0)],
  ] as const) {
    flip(page, at * page.BYTES_PER_ELEMENT * 8);
    expect(audit(index, store, undefined, 500)).toBeNull();
    expect(readout(index, largeRows())).toBe(healthy);
    expect(isSound(index)).toBe(false);
    flip(page, at * page.BYTES_PER_ELEMENT * 8);
  }
  checkStructure(index);
});

/** Stores an edge as the index does, but counts it elsewhere. */
function insertUncounted(index: TupleIndex, object: string, user: string): void {
  const counters = { revision: 0, tupleCount: 0 };
  const journal = new ChangeJournal(new PageAllocator(2 ** 27), 0);
  const writer = new EdgeWriter(index.parts, journal, counters);
  const node = writer.internNode('doc', object, 'viewer');
  const holder = writer.internNode('', user, '');
  writer.insertEdge(node, holder, false, 0, 0, 0, new Uint8Array());
  expect(counters.tupleCount).toBe(1);
}

test('what is only in the index is found: counted, uncounted, or in the place of another', () => {
  const stored = largeRows();
  const tuple = (objectId: string, subjectId: string): TupleRow => ({
    namespace: 'doc',
    objectId,
    relation: 'viewer',
    subjectNamespace: '',
    subjectId,
    subjectRelation: '',
  });
  const counted = load(stored);
  counted.index.insert(tuple('stray', 'u1'));
  expect(audit(counted.index, counted.store, undefined, 500)).toMatchObject({
    part: 'tuples',
    message: `the index holds ${stored.length + 1} tuples where ${stored.length} are stored`,
  });
  for (const [object, user] of [
    ['stray', 'stranger'],
    ['d1', 'u2'],
    ['wide', 'u1'],
  ] as const) {
    const { index, store } = load(stored);
    insertUncounted(index, object, user);
    expect(audit(index, store, undefined, 500)).toMatchObject({
      part: 'lists',
      message: 'forward entries are as many as tuples',
    });
  }
  const { index, store } = load(stored);
  index.remove(tuple('d1', 'u1'));
  insertUncounted(index, 'd1', 'u2');
  // The count is one too low here; with it put right only the comparison of rows can find it.
  index.tupleCount += 1;
  expect(audit(index, store, undefined, 500)).toMatchObject({ part: 'tuples', differing: 1 });
});

test.each([
  ['forward', FORWARD, 'forward entries are as many as tuples'],
  ['reverse', REVERSE, 'reverse entries are as many as tuples'],
] as const)('an entry that is only in a %s list is found', (_, side, message) => {
  const { index, store } = load(largeRows());
  const { nodes, adjacency } = index.parts;
  const object = index.entityId(index.nameId('doc'), 'd1');
  const node = index.nodeId(object, index.nameId('viewer'));
  const user = index.firstNodeOf(index.entityId(0, 'u2'));
  const [owner, member, field] =
    side === FORWARD ? [node, user, NODE_USERS] : [user, node, NODE_REVERSE];
  const word = adjacency.append(nodes.field(owner, field), owner, member, side);
  nodes.setField(owner, field, word);
  expect(audit(index, store, undefined, 500)).toMatchObject({ part: 'lists', message });
});

/** Damages an index of doc:a, doc:b and user u that no lookup of a row need notice. */
const UNNOTICED: readonly (readonly [
  what: string,
  part: string,
  damage: (i: TupleIndex) => void,
])[] = [
  [
    'an object that leads to the node of another with the same user',
    'nodes',
    (index) => setLink(index, 'a', nodeOf(index, 'b')),
  ],
  [
    'a name whose id leads to another',
    'tuples',
    (index) => {
      const { words, recordOf } = nameWords(index);
      words[index.nameId('viewer') * 2] = recordOf('doc');
    },
  ],
  [
    'a name without mentions',
    'tuples',
    (index) => {
      nameWords(index).words[index.nameId('viewer') * 2 + 1] = 0;
    },
  ],
  [
    'a node that leads to itself',
    'nodes',
    (index) => index.parts.nodes.setField(nodeOf(index, 'b'), NODE_NEXT, nodeOf(index, 'b')),
  ],
  [
    'a node that names another user as its own',
    'nodes',
    (index) => {
      const node = index.firstNodeOf(index.entityId(0, 'u'));
      index.parts.nodes.setField(node, NODE_ENTITY, index.entityId(0, 'mallory'));
    },
  ],
  [
    'an object that leads to the node of another behind its own',
    'nodes',
    (index) => index.parts.nodes.setField(nodeOf(index, 'b'), NODE_NEXT, nodeOf(index, 'a')),
  ],
  [
    'an object with many relations, one of which is of another object',
    'nodes',
    (index) => {
      const { adjacency, dictionary } = index.parts;
      const records = dictionary.records.pages[0] as Uint32Array;
      const list = records[entityOf(index, 'wide') + RECORD_LINK] as number;
      adjacency.lists.set(list, 3, nodeOf(index, 'a'));
    },
  ],
  [
    'an object with many relations, and one of another object behind them',
    'nodes',
    (index) => {
      const { adjacency, dictionary } = index.parts;
      const records = dictionary.records.pages[0] as Uint32Array;
      const link = entityOf(index, 'wide') + RECORD_LINK;
      records[link] = adjacency.lists.append(records[link] ?? 0, nodeOf(index, 'a'));
    },
  ],
  [
    'a node that names an object with many relations as its own',
    'nodes',
    (index) => {
      const node = nodeOf(index, 'b');
      index.parts.nodes.setField(node, NODE_ENTITY, entityOf(index, 'wide'));
    },
  ],
  [
    'a name that leads to the id of another',
    'tuples',
    (index) => {
      const records = index.parts.dictionary.records.pages[0] as Uint32Array;
      records[nameWords(index).recordOf('editor') + RECORD_LINK] = index.nameId('viewer');
    },
  ],
  [
    'a hash without a free slot',
    'hashes',
    ({ parts }) => {
      const segment = parts.qualifiers.table.directory[0] as Uint32Array;
      for (let at = SEGMENT_HEADER; at < segment.length; at++) segment[at] = 1;
    },
  ],
  [
    'a hash that names another number of slots',
    'hashes',
    ({ parts }) => {
      (parts.qualifiers.table.directory[0] as Uint32Array)[SEGMENT_SLOTS] = 17;
    },
  ],
];

const entityOf = (index: TupleIndex, object: string): number =>
  index.entityId(index.nameId('doc'), object);
const nodeOf = (index: TupleIndex, object: string): number =>
  index.nodeId(entityOf(index, object), index.nameId('viewer'));

function setLink(index: TupleIndex, object: string, link: number): void {
  const entity = entityOf(index, object);
  const page = index.parts.dictionary.records.pages[0] as Uint32Array;
  page[entity + RECORD_LINK] = link;
}

function nameWords(index: TupleIndex): { words: Uint32Array; recordOf: (name: string) => number } {
  const { names } = index.parts;
  return {
    words: names.words.pages[0] as Uint32Array,
    recordOf: (text) => names.recordOf(index.nameId(text)),
  };
}

const held = (objectId: string, more: Partial<TupleRow> = {}): TupleRow => ({
  namespace: 'doc',
  objectId,
  relation: 'viewer',
  subjectNamespace: '',
  subjectId: 'u',
  subjectRelation: '',
  ...more,
});

test.each(UNNOTICED)('%s is found', (_, part, damage) => {
  const wide = Array.from({ length: 12 }, (_each, i) => held('wide', { relation: `r${i}` }));
  const named = [held('a', { relation: 'editor' }), held('a', { subjectId: 'mallory' })];
  const { index, store } = load([held('a'), held('b'), ...named, ...wide]);
  expect(audit(index, store)).toBeNull();
  damage(index);
  expect(audit(index, store)).toMatchObject({ part });
});

test('a tuple whose object is its subject is counted once on each side when it comes', () => {
  const { index, store } = load([held('a')]);
  const own = { subjectNamespace: 'doc', subjectId: 'a', subjectRelation: 'viewer' };
  let isStored = false;
  const found = audit(index, store, (run, revisionOf) => {
    if (isStored) return;
    isStored = true;
    run.before(held('a', own));
    apply(index, store, { op: 'insert', row: held('a', own) });
    run.after(held('a', own), revisionOf());
  });
  expect(found).toBeNull();
});
