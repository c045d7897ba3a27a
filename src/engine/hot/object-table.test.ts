import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ObjectTable } from './object-table.ts';

const SHIFT = 4;
const PAYLOAD = 3;

/** A row of which the payload is known. */
function put(table: ObjectTable, entity: number, state: number, value: number): void {
  const known = table.rowOf(entity, state);
  const at = known < 0 ? table.insert(entity, state) : known;
  table.words[at + PAYLOAD] = value;
}

function get(table: ObjectTable, entity: number, state: number): number | undefined {
  const at = table.rowOf(entity, state);
  return at < 0 ? undefined : table.words[at + PAYLOAD];
}

test('what is found is what was put there last, whatever was forgotten meanwhile', () => {
  const operation = fc.record({
    kind: fc.constantFrom('put', 'put', 'put', 'drop', 'clear'),
    entity: fc.integer({ min: 1, max: 400 }).map((n) => n * 7),
    state: fc.integer({ min: 1, max: 3 }),
    value: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 600, size: 'max' }), (operations) => {
      const table = new ObjectTable(SHIFT, 32 * 1024);
      const model = new Map<string, number>();
      for (const { kind, entity, state, value } of operations) {
        const key = `${entity}:${state}`;
        if (kind === 'clear') {
          table.clear();
          model.clear();
        } else if (kind === 'drop') {
          table.drop(entity, state);
          model.delete(key);
          expect(table.rowOf(entity, state)).toBe(-1);
        } else {
          put(table, entity, state, value);
          model.set(key, value);
          expect(get(table, entity, state)).toBe(value);
        }
      }
      for (let n = 1; n <= 400; n++) {
        for (let state = 1; state <= 3; state++) {
          const found = get(table, n * 7, state);
          if (found !== undefined) expect(found).toBe(model.get(`${n * 7}:${state}`));
        }
      }
    }),
  );
});

test('holds nearly all of as many lines as half of its room, however often they are asked for', () => {
  const table = new ObjectTable(SHIFT, 1024 * 1024);
  const lines = 4096;
  let missed = 0;
  for (let round = 0; round < 4; round++) {
    missed = 0;
    for (let n = 1; n <= lines; n++) {
      if (table.rowOf(n * 9, 1) >= 0) continue;
      missed++;
      put(table, n * 9, 1, n);
    }
  }
  expect(table.capacity).toBe(8192);
  expect(missed / lines).toBeLessThan(0.2);
});

test('grows up to its bytes and no further', () => {
  const table = new ObjectTable(SHIFT, 64 * 1024);
  for (let n = 1; n <= 10_000; n++) put(table, n, 1, n);
  expect(table.bytes).toBeGreaterThan(64 * 1024);
  expect(table.bytes).toBeLessThanOrEqual(64 * 1024 + 64);
});

test('a line that was just put is there, however full the table is', () => {
  const table = new ObjectTable(SHIFT, 4 * 1024);
  const room = table.capacity << SHIFT;
  for (let n = 1; n <= 5000; n++) {
    put(table, n * 3, 1 + (n % 2), n);
    expect(get(table, n * 3, 1 + (n % 2))).toBe(n);
    const at = table.rowOf(n * 3, 1 + (n % 2));
    const first = table.setOf(n * 3, 1 + (n % 2));
    expect(at >= first && at < first + (4 << SHIFT) && at < room + 12).toBe(true);
  }
});

test('what is put and dropped again takes no room, what was not there gives none', () => {
  const table = new ObjectTable(SHIFT, 1024 * 1024);
  const { capacity } = table;
  for (let n = 1; n <= 1000; n++) {
    put(table, 7, 1, n);
    table.drop(7, 1);
  }
  expect(table.capacity).toBe(capacity);
  for (let n = 1; n <= capacity; n++) {
    table.drop(99_999, 1);
    put(table, n, 1, n);
    table.drop(99_999, 1);
  }
  expect(table.capacity).toBeGreaterThan(capacity);
});
