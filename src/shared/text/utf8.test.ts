import { afterEach, describe, expect, test, vi } from 'vitest';

const TEXTS = [
  '',
  'plan',
  'größe',
  '€',
  '😀',
  '\ufeffmark',
  'a\u0000b',
  '\ud800',
  'x\udc00y',
  '\ue000\ud83d\ude00',
];
/** Among them what is no UTF-8: a lone continuation, a cut sequence, a surrogate, an overlong form. */
const BYTES = [
  ...TEXTS.map((text) => new TextEncoder().encode(text)),
  Uint8Array.of(0x80, 0x41),
  Uint8Array.of(0xf0, 0x9f, 0x98),
  Uint8Array.of(0xed, 0xa0, 0x80),
  Uint8Array.of(0xc0, 0xaf, 0xff),
];

/** The module as it is where there is a Buffer, and where there is none. */
async function utf8(hasBuffer: boolean) {
  vi.resetModules();
  if (!hasBuffer) vi.stubGlobal('Buffer', undefined);
  return import('./utf8.ts');
}

afterEach(() => vi.unstubAllGlobals());

describe.each([true, false])('with a Buffer: %s', (hasBuffer) => {
  test('a text has as many bytes as it encodes to', async () => {
    const { utf8Length } = await utf8(hasBuffer);
    expect(TEXTS.map(utf8Length)).toEqual([0, 4, 7, 3, 4, 7, 3, 3, 5, 7]);
  });

  test('parts of a buffer read as a decoder reads them, mark and faults included', async () => {
    const { utf8Text, utf8View } = await utf8(hasBuffer);
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    const wanted = BYTES.map((bytes) => decoder.decode(bytes));
    const framed = (bytes: Uint8Array) => Uint8Array.of(0x7b, ...bytes, 0x7d);
    expect(BYTES.map((bytes) => utf8Text(framed(bytes).subarray(1), 0, bytes.length))).toEqual(
      wanted,
    );
    const viewed = BYTES.map((bytes) => {
      const { buffer, length } = framed(bytes);
      const view = utf8View(buffer, 1, length - 1);
      expect(view.buffer).toBe(buffer);
      return view.toString('utf8', 0, length - 2);
    });
    expect(viewed).toEqual(wanted);
    expect(wanted[5]).toBe('\ufeffmark');
  });
});
