/** An input that a step gives, by its name in any letter case, trimmed; `fallback` for an empty one, too. */
export function inputOf(
  given: Readonly<Record<string, string>>,
  name: string,
  fallback = '',
): string {
  for (const [key, value] of Object.entries(given)) {
    if (key.toLowerCase() === name) return value.trim() === '' ? fallback : value.trim();
  }
  return fallback;
}
