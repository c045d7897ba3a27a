const ASCII = /^[\0-\x7F]*$/;
/** Letters whose capital is that of another letter: .NET leaves them as they are. */
const ALONE: ReadonlySet<string> = new Set(['\u0131', '\u017F']);

/**
 * A text with which others are compared without regard to case: each letter by itself, so `ß` is not `SS`.
 * Source: .NET's StringComparison.OrdinalIgnoreCase (OrdinalCasing.Icu.cs), which actions/runner uses.
 */
export function foldCase(text: string): string {
  if (ASCII.test(text)) return text.toUpperCase();
  return Array.from(text, folded).join('');
}

/** Letters whose capital takes several have a small form in common with their title form. */
function folded(letter: string): string {
  if (ALONE.has(letter)) return letter;
  const capital = letter.toUpperCase();
  if (capital.length === letter.length) return capital;
  const small = letter.toLowerCase();
  return small.length === letter.length ? small : letter;
}
