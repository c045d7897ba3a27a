import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AppError } from '../shared/app-error.ts';
import { IndexLru } from './index-lru.ts';

type Shard = { bytes: number };

function lruOf(bytesMax: number): { lru: IndexLru<Shard>; evicted: string[] } {
  const evicted: string[] = [];
  const lru = new IndexLru<Shard>({ bytesMax, onEvict: (key) => evicted.push(key) });
  return { lru, evicted };
}

test('the least recently used goes first, by bytes', () => {
  const { lru, evicted } = lruOf(100);
  lru.admit('a', { bytes: 40 });
  lru.admit('b', { bytes: 40 });
  lru.get('a');
  lru.admit('c', { bytes: 50 });
  expect(evicted).toEqual(['b']);
  expect(lru.get('b')).toBeUndefined();
  expect(lru.bytes).toBe(90);
});

test('a pinned index stays and counts', () => {
  const { lru, evicted } = lruOf(100);
  lru.admit('a', { bytes: 60 });
  lru.pin('a');
  lru.pin('a');
  lru.admit('b', { bytes: 60 });
  expect(evicted).toEqual([]);
  lru.admit('c', { bytes: 30 });
  expect(evicted).toEqual(['b']);
  lru.unpin('a');
  lru.admit('d', { bytes: 100 });
  expect(lru.get('a')).toBeDefined();
  lru.unpin('a');
  expect(evicted).toEqual(['b', 'c', 'd']);
  expect([lru.size, lru.bytes]).toEqual([1, 60]);
});

test('an index larger than the budget is refused with a typed error', () => {
  const { lru, evicted } = lruOf(100);
  lru.admit('a', { bytes: 40 });
  expect(() => lru.admit('b', { bytes: 101 })).toThrow(AppError);
  expect([evicted, lru.size]).toEqual([[], 1]);
});

test('growth is counted from an eighth on, and evicts others, then itself', () => {
  const { lru, evicted } = lruOf(100);
  const grown = { bytes: 40 };
  lru.admit('a', { bytes: 50 });
  lru.admit('b', grown);
  grown.bytes = 45;
  expect(lru.recount('b')).toBe(true);
  expect(lru.bytes).toBe(90);
  grown.bytes = 60;
  expect(lru.recount('b')).toBe(true);
  expect([lru.bytes, evicted]).toEqual([60, ['a']]);
  grown.bytes = 120;
  lru.pin('b');
  expect(lru.recount('b')).toBe(false);
  expect(lru.get('b')).toBe(grown);
  lru.unpin('b');
  expect([evicted, lru.size, lru.bytes]).toEqual([['a', 'b'], 0, 0]);
});

test('what is held never exceeds the budget but by what is pinned', () => {
  const keyArb = fc.nat(7).map(String);
  const stepArb = fc.tuple(
    fc.constantFrom('admit', 'pin', 'unpin', 'grow', 'drop', 'get'),
    keyArb,
    fc.nat(120),
  );
  fc.assert(
    fc.property(fc.array(stepArb, { maxLength: 200 }), (steps) => {
      const held = new Map<string, Shard>();
      const pins = new Map<string, number>();
      const lru = new IndexLru<Shard>({
        bytesMax: 100,
        onEvict: (key) => {
          expect(pins.get(key) ?? 0).toBe(0);
          held.delete(key);
        },
      });
      for (const [step, key, bytes] of steps) {
        const shard = held.get(key);
        if (step === 'admit' && shard === undefined && bytes <= 100) {
          held.set(key, { bytes });
          lru.admit(key, held.get(key) as Shard);
        } else if (step === 'pin' && lru.pin(key) !== undefined) {
          pins.set(key, (pins.get(key) ?? 0) + 1);
        } else if (step === 'unpin' && (pins.get(key) ?? 0) > 0) {
          pins.set(key, (pins.get(key) as number) - 1);
          lru.unpin(key);
        } else if (step === 'grow' && shard !== undefined) {
          shard.bytes = bytes;
          lru.recount(key);
        } else if (step === 'drop') {
          held.delete(key);
          pins.delete(key);
          lru.drop(key);
        }
        for (const [each, value] of held) expect(lru.get(each)).toBe(value);
        expect(lru.size).toBe(held.size);
      }
    }),
  );
});
