const ASCII = /^[\0-\x7F]*$/;
/** Letters whose capital is that of another letter: .NET leaves them as they are. */
const ALONE = /[\u0131\u017F]/;

/**
 * A text with which others are compared without regard to case: each letter by itself, so `ß` is not `SS`. It is as
 * long as the text. Cost: O(characters).
 * Source: .NET's StringComparison.OrdinalIgnoreCase (OrdinalCasing.Icu.cs), which actions/runner uses.
 */
export function foldCase(text: string): string {
  const capitals = text.toUpperCase();
  if (ASCII.test(text)) return capitals;
  // A letter whose capital takes several makes the text longer.
  if (capitals.length === text.length && !ALONE.test(text)) return capitals;
  return text
    .replaceAll(/[a-z]+/g, (letters) => letters.toUpperCase())
    .replaceAll(/[^\0-\x7F]/gu, folded);
}

/** Letters whose capital takes several have a small form in common with their title form. */
function folded(letter: string): string {
  if (ALONE.test(letter)) return letter;
  const capital = letter.toUpperCase();
  if (capital.length === letter.length) return capital;
  const small = letter.toLowerCase();
  return small.length === letter.length ? small : letter;
}
