import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { byLength } from '../../../../test/support/test-length.ts';
import type { HeaderField } from './header-field.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { encodeHead } from './hpack-encoder.ts';
import { STATIC_TABLE } from './static-table.ts';

const LIMITS = { bytesMax: 1_000_000, fieldsMax: 1_000 };
type Pair = readonly [name: string, value: string];

function decoded(decoder: HpackDecoder, block: Uint8Array): Pair[] | null {
  const fields: HeaderField[] = [];
  if (decoder.decode(block, fields, LIMITS) < 0) return null;
  return fields.map(({ name, value }) => [name, value]);
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

const FIRST: readonly Pair[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
];
const SECOND: readonly Pair[] = [...FIRST, ['cache-control', 'no-cache']];
const THIRD: readonly Pair[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
];
const COOKIE = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const ANSWERS: readonly (readonly Pair[])[] = [
  [
    [':status', '302'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ],
  [
    [':status', '307'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ],
  [
    [':status', '200'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
    ['location', 'https://www.example.com'],
    ['content-encoding', 'gzip'],
    ['set-cookie', COOKIE],
  ],
];

/* RFC 7541 appendix C: blocks of one connection in order, what they say, and the size of the table behind each. */
describe('RFC 7541 appendix C', () => {
  test.each([
    [
      'C.2.1',
      '400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572',
      [['custom-key', 'custom-header']],
      55,
    ],
    ['C.2.2', '040c 2f73 616d 706c 652f 7061 7468', [[':path', '/sample/path']], 0],
    ['C.2.3', '1008 7061 7373 776f 7264 0673 6563 7265 74', [['password', 'secret']], 0],
    ['C.2.4', '82', [[':method', 'GET']], 0],
  ])('%s', (_name, hex, fields, tableBytes) => {
    const decoder = new HpackDecoder();
    expect(decoded(decoder, bytes(hex))).toEqual(fields);
    expect(decoder.tableBytes).toBe(tableBytes);
  });

  test.each([
    [
      'C.3',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
    ],
    [
      'C.4',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ],
  ])('%s', (_name, blocks) => {
    const decoder = new HpackDecoder();
    const sizes = blocks.map((hex, i) => {
      expect(decoded(decoder, bytes(hex))).toEqual([FIRST, SECOND, THIRD][i]);
      return decoder.tableBytes;
    });
    expect(sizes).toEqual([57, 110, 164]);
  });

  test.each([
    [
      'C.5',
      [
        '4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '4803 3330 37c1 c0bf',
        '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
      ],
    ],
    [
      'C.6',
      [
        '4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
        '4883 640e ffc1 c0bf',
        '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
      ],
    ],
  ])('%s, with a table of 256 bytes', (_name, blocks) => {
    const decoder = new HpackDecoder();
    const sizes = blocks.map((hex, i) => {
      const resize = i === 0 ? [0x3f, 0xe1, 0x01] : [];
      expect(decoded(decoder, Buffer.from([...resize, ...bytes(hex)]))).toEqual(ANSWERS[i]);
      return decoder.tableBytes;
    });
    expect(sizes).toEqual([222, 222, 215]);
  });
});

/** The plainest encoder there can be, with a table kept in an array; what it chooses comes from outside. */
class ModelEncoder {
  readonly table: Pair[] = [];
  sizeMax = 4_096;

  get size(): number {
    return this.table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  }

  resize(size: number): number[] {
    this.sizeMax = size;
    this.#evict(size);
    return integer(size, 5, 0x20);
  }

  field([name, value]: Pair, choice: number): number[] {
    const all = [...STATIC_TABLE, ...this.table];
    const whole = all.findIndex((one) => one[0] === name && one[1] === value) + 1;
    if (whole > 0 && choice % 4 !== 0) return integer(whole, 7, 0x80);
    const isIndexed = choice % 2 === 0;
    const named = choice % 3 === 0 ? 0 : all.findIndex((one) => one[0] === name) + 1;
    const prefix = choice % 5 === 0 ? 0x10 : 0x00;
    const head = isIndexed ? integer(named, 6, 0x40) : integer(named, 4, prefix);
    if (isIndexed) this.#add([name, value]);
    return [...head, ...(named === 0 ? text(name) : []), ...text(value)];
  }

  #add(pair: Pair): void {
    const size = pair[0].length + pair[1].length + 32;
    this.#evict(this.sizeMax - size);
    if (size <= this.sizeMax) this.table.unshift(pair);
  }

  #evict(size: number): void {
    while (this.table.length > 0 && this.size > size) this.table.pop();
  }
}

function integer(value: number, bits: number, prefix: number): number[] {
  const most = 2 ** bits - 1;
  if (value < most) return [prefix | value];
  const out = [prefix | most];
  for (let rest = value - most; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...out, rest];
    out.push((rest % 128) | 0x80);
  }
}

function text(value: string): number[] {
  return [...integer(value.length, 7, 0), ...Buffer.from(value, 'latin1')];
}

const name = fc.constantFrom(
  ':path',
  'te',
  'x-a',
  'x-b',
  'authorization',
  'grpc-timeout',
  'content-type',
);
const value = fc.oneof(
  fc.constantFrom('', '/', 'application/grpc', 'trailers'),
  fc.string({ unit: 'binary-ascii', maxLength: 40 }),
  fc.integer({ min: 1, max: 5_000 }).map((length) => 'x'.repeat(length)),
);
const field = fc.record({ pair: fc.tuple(name, value), choice: fc.nat(59) });
const sent = fc.array(
  fc.record({
    size: fc.option(fc.integer({ min: 0, max: 4_096 })),
    fields: fc.array(field, { maxLength: 12 }),
  }),
  { maxLength: 12 },
);

test('blocks of any encoder say what it meant, and tables stay the same', () => {
  const report = fc.check(
    fc.property(sent, (blocks) => {
      const encoder = new ModelEncoder();
      const decoder = new HpackDecoder();
      for (const { size, fields } of blocks) {
        const head = size === null ? [] : encoder.resize(size);
        const block = [
          ...head,
          ...fields.flatMap(({ pair, choice }) => encoder.field(pair, choice)),
        ];
        expect(decoded(decoder, Buffer.from(block))).toEqual(fields.map(({ pair }) => pair));
        expect(decoder.tableBytes).toBe(encoder.size);
      }
    }),
    { numRuns: byLength(150, 500) },
  );
  expect(report.failed, `seed ${report.seed}: ${String(report.errorInstance)}`).toBe(false);
});

test('any bytes are decoded or refused, within the limits', () => {
  const report = fc.check(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (blocks) => {
      const decoder = new HpackDecoder();
      for (const block of blocks) {
        const fields: HeaderField[] = [];
        const size = decoder.decode(block, fields, { bytesMax: 300, fieldsMax: 5 });
        expect(fields.length).toBeLessThanOrEqual(6);
        expect(decoder.tableBytes).toBeLessThanOrEqual(4_096);
        if (size < 0) return;
      }
    }),
    { numRuns: byLength(1_500, 5_000) },
  );
  expect(report.failed, `seed ${report.seed}: ${String(report.errorInstance)}`).toBe(false);
});

describe('heads of answers', () => {
  const headOf = (head: Record<string, string | number | string[]>): Pair[] =>
    decoded(new HpackDecoder(), encodeHead(head, false, true).slice()) ?? [];

  test('status first, then fields in order, and the date', () => {
    const head = { 'content-type': 'application/grpc', ':status': 200, 'x-many': ['a', 'b'] };
    expect(headOf(head)).toEqual([
      [':status', '200'],
      ['content-type', 'application/grpc'],
      ['x-many', 'a'],
      ['x-many', 'b'],
      ['date', expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)],
    ]);
    expect(headOf(head)).toEqual(headOf(head));
  });

  test('a status that is in no table, and a long value', () => {
    const long = 'x'.repeat(20_000);
    expect(headOf({ ':status': 429, 'grpc-message': long }).slice(0, 2)).toEqual([
      [':status', '429'],
      ['grpc-message', long],
    ]);
  });

  test('what could end a field is not sent', () => {
    for (const broken of ['a\r\nb', 'a\0', 'ä\u0100']) {
      expect(() => encodeHead({ 'x-a': broken }, false, false)).toThrow(TypeError);
    }
    expect(() => encodeHead({ 'X-A': '1' }, false, false)).toThrow(TypeError);
    expect(() => encodeHead({ 'x-a': 'x'.repeat(70_000) }, false, false)).toThrow(RangeError);
  });
});
