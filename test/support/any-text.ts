import fc from 'fast-check';

/*
 * The unit 'binary' of fast-check is a table of all code points, and each process that asks for it takes a second to
 * make it. This one draws the same characters, and needs no table.
 */

const SURROGATES_FROM = 0xd800;
const SURROGATES = 0x800;
const CODE_POINTS = 0x11_0000 - SURROGATES;
/** Small numbers are drawn more often: those that can be read come first. */
const [READABLE_FROM, READABLE] = [0x20, 0x5f];

function characterOf(drawn: number): string {
  if (drawn < READABLE) return String.fromCodePoint(drawn + READABLE_FROM);
  if (drawn < READABLE + READABLE_FROM) return String.fromCodePoint(drawn - READABLE);
  return String.fromCodePoint(drawn < SURROGATES_FROM ? drawn : drawn + SURROGATES);
}

function drawnOf(character: unknown): number {
  const code = typeof character === 'string' ? (character.codePointAt(0) ?? -1) : -1;
  const isHalf = code >= SURROGATES_FROM && code < SURROGATES_FROM + SURROGATES;
  if (code < 0 || isHalf || character !== String.fromCodePoint(code)) {
    throw new Error('not one character');
  }
  if (code < READABLE_FROM) return code + READABLE;
  if (code < READABLE_FROM + READABLE) return code - READABLE_FROM;
  return code < SURROGATES_FROM ? code : code - SURROGATES;
}

/** Any code point but halves of pairs: the `unit` of texts that may hold everything. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: CODE_POINTS - 1 })
  .map(characterOf, drawnOf);
