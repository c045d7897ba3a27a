import { expect, test } from 'vitest';
import { reachableBytes } from '../../../../test/support/reachable-memory.ts';
import { DynamicTable } from './dynamic-table.ts';
import type { HeaderField } from './header-field.ts';
import { HpackDecoder } from './hpack-decoder.ts';

const pairAt = (table: DynamicTable, age: number): readonly string[] | null => {
  const field = table.field(age);
  return field === null ? null : [field.name, field.value];
};

test('the newest field comes first, and evicted ones are gone', () => {
  const table = new DynamicTable();
  table.resize(100);
  table.add('a', '1');
  table.add('b', '22');
  expect([table.size, pairAt(table, 0), pairAt(table, 1)]).toEqual([69, ['b', '22'], ['a', '1']]);
  table.add('c', '3'.repeat(30));
  expect([table.size, pairAt(table, 0), table.name(1), table.field(1)]).toEqual([
    98,
    ['c', '3'.repeat(30)],
    'b',
    expect.objectContaining({ value: '22' }),
  ]);
  expect([table.field(2), table.name(2)]).toEqual([null, null]);
});

test('a field larger than the table empties it, and one of its size fills it', () => {
  const table = new DynamicTable();
  table.add('a', '1');
  table.add('x', 'y'.repeat(4_064));
  expect([table.size, table.field(0)]).toEqual([0, null]);
  table.add('x', 'y'.repeat(4_063));
  expect([table.size, pairAt(table, 0)]).toEqual([4_096, ['x', 'y'.repeat(4_063)]]);
  table.resize(0);
  table.add('', '');
  expect([table.size, table.field(0)]).toEqual([0, null]);
  table.resize(4_096);
  for (let i = 0; i < 200; i++) table.add('', '');
  expect([table.size, pairAt(table, 127), table.field(128)]).toEqual([4_096, ['', ''], null]);
});

test('texts lie whole across the end of the ring, as it grows and goes round', () => {
  const table = new DynamicTable();
  const sent: [string, string][] = [];
  for (let i = 0; i < 2_000; i++) {
    const pair: [string, string] = [`n${i % 17}`, `${i}é`.repeat(1 + ((i * 7) % 60))];
    table.add(...pair);
    sent.unshift(pair);
    let age = 0;
    for (let size = 0; ; age++) {
      const [name, value] = sent[age] ?? ['', '-'.repeat(5_000)];
      size += name.length + value.length + 32;
      if (size > 4_096) break;
      if (age % 3 === 0) expect(pairAt(table, age)).toEqual([name, value]);
      else expect(table.name(age)).toBe(name);
    }
    expect(table.field(age)).toBeNull();
  }
});

test('a field that is looked up stays one object while there is room for objects', () => {
  const table = new DynamicTable();
  table.add('a', 'x'.repeat(2_000));
  table.add('b', '1');
  const [a, b] = [table.field(1), table.field(0)];
  for (let i = 0; i < 40; i++) table.add(`n${i}`, '');
  expect([table.field(41), table.field(40)]).toEqual([a, b]);
  expect(table.field(40)).toBe(b);
  expect(table.field(41)).toBe(a);
  table.forget();
  expect(table.field(40)).not.toBe(b);
  expect(table.field(40)).toEqual(b);
});

/** RFC 7541 section 6.2.1, with texts shorter than 127. */
function indexed(name: string, value: string): number[] {
  return [0x40, name.length, ...Buffer.from(name), value.length, ...Buffer.from(value)];
}

test('a full table of small fields, looked up or not, keeps less than 8 KiB', () => {
  const count = 500;
  const fill = Buffer.from(
    Array.from({ length: 113 }, (_, i) => indexed(`x${String(i).padStart(2, '0')}`, 'v')).flat(),
  );
  const lookUp = Buffer.from(Array.from({ length: 65 }, (_, i) => 0x80 + 62 + i));
  const limits = { bytesMax: 16_384, fieldsMax: 128 };
  const decoders = Array.from({ length: count }, () => new HpackDecoder());
  const before = reachableBytes();
  for (const decoder of decoders) {
    const into: HeaderField[] = [];
    for (let round = 0; round < 3; round++) decoder.decode(fill, into, limits);
    decoder.decode(lookUp, into, limits);
    expect(decoder.tableBytes).toBeGreaterThan(4_000);
  }
  expect((reachableBytes() - before) / count).toBeLessThan(8 * 1_024);
});
