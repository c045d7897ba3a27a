import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCharacter } from './support/any-text.ts';

test('each code point is drawn, and nothing else', () => {
  for (let code = 0; code <= 0x10_ffff; code += code < 0x1_0000 ? 1 : 0xff) {
    const isHalf = code >= 0xd800 && code < 0xe000;
    if (anyCharacter.canShrinkWithoutContext(String.fromCodePoint(code)) === isHalf) {
      expect.fail(`${code.toString(16)} is drawn: ${!isHalf}`);
    }
  }
  for (const text of ['', 'ab', '\u{10ffff}a', 7]) {
    expect(anyCharacter.canShrinkWithoutContext(text)).toBe(false);
  }
  const seen = new Set(fc.sample(anyCharacter, { numRuns: 1_000, seed: 1 }));
  expect(seen.size).toBeGreaterThan(500);
  expect(
    [...seen].filter((text) => text !== String.fromCodePoint(text.codePointAt(0) ?? 0)),
  ).toEqual([]);
});

test('a text becomes smaller by characters that can be read', () => {
  const property = fc.property(
    fc.string({ unit: anyCharacter }),
    (text) => Array.from(text).length < 3,
  );
  const { counterexample } = fc.check(property, { seed: 1 });
  expect(counterexample).toEqual(['   ']);
});
