import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { CHECK_ALLOWED } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { AncestorCache } from '../../src/engine/hot/ancestor-cache.ts';
import { ABSENT_CACHES, type HotCaches } from '../../src/engine/hot/hot-check.ts';
import { HotModel } from '../../src/engine/hot/hot-model.ts';
import {
  MEMBERSHIPS_NONE,
  MembershipCache,
  SLOT_OFFSET,
} from '../../src/engine/hot/membership-cache.ts';
import { ROW_COUNTS, ROW_OPAQUE, ObjectCache } from '../../src/engine/hot/object-cache.ts';
import type { ObjectTable } from '../../src/engine/hot/object-table.ts';
import { READ_AHEAD_MAX, readAhead } from '../../src/engine/hot/read-ahead.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const BYTES = 1 << 16;
const CACHE_LINE_WORDS = 16;
const upwards = { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } };
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {} } },
      folder: { relations: { parent: {}, viewer: { union: [{ this: {} }, upwards] } } },
      doc: {
        relations: { parent: {}, plain: {}, viewer: { union: [{ this: {} }, upwards] } },
      },
    },
  }),
);

/** An array that notes at which positions it is read. */
function watched(words: Uint32Array): { words: Uint32Array; reads: Set<number> } {
  const reads = new Set<number>();
  const proxy = new Proxy(words, {
    get(target, name) {
      if (typeof name === 'string' && /^[0-9]/.test(name)) reads.add(Number(name));
      return Reflect.get(target, name, target) as unknown;
    },
  });
  return { words: proxy, reads };
}
const watchedTable = (table: ObjectTable, words: Uint32Array): ObjectTable =>
  ({
    words,
    setOf: (entity: number, state: number) => table.setOf(entity, state),
    rowOf: (entity: number, state: number) => table.rowOf(entity, state),
  }) as ObjectTable;

/** Documents of each kind that a group of questions may name; folders above most of them. */
function world() {
  const index = new TupleIndex();
  const put = (text: string): void => void index.applyChange('insert', keyOf(text));
  put('folder:root#viewer@user:boss');
  for (let i = 0; i < 12; i++) {
    put(`folder:f${i}#parent@folder:root`);
    put(`doc:d${i}#parent@folder:f${i}`);
    // Before the parent in its line: users, lists and groups.
    for (let k = 0; k < i % 3; k++) put(`doc:d${i}#viewer@user:u${k}`);
    if (i % 4 === 1) for (let k = 0; k < 9; k++) put(`doc:d${i}#viewer@user:m${k}`);
    if (i % 2 === 1) put(`doc:d${i}#viewer@group:g${i}#member`);
    put(`group:g${i}#member@user:u${i}`);
  }
  put('doc:alone#viewer@user:u0');
  put('doc:open#viewer@*');
  put('doc:cold#parent@folder:f0');
  const model = new HotModel(new BoundModel(MODEL, index));
  const memberships = new MembershipCache(index, model, BYTES);
  const objects = new ObjectCache(index, model, memberships, BYTES);
  const chains = new AncestorCache(model, objects, BYTES);
  const docs = [...Array.from({ length: 12 }, (_, i) => `d${i}`), 'alone', 'open'];
  const entityOf = (namespace: string, id: string): number =>
    index.entityId(index.nameId(namespace), id);
  const stateOf = (namespace: string): number =>
    model.single(index.nameId(namespace), index.nameId('viewer'));
  for (const id of docs) {
    const state = model.states[stateOf('doc')];
    if (state !== undefined) objects.rowOf(entityOf('doc', id), state);
  }
  const userOf = (id: string): number => index.entityId(EMPTY_NAME, id);
  for (let i = 0; i < 12; i += 2) memberships.membershipsOf(index.userNodeOf(userOf(`u${i}`)));
  return { index, model, memberships, objects, chains, docs, entityOf, stateOf, userOf };
}
type World = ReturnType<typeof world>;
type Question = readonly [object: number, relation: number, user: number];

/** What is read for a group of questions, by array. */
function readsOf(shard: World, questions: readonly Question[], count = questions.length) {
  const { index, model, memberships, objects, chains } = shard;
  const [lines, above, slots, arena] = [
    watched(objects.lines),
    watched(chains.lines),
    watched(memberships.slots),
    watched(memberships.arena),
  ];
  const caches: HotCaches = {
    memberships: {
      arena: arena.words,
      slots: slots.words,
      homeOf: (node) => memberships.homeOf(node),
      membershipsOf: (node) => memberships.membershipsOf(node),
      summaryOf: (node) => memberships.summaryOf(node),
    },
    objects: { ...ABSENT_CACHES.objects, table: watchedTable(objects.table, lines.words) },
    ancestors: { ...ABSENT_CACHES.ancestors, table: watchedTable(chains.table, above.words) },
  };
  const group = {
    objects: Uint32Array.from(questions, ([object]) => object),
    relations: Int32Array.from(questions, ([, relation]) => relation),
    users: Uint32Array.from(questions, ([, , user]) => user),
  };
  readAhead(index, model, caches, group, count);
  const sorted = (reads: Set<number>): number[] => [...reads].toSorted((a, b) => a - b);
  return {
    lines: lines.reads,
    chains: sorted(above.reads),
    slots: sorted(slots.reads),
    arena: sorted(arena.reads),
  };
}
const unique = (positions: readonly number[]): number[] =>
  [...new Set(positions)].toSorted((a, b) => a - b);

describe('reading ahead', () => {
  const shard = world();
  const { index, memberships, objects, chains, docs, entityOf, stateOf, userOf } = shard;
  const viewer = index.nameId('viewer');
  const parentOf = (id: string): number => entityOf('folder', id.replace('d', 'f'));

  test('reads the lines, the chains above them and the closures of the whole group', () => {
    const asked = docs.map((id, i) => [entityOf('doc', id), viewer, userOf(`u${i % 12}`)] as const);
    const reads = readsOf(shard, asked);
    for (const id of docs) {
      expect([
        id,
        reads.lines.has(objects.table.setOf(entityOf('doc', id), stateOf('doc'))),
      ]).toEqual([id, true]);
    }
    const above = docs
      .filter((id) => /^d\d/.test(id))
      .map((id) => [id, objects.table.rowOf(entityOf('doc', id), stateOf('doc'))] as const)
      .filter(([, at]) => objects.lines[at + ROW_COUNTS] !== ROW_OPAQUE)
      .map(([id]) => chains.table.setOf(parentOf(id), stateOf('folder')));
    expect(above.length).toBeGreaterThan(8);
    expect(reads.chains).toEqual(unique(above.flatMap((at) => [at, at + CACHE_LINE_WORDS])));
    const homes = asked.map(([, , user]) => memberships.homeOf(index.userNodeOf(user)));
    expect(reads.slots).toEqual(unique(homes.flatMap((home) => [home, home + SLOT_OFFSET])));
    const starts = homes
      .map((home) => memberships.slots[home + SLOT_OFFSET] as number)
      .filter((start) => start !== MEMBERSHIPS_NONE && start < memberships.arena.length);
    expect(starts.length).toBeGreaterThan(4);
    expect(reads.arena).toEqual(unique(starts));
  });

  test('reads no chain for what is unknown, plain, alone, opaque or not in a line yet', () => {
    const [d0, u0] = [entityOf('doc', 'd0'), userOf('u0')];
    for (const question of [
      [0, viewer, u0],
      [d0, -1, u0],
      [d0, 0, u0],
      [d0, index.nameId('plain'), u0],
      [entityOf('doc', 'alone'), viewer, u0],
      [entityOf('doc', 'open'), viewer, u0],
      [entityOf('doc', 'cold'), viewer, u0],
    ] as const) {
      expect([question, readsOf(shard, [question]).chains]).toEqual([question, []]);
    }
    expect(readsOf(shard, [[d0, viewer, 0]]).chains).toHaveLength(2);
  });

  test('reads for as many questions as it is told, and for at most 16', () => {
    const asked = Array.from(
      { length: READ_AHEAD_MAX + 2 },
      (_, i) => [entityOf('doc', `d${i % 12}`), viewer, userOf(`u${i % 12}`)] as const,
    );
    const places = (count: number): number =>
      unique(asked.slice(0, count).map(([object]) => objects.table.setOf(object, stateOf('doc'))))
        .length;
    const isRead = (count: number): number => {
      const { lines } = readsOf(shard, asked, count);
      return unique(asked.map(([object]) => objects.table.setOf(object, stateOf('doc')))).filter(
        (at) => lines.has(at),
      ).length;
    };
    for (const count of [0, 1, 3, 12])
      expect([count, isRead(count)]).toEqual([count, places(count)]);
    expect(readsOf(shard, asked, 18)).toEqual(readsOf(shard, asked, READ_AHEAD_MAX));
  });
});

test('an evaluator without caches reads nothing ahead, and answers', () => {
  const index = new TupleIndex();
  index.applyChange('insert', keyOf('doc:d#parent@folder:f'));
  index.applyChange('insert', keyOf('folder:f#viewer@group:g#member'));
  index.applyChange('insert', keyOf('group:g#member@user:u'));
  const cachesOff = ['closures', 'objects', 'chains', 'conditions'] as const;
  const options = { depthMax: 256, membershipBytesMax: BYTES, readAheadBytesMin: 0, cachesOff };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  const ids = [
    index.entityId(index.nameId('doc'), 'd'),
    index.nameId('viewer'),
    index.entityId(EMPTY_NAME, 'u'),
  ] as const;
  const [object, relation, user] = ids;
  for (let round = 0; round < 3; round++) {
    evaluator.readAhead(
      {
        objects: Uint32Array.of(object),
        relations: Int32Array.of(relation),
        users: Uint32Array.of(user),
      },
      1,
    );
    expect(evaluator.checkUser(...ids, 0, 100)).toBe(CHECK_ALLOWED);
  }
});
