import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  OBJECT_NODE,
  OBJECT_RELATION,
  OBJECT_SETS,
  OBJECT_STRIDE,
  OBJECT_USERS,
} from '../../model/tuple-reader.ts';
import { Dictionary } from './dictionary.ts';
import { ListStore } from './list-store.ts';
import {
  NODE_ENTITY,
  NODE_IS_USER,
  NODE_RELATION,
  NODE_REVERSE,
  NODE_SETS,
  NODE_USERS,
  NodeTable,
} from './node-table.ts';
import { PageAllocator } from './page-allocator.ts';
import { hashPair, hashScratch, loadText } from './text-scratch.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);

function start() {
  const allocator = new PageAllocator(2 ** 27);
  const dictionary = new Dictionary(allocator);
  const lists = new ListStore(allocator);
  const nodes = new NodeTable(dictionary, lists, allocator);
  const entityOf = (text: string): number => {
    const length = loadText(text);
    return dictionary.insert(1, length, hashScratch(length, 1));
  };
  const chainOf = (entity: number): number[] => {
    const chain: number[] = [];
    for (let node = nodes.first(entity); node !== 0; node = nodes.next(node)) chain.push(node);
    return chain.toSorted((a, b) => a - b);
  };
  return { allocator, dictionary, lists, nodes, entityOf, chainOf };
}

test('an entity has the nodes that were made and not freed, few or many', () => {
  const step = fc.tuple(fc.constantFrom('create', 'create', 'destroy'), fc.nat(1), fc.nat(33));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150, size: 'max' }), (steps) => {
      const { nodes, entityOf, chainOf } = start();
      const entities = [entityOf('one'), entityOf('two')] as const;
      const model = [new Map<number, number>(), new Map<number, number>()] as const;
      let live = 0;
      let most = 0;
      for (const [what, which, relation] of steps) {
        const [entity, known] = [entities[which] as number, model[which] as Map<number, number>];
        const node = known.get(relation);
        expect(nodes.nodeOf(entity, relation)).toBe(node ?? 0);
        if (what === 'create' && node === undefined) {
          const made = nodes.create(entity, relation, relation % 2 === 1);
          known.set(relation, made);
          live += 1;
          nodes.setField(made, NODE_USERS, made + 1);
          nodes.setField(made, NODE_SETS, made + 2);
          nodes.setField(made, NODE_REVERSE, made + 3);
        } else if (what === 'destroy' && node !== undefined) {
          known.delete(relation);
          live -= 1;
          expect(nodes.destroy(node)).toBe(known.size === 0);
        }
        most = Math.max(most, live);
        expect(nodes.count).toBe(live);
        expect(chainOf(entity)).toEqual([...known.values()].toSorted((a, b) => a - b));
      }
      // Numbers of nodes are dense: those of freed ones come back.
      expect(nodes.top).toBe(most + 1);
      for (const [i, known] of model.entries()) {
        const entity = entities[i] as number;
        const out = new Uint32Array(known.size * OBJECT_STRIDE);
        const read = nodes.readObject(entity, out);
        if (read >= 0) {
          const found = Array.from({ length: read }, (_, at) => {
            const from = at * OBJECT_STRIDE;
            const node = out[from + OBJECT_NODE] as number;
            expect(out[from + OBJECT_USERS]).toBe(node + 1);
            expect(out[from + OBJECT_SETS]).toBe(node + 2);
            return [out[from + OBJECT_RELATION], node];
          });
          const wanted = [...known].toSorted((a, b) => a[0] - b[0]);
          expect(found.toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0))).toEqual(wanted);
        }
        if (known.size > 0) expect(nodes.readObject(entity, out.subarray(1))).toBe(-1);
        for (const [relation, node] of known) {
          expect(nodes.field(node, NODE_ENTITY)).toBe(entity);
          expect(nodes.field(node, NODE_REVERSE)).toBe(node + 3);
          expect(nodes.field(node, NODE_RELATION)).toBe(
            relation % 2 === 1 ? (relation | NODE_IS_USER) >>> 0 : relation,
          );
        }
      }
    }),
    { numRuns },
  );
});

describe('an entity with more than eight nodes', () => {
  test('keeps them in a list and a hash, until the last one goes', () => {
    const { nodes, entityOf, chainOf, lists } = start();
    const entity = entityOf('many');
    const small = entityOf('small');
    const made: number[] = [];
    const room = new Uint32Array(100 * OBJECT_STRIDE);
    for (let relation = 1; relation <= 60; relation++) {
      made.push(nodes.create(entity, relation, false));
      expect(nodes.table.entries).toBe(relation > 8 ? relation : 0);
      expect(nodes.readObject(entity, room)).toBe(relation > 8 ? -1 : relation);
      expect(chainOf(entity)).toEqual(made);
    }
    for (let relation = 1; relation <= 60; relation++) {
      expect(nodes.nodeOf(entity, relation)).toBe(made[relation - 1]);
      expect([nodes.nodeOf(entity, relation + 60), nodes.nodeOf(small, relation)]).toEqual([0, 0]);
    }
    const { bytes } = lists;
    for (let left = 59; left >= 0; left--) {
      const [node] = made.splice((left * 7) % (left + 1), 1);
      const relation = nodes.field(node as number, NODE_RELATION);
      expect(nodes.destroy(node as number)).toBe(left === 0);
      expect(nodes.nodeOf(entity, relation)).toBe(0);
      expect(chainOf(entity)).toEqual(made);
      expect(nodes.table.entries).toBe(left);
    }
    // Few again: a chain, and the list's memory is free for others.
    for (let i = 0; i < 3; i++) made.push(nodes.create(entity, 100 + i, false));
    expect([nodes.readObject(entity, room), nodes.table.entries]).toEqual([3, 0]);
    expect(chainOf(entity)).toEqual(made.toSorted((a, b) => a - b));
    expect(lists.bytes).toBe(bytes);
  });

  test('tells its nodes from those of another with the same hash', () => {
    const { nodes, entityOf } = start();
    const entities = Array.from({ length: 400 }, (_, i) => entityOf(`entity${i}`));
    const byHash = new Map<number, [number, number]>();
    let met: [number, number, number, number] | undefined;
    for (let i = 0; met === undefined; i++) {
      const entity = entities[i % entities.length] as number;
      const relation = (Math.imul(i, 0x9e37_79b1) >>> 2) | 128;
      const hash = hashPair(entity, relation);
      const other = byHash.get(hash);
      if (other === undefined) byHash.set(hash, [entity, relation]);
      else if (other[0] !== entity && other[1] !== relation) met = [...other, entity, relation];
    }
    const [one, oneRelation, two, twoRelation] = met;
    for (const entity of [one, two]) {
      for (let relation = 1; relation < 12; relation++) nodes.create(entity, relation, false);
    }
    const first = nodes.create(one, oneRelation, false);
    expect([nodes.nodeOf(one, oneRelation), nodes.nodeOf(two, twoRelation)]).toEqual([first, 0]);
    const second = nodes.create(two, twoRelation, false);
    expect([nodes.nodeOf(one, oneRelation), nodes.nodeOf(two, twoRelation)]).toEqual([
      first,
      second,
    ]);
    expect([nodes.nodeOf(one, twoRelation), nodes.nodeOf(two, oneRelation)]).toEqual([0, 0]);
    nodes.destroy(first);
    expect([nodes.nodeOf(one, oneRelation), nodes.nodeOf(two, twoRelation)]).toEqual([0, second]);
  });
});

test('thousands of nodes lie on pages, and a freed one that is not its entity’s is refused', () => {
  const { nodes, entityOf, allocator } = start();
  const made: [number, number][] = [];
  for (let i = 0; i < 9_000; i++) {
    const entity = entityOf(`e${i}`);
    made.push([entity, nodes.create(entity, 3, false)]);
  }
  for (const [i, [entity, node]] of made.entries()) {
    if (nodes.nodeOf(entity, 3) !== node || node !== i + 1) throw new Error(`lost ${i}`);
    if (nodes.field(node, NODE_ENTITY) !== entity) throw new Error(`moved ${i}`);
  }
  expect(nodes.pages.length).toBe(2);
  expect(nodes.words.capacity).toBeGreaterThanOrEqual(9_001 * 6);
  expect(allocator.bytes).toBeGreaterThan(nodes.words.bytes);
  const [, [, node] = [0, 0]] = made;
  nodes.setField(node, NODE_ENTITY, made[5]?.[0] as number);
  expect(() => nodes.destroy(node)).toThrow('chain');
});
