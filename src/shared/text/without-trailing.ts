/**
 * A text without the characters `last` (one unit) at its end. O(their count). `replace(/x+$/, '')`
 * searches anew from each x before other characters: a body full of them would take minutes.
 */
export function withoutTrailing(text: string, last: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === last) end -= 1;
  return text.slice(0, end);
}
