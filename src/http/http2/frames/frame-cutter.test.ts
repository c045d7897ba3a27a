import { expect, test } from 'vitest';
import { FrameCutter } from './frame-cutter.ts';

function frame(type: number, id: number, payload: string): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = 5;
  bytes.writeUInt32BE(id + 2 ** 31, 5);
  bytes.write(payload, 9);
  return bytes;
}

/** Cuts `chunks` into frames. */
function cut(chunks: readonly Buffer[]): string[] {
  const seen: string[] = [];
  const cutter = new FrameCutter();
  const sink = {
    frame: (
      type: number,
      flags: number,
      id: number,
      bytes: Uint8Array,
      from: number,
      to: number,
    ) => {
      seen.push(`${type} ${flags} ${id} ${Buffer.from(bytes.subarray(from, to)).toString()}`);
      return true;
    },
    frameTooLong: () => void seen.push('too long'),
  };
  for (const chunk of chunks) cutter.cut(chunk, 0, sink);
  if (cutter.heldBytes > 0) seen.push('rest');
  return seen;
}

const ALL = Buffer.concat([
  frame(0, 1, 'first'),
  frame(4, 0, ''),
  frame(9, 2 ** 31 - 1, 'x'.repeat(300)),
]);
const WHOLE = ['0 5 1 first', '4 5 0 ', `9 5 ${2 ** 31 - 1} ${'x'.repeat(300)}`];

test('frames in two pieces, split anywhere, and in three', () => {
  for (let at = 0; at <= ALL.length; at++) {
    expect(cut([ALL.subarray(0, at), ALL.subarray(at)])).toEqual(WHOLE);
    const middle = Math.min(at + 7, ALL.length);
    expect(cut([ALL.subarray(0, at), ALL.subarray(at, middle), ALL.subarray(middle)])).toEqual(
      WHOLE,
    );
  }
});

test('frames byte by byte', () => {
  expect(cut([...ALL].map((byte) => Buffer.from([byte])))).toEqual(WHOLE);
});

test('a frame beyond 16,384 bytes is refused by its head, whole or in pieces', () => {
  const head = Buffer.from([0, 0x40, 1, 0, 0, 0, 0, 0, 1]);
  expect(cut([head])).toEqual(['too long']);
  for (let at = 1; at < head.length; at++) {
    expect(cut([head.subarray(0, at), head.subarray(at)])).toContain('too long');
  }
});
