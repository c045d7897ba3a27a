import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CopyRowParser } from './copy-row-parser.ts';

/** The binary COPY format, as documented. */
function encode(rows: readonly (readonly (Uint8Array | null)[])[]): Buffer {
  const parts: Buffer[] = [Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)];
  for (const row of rows) {
    const count = Buffer.alloc(2);
    count.writeInt16BE(row.length);
    parts.push(count);
    for (const field of row) {
      const size = Buffer.alloc(4);
      size.writeInt32BE(field === null ? -1 : field.length);
      parts.push(size, Buffer.from(field ?? []));
    }
  }
  parts.push(Buffer.from([0xff, 0xff]));
  return Buffer.concat(parts);
}

function decode(bytes: Buffer, cuts: readonly number[]): (string | null)[][] {
  const rows: (string | null)[][] = [];
  const parser = new CopyRowParser(3, (chunk, bounds) => {
    rows.push(
      [0, 1, 2].map((i) => {
        const start = bounds[2 * i] ?? -1;
        if (start < 0) return null;
        return Buffer.from(chunk.subarray(start, bounds[2 * i + 1])).toString('hex');
      }),
    );
  });
  let from = 0;
  for (const cut of cuts.map((c) => c % (bytes.length + 1)).toSorted((a, b) => a - b)) {
    parser.feed(bytes.subarray(from, cut));
    from = cut;
  }
  parser.feed(bytes.subarray(from));
  parser.finish();
  return rows;
}

describe('CopyRowParser', () => {
  it('finds the same rows wherever the stream is cut', () => {
    const field = fc.option(fc.uint8Array({ maxLength: 9 }));
    const rows = fc.array(fc.array(field, { minLength: 3, maxLength: 3 }), { maxLength: 6 });
    fc.assert(
      fc.property(rows, fc.array(fc.nat(1_000), { maxLength: 12, size: 'max' }), (given, cuts) => {
        const expected = given.map((row) =>
          row.map((value) => (value === null ? null : Buffer.from(value).toString('hex'))),
        );
        expect(decode(encode(given), cuts)).toEqual(expected);
      }),
      { numRuns: 300 * Number(process.env['FUZZ_RUNS'] ?? 1) },
    );
  });

  it('refuses a stream that ends early, another header and another number of columns', () => {
    const whole = encode([[null, null, null]]);
    expect(() => decode(whole.subarray(0, -2), [])).toThrow('trailer');
    expect(() => decode(Buffer.concat([Buffer.from([1]), whole]), [])).toThrow('header');
    expect(() => decode(encode([[null, null]]), [])).toThrow('columns');
  });
});
