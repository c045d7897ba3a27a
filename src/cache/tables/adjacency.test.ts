import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EDGE_QUALIFIED } from '../../model/tuple-reader.ts';
import {
  Adjacency,
  FORWARD,
  HASHED_FORWARD_ABOVE,
  HASHED_REVERSE_ABOVE,
  REVERSE,
} from './adjacency.ts';
import { PageAllocator } from './page-allocator.ts';
import { hashPair } from './text-scratch.ts';

const numRuns = 100 * Number(process.env['FUZZ_RUNS'] ?? 1);
const start = (): Adjacency => new Adjacency(new PageAllocator(2 ** 27));

/** One list with its owner, and what it should hold. */
class Listed {
  word = 0;
  readonly members = new Map<number, boolean>();
  readonly #adjacency: Adjacency;
  readonly owner: number;
  readonly side: number;

  constructor(adjacency: Adjacency, owner: number, side: number) {
    this.#adjacency = adjacency;
    this.owner = owner;
    this.side = side;
  }

  add(member: number, qualified = false): void {
    const entry = qualified ? (member | EDGE_QUALIFIED) >>> 0 : member;
    this.word = this.#adjacency.append(this.word, this.owner, entry, this.side);
    this.members.set(member, qualified);
  }

  remove(member: number): void {
    this.word = this.#adjacency.remove(this.word, this.owner, member, this.side);
    this.members.delete(member);
  }

  mark(member: number, qualified: boolean): void {
    const { owner, side } = this;
    this.word = this.#adjacency.setQualified(this.word, owner, member, side, qualified);
    this.members.set(member, qualified);
  }

  edge(member: number): number {
    return this.#adjacency.edge(this.word, this.owner, member, this.side);
  }

  get isHashed(): boolean {
    return this.#adjacency.isHashed(this.word);
  }

  verify(): void {
    const adjacency = this.#adjacency;
    expect(adjacency.count(this.word)).toBe(this.members.size);
    expect(adjacency.isInline(this.word)).toBe(this.members.size <= 1);
    const out = new Uint32Array(this.members.size + 3).fill(77);
    expect(adjacency.copy(this.word, 0, out, 1, this.members.size + 1)).toBe(this.members.size);
    expect([out[0], out.at(-1), out.at(-2)]).toEqual([77, 77, 77]);
    const entries = [...this.members].map(([member, is]) =>
      is ? (member | EDGE_QUALIFIED) >>> 0 : member,
    );
    const sorted = (all: Iterable<number>): number[] => [...all].toSorted((a, b) => a - b);
    expect(sorted(out.slice(1, -2))).toEqual(sorted(entries));
    for (const [member, is] of this.members) expect(this.edge(member)).toBe(is ? 2 : 1);
    if (this.members.size === 1) expect(this.word).toBe(entries[0]);
    if (this.members.size === 0) expect(this.word).toBe(0);
  }
}

type Place = { readonly owner: number; readonly member: number };

/** Members of two owners each whose hashes meet; by the birthday paradox there are some among these. */
function meetings(side: number): [Place, Place][] {
  const byHash = new Map<number, Place>();
  const found: [Place, Place][] = [];
  for (let i = 1; found.length < 2; i++) {
    const place = { owner: 500 + (i % 1000), member: (Math.imul(i, 0x9e37_79b1) >>> 2) | 1024 };
    const hash = hashPair(place.owner | side, place.member);
    const other = byHash.get(hash);
    if (other === undefined) byHash.set(hash, place);
    else if (other.owner !== place.owner && other.member !== place.member)
      found.push([other, place]);
  }
  return found;
}

describe.each([
  ['forward', FORWARD, HASHED_FORWARD_ABOVE],
  ['reverse', REVERSE, HASHED_REVERSE_ABOVE],
])('a %s list', (_name, side, above) => {
  test('is hashed above its size, and no longer below half of it; the hash goes with it', () => {
    const adjacency = start();
    const list = new Listed(adjacency, 5, side);
    for (let n = 1; n <= above + 2; n++) {
      list.add(n + 1000, n % 3 === 0);
      expect(list.isHashed).toBe(n > above);
      expect(adjacency.positions.entries).toBe(n > above ? n : 0);
      if (n < 40 || n >= above) list.verify();
      expect([list.edge(999), list.edge(n + 1001)]).toEqual([0, 0]);
    }
    for (let n = above + 2; n >= 1; n--) {
      list.remove([...list.members.keys()][(above * 7) % n] as number);
      const left = n - 1;
      expect(list.isHashed).toBe(left >= above / 2);
      expect(adjacency.positions.entries).toBe(left >= above / 2 ? left : 0);
      if (left < 40) list.verify();
    }
    expect(list.word).toBe(0);
  });

  test('is what was added and not removed, and its marks', () => {
    const step = fc.tuple(
      fc.constantFrom('add', 'add', 'remove', 'mark'),
      fc.nat(50),
      fc.boolean(),
    );
    const base = fc.constantFrom(0, above - 20, above / 2 - 10);
    fc.assert(
      fc.property(base, fc.array(step, { maxLength: 90, size: 'max' }), (size, steps) => {
        const adjacency = start();
        const list = new Listed(adjacency, 9, side);
        for (let n = 0; n < size; n++) list.add(n + 100);
        if (size === above / 2 - 10) {
          for (let n = size; n < above + 1; n++) list.add(n + 100);
          for (let n = above; n > size + 15; n--) list.remove(n + 100);
        }
        for (const [what, n, qualified] of steps) {
          const member = Math.max(100, size + 80) + n;
          if (!list.members.has(member)) {
            expect(list.edge(member)).toBe(0);
            if (what === 'add') list.add(member, qualified);
          } else if (what === 'mark') list.mark(member, qualified);
          else if (what === 'remove') list.remove(member);
        }
        list.verify();
        for (const member of list.members.keys()) list.remove(member);
        expect([list.word, adjacency.positions.entries]).toEqual([0, 0]);
        // What the lists took is free again: the largest block of the first page is one piece.
        expect(adjacency.lists.bytes).toBeLessThan(10_000);
      }),
      { numRuns },
    );
  });

  test('tells its members from those of another list that have the same hash', () => {
    for (const [one, two] of meetings(side)) {
      const adjacency = start();
      const first = new Listed(adjacency, one.owner, side);
      const second = new Listed(adjacency, two.owner, side);
      const [mine, others] = [one.member, two.member];
      for (let n = 0; n < above + 5; n++) {
        first.add(n + 1);
        if (n < above) second.add(n + 1);
      }
      expect(first.edge(mine)).toBe(0);
      second.add(others, true);
      expect([first.edge(mine), second.edge(others)]).toEqual([0, 2]);
      first.add(mine);
      expect([first.edge(mine), second.edge(others)]).toEqual([1, 2]);
      first.mark(mine, true);
      second.mark(others, false);
      first.verify();
      second.verify();
      second.remove(others);
      // The one list is longer: what it holds behind the end of the other is not there.
      expect([first.edge(mine), second.edge(others)]).toEqual([2, 0]);
      second.add(others);
      first.remove(mine);
      expect([first.edge(mine), second.edge(others)]).toEqual([0, 1]);
      first.verify();
      second.verify();
    }
  });

  test('says no to a change of what it does not hold', () => {
    const adjacency = start();
    for (const size of [1, 2, above, above + 1]) {
      const list = new Listed(adjacency, 3, side);
      for (let n = 0; n < size; n++) list.add(n + 10);
      expect(() => list.remove(9)).toThrow('removed edge');
      if (size > 1) expect(() => list.mark(9, true)).toThrow('marked edge');
    }
  });
});

test('one entry alone may be marked, and is no list', () => {
  const adjacency = start();
  const hashed = new Listed(adjacency, 1, FORWARD);
  for (let n = 0; n < 40; n++) hashed.add(n + 1);
  // A member whose number is the address of another's list.
  const member = hashed.word & 0x3fff_ffff;
  const list = new Listed(adjacency, 2, FORWARD);
  for (const qualified of [true, false]) {
    list.add(member, qualified);
    list.verify();
    list.mark(member, !qualified);
    list.verify();
    expect([list.isHashed, list.edge(member + 1)]).toEqual([false, 0]);
    list.remove(member);
    list.verify();
  }
});

test('what lies around a list is not in it, whatever its number', () => {
  const adjacency = start();
  const lists = Array.from({ length: 12 }, (_, i) => new Listed(adjacency, i + 1, FORWARD));
  for (const [i, list] of lists.entries()) {
    for (let n = 0; n < 2 + (i % 6); n++) list.add(100 + i * 10 + n);
  }
  for (const list of lists) {
    for (let member = 0; member < 300; member++) {
      expect(list.edge(member)).toBe(list.members.has(member) ? 1 : 0);
    }
  }
});

test('lists of thousands are searched as short ones are, and give their room back', () => {
  const adjacency = start();
  const list = new Listed(adjacency, 6, FORWARD);
  for (let n = 1; n <= 5_000; n++) list.add(n, n % 5 === 0);
  for (const member of [1, 5, 2_500, 4_095, 4_096, 5_000]) {
    expect([list.edge(member), list.edge(member + 5_000)]).toEqual([member % 5 === 0 ? 2 : 1, 0]);
    list.mark(member, true);
    expect(list.edge(member)).toBe(2);
  }
  for (let n = 1; n < 5_000; n += 2) list.remove(n);
  for (let n = 1; n <= 5_000; n++) expect(list.edge(n) > 0).toBe(n % 2 === 0);
  for (let n = 2; n <= 5_000; n += 2) list.remove(n);
  const { bytes } = adjacency.lists;
  for (let owner = 1; owner < 5_000; owner++) {
    const pair = new Listed(adjacency, owner, FORWARD);
    pair.add(7);
    pair.add(8);
    pair.remove(7);
    expect(pair.word).toBe(8);
  }
  expect(adjacency.lists.bytes).toBeLessThanOrEqual(bytes);
});

test('lists of other owners and the other side do not meet', () => {
  const adjacency = start();
  const lists = [
    new Listed(adjacency, 1, FORWARD),
    new Listed(adjacency, 1, REVERSE),
    new Listed(adjacency, 2, FORWARD),
    new Listed(adjacency, 2, REVERSE),
  ];
  for (let n = 0; n < 400; n++) for (const [i, list] of lists.entries()) list.add(n * 4 + i + 1);
  for (const list of lists) list.verify();
  for (let n = 0; n < 400; n += 2)
    for (const [i, list] of lists.entries()) list.remove(n * 4 + i + 1);
  for (const list of lists) list.verify();
});

test('entries are copied from any place on, as many as are asked for', () => {
  const adjacency = start();
  for (const size of [0, 1, 2, 3, 33, 300]) {
    const list = new Listed(adjacency, 1, FORWARD);
    for (let n = 0; n < size; n++) list.add(n + 1, n % 2 === 1);
    const all = new Uint32Array(size);
    adjacency.copy(list.word, 0, all, 0, size);
    for (const cursor of [0, 1, 2, size - 1, size, size + 1]) {
      if (cursor < 0) continue;
      for (const limit of [0, 1, 2, size, size + 5]) {
        const out = new Uint32Array(size + 10);
        const copied = adjacency.copy(list.word, cursor, out, 2, limit);
        const wanted = all.slice(cursor, cursor + limit);
        expect(copied).toBe(wanted.length);
        expect([...out]).toEqual([
          0,
          0,
          ...wanted,
          ...Array.from({ length: size + 8 - copied }, () => 0),
        ]);
      }
    }
  }
});
