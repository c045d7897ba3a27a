const LENGTH_DIGITS_MAX = 15;

/** Of a Content-Length: digits alone, and few enough to be a number. */
export function isDigits(text: string): boolean {
  if (text === '' || text.length > LENGTH_DIGITS_MAX) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return true;
}
