import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import {
  type RelationTuple,
  type TupleChange,
  tupleIdentity,
} from '../../src/model/relation-tuple.ts';
import {
  createEntityLookups,
  type TupleReader,
  WILDCARD_NODE,
} from '../../src/model/tuple-reader.ts';
import { NAMESPACES, tuples as tupleArbitrary } from '../reference/worlds.ts';
import { checkIndex } from '../support/index-structure/check-index.ts';
import { readerText } from '../support/reader-text.ts';
import { byLength } from '../support/test-length.ts';
import { keyOf } from '../support/tuple-text.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.3, 1));
const timeout = 60_000 * Math.max(1, FUZZ_RUNS);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

/** Names, objects and users that no stored tuple has, of awkward texts. */
const strangers: fc.Arbitrary<RelationTuple> = fc.record({
  namespace: fc.constantFrom('doc', 'folder', 'a-b'),
  objectId: fc.constantFrom('a', 'ü', '🙂', '1 2', '日本'),
  relation: fc.constantFrom('r0', 'owner', 'a_b'),
  subject: fc.oneof(
    fc.record({
      kind: fc.constant('user' as const),
      userId: fc.constantFrom('u0', 'ü', 'x:y@z/|'),
    }),
    fc.record({
      kind: fc.constant('set' as const),
      namespace: fc.constantFrom('group', 'team'),
      objectId: fc.constantFrom('a', 'é'),
      relation: fc.constantFrom('', 'r1', 'staff'),
    }),
  ),
});
const anyTuple = fc.oneof({ weight: 3, arbitrary: tupleArbitrary }, strangers);
const ALL_NAMESPACES = ['', ...NAMESPACES, 'folder', 'a-b', 'team'];

const changeLists: fc.Arbitrary<TupleChange[]> = fc.array(
  fc.record({ op: fc.constantFrom('insert', 'insert', 'delete'), tuple: anyTuple }),
  { maxLength: 25, size: 'max' },
);

function indexOf(tuples: readonly RelationTuple[]): TupleIndex {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', tuple);
  return index;
}

/** What is stored after the changes, in the order of a dictionary of tuples. */
function applied(stored: readonly RelationTuple[], changes: readonly TupleChange[]) {
  const tuples = new Map(stored.map((tuple) => [tupleIdentity(tuple), tuple]));
  for (const { op, tuple } of changes) {
    if (op === 'insert') tuples.set(tupleIdentity(tuple), tuple);
    else tuples.delete(tupleIdentity(tuple));
  }
  return [...tuples.values()];
}

/** Deletes of what is stored meet something more often than random ones. */
const cases = fc
  .record({
    stored: fc.array(anyTuple, { maxLength: 30, size: 'max' }),
    changes: changeLists,
    removed: fc.array(fc.nat(), { maxLength: 12 }),
    chunk: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ stored, changes, removed, chunk }) => {
    const deletes = removed.flatMap((at): TupleChange[] => {
      const tuple = stored[at % Math.max(1, stored.length)];
      return tuple === undefined ? [] : [{ op: 'delete', tuple }];
    });
    return { stored, changes: [...deletes, ...changes], chunk };
  });

/** Which of the objects and usersets of some tuples a reader knows. */
function knownOf(reader: TupleReader, tuples: readonly RelationTuple[]): string[] {
  return tuples.map(({ namespace, objectId, relation, subject }) => {
    const nodeOf = (space: string, id: string, name: string): number[] => {
      const entity = reader.entityId(reader.nameId(space), id);
      return [entity, reader.nodeId(entity, reader.nameId(name))];
    };
    const subjectIds =
      subject.kind === 'user'
        ? nodeOf('', subject.userId, '')
        : subject.kind === 'set'
          ? nodeOf(subject.namespace, subject.objectId, subject.relation)
          : [];
    const ids = [...nodeOf(namespace, objectId, relation), ...subjectIds];
    return ids.map((id) => (id === 0 ? 'unknown' : 'known')).join();
  });
}

describe(`a reader with changes laid over it (SEED=${seed})`, { timeout }, () => {
  const params = (runs: number) => ({ numRuns: Math.ceil(runs * FUZZ_RUNS), seed });

  test('says what an index says to which they were applied', () => {
    const property = fc.property(cases, ({ stored, changes, chunk }) => {
      const overlay = new OverlayReader(indexOf(stored), changes);
      const rebuilt = indexOf(applied(stored, changes));
      expect(readerText(overlay, ALL_NAMESPACES, chunk)).toEqual(
        readerText(rebuilt, ALL_NAMESPACES, chunk),
      );
      const all = [...stored, ...changes.map(({ tuple }) => tuple)];
      expect(knownOf(overlay, all)).toEqual(knownOf(rebuilt, all));
    });
    fc.assert(property, params(300));
  });

  test('leaves the index as it was: its bytes, its names, its contents', () => {
    const property = fc.property(cases, ({ stored, changes, chunk }) => {
      const index = indexOf(stored);
      const stateOf = (): unknown => [
        index.revision,
        index.tupleCount,
        index.nodeCount,
        index.bytes,
        index.partBytes(),
        index.parts.dictionary.count,
        index.parts.names.top,
        readerText(index, ALL_NAMESPACES, chunk),
      ];
      const before = stateOf();
      const overlay = new OverlayReader(index, changes);
      readerText(overlay, ALL_NAMESPACES, chunk);
      for (const name of ['stranger', 'r9']) overlay.pinName(name);
      expect(stateOf()).toEqual(before);
      expect(index.nameId('stranger')).toBe(-1);
      checkIndex(index);
    });
    fc.assert(property, params(100));
  });
});

test('does not lie over another one, whose private ids are the same numbers', () => {
  const lower = new OverlayReader(indexOf([]), []);
  expect(() => new OverlayReader(lower, [])).toThrow('an overlay lies over an index');
});

test('orders ids as their bytes do, whosever they are', () => {
  const ids = ['a', 'ab', 'b', 'é', '日', '🙂', '\uffee'];
  const stored = ids.filter((_, i) => i % 2 === 0).map((id) => keyOf(`doc:${id}#r@user:u`));
  const added = ids.map((id): TupleChange => ({
    op: 'insert',
    tuple: keyOf(`doc:${id}#r@user:v`),
  }));
  const overlay = new OverlayReader(indexOf(stored), added);
  const doc = overlay.nameId('doc');
  const entities = ids.map((id) => overlay.entityId(doc, id));
  const sorted = entities.toSorted((a, b) => overlay.compareEntityIds(a, b));
  const wanted = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  expect(sorted.map((entity) => overlay.entityText(entity))).toEqual(wanted);
});

test('finds by bytes what it finds by text', () => {
  const stored = [keyOf('doc:a#r@user:u')];
  const changes: TupleChange[] = [{ op: 'insert', tuple: keyOf('doc:ü#q@group:g#m') }];
  const overlay = new OverlayReader(indexOf(stored), changes);
  const bytes = Buffer.from('..aüunowhere');
  const lookups = createEntityLookups(4);
  const doc = overlay.nameId('doc');
  lookups.namespaces.set([doc, doc, 0, doc]);
  lookups.starts.set([2, 3, 5, 6]);
  lookups.ends.set([3, 5, 6, bytes.length]);
  overlay.readEntityIds(bytes, lookups, 4);
  expect([...lookups.entities]).toEqual([
    overlay.entityId(doc, 'a'),
    overlay.entityId(doc, 'ü'),
    overlay.entityId(0, 'u'),
    0,
  ]);
  expect(overlay.nameIdOfBytes(Buffer.from('xqy'), 1, 2)).toBe(overlay.nameId('q'));
  expect(overlay.nameIdOfBytes(Buffer.from('never'), 0, 5)).toBe(-1);
});

test('long lists, hashed ones, are filtered and go on into what was added', () => {
  const stored = Array.from({ length: 500 }, (_, i) => keyOf(`doc:a#r@user:u${i}`));
  const changes = [
    ...stored.filter((_, i) => i % 3 === 0).map((tuple) => ({ op: 'delete' as const, tuple })),
    ...Array.from({ length: 100 }, (_, i): TupleChange => {
      return { op: 'insert', tuple: keyOf(`doc:a#r@user:v${i}`) };
    }),
    { op: 'insert' as const, tuple: keyOf('doc:a#r@*') },
  ];
  const overlay = new OverlayReader(indexOf(stored), changes);
  const rebuilt = indexOf(applied(stored, changes));
  const node = overlay.nodeId(overlay.entityId(overlay.nameId('doc'), 'a'), overlay.nameId('r'));
  expect(overlay.userCount(node)).toBe(434);
  expect(overlay.reverseCount(WILDCARD_NODE)).toBe(1);
  for (const size of [1, 7, 64, 1000]) {
    const out = new Uint32Array(size);
    let count = 0;
    for (let cursor = 0; cursor >= 0; cursor = overlay.nextCursor) {
      count += overlay.readUsers(node, cursor, out, 0);
    }
    expect(count).toBe(434);
  }
  expect(overlay.readWord(overlay.usersWord(node), new Uint32Array(433))).toBe(-1);
  expect(overlay.readWord(overlay.usersWord(node), new Uint32Array(434))).toBe(434);
  expect(rebuilt.tupleCount).toBe(434);
});
