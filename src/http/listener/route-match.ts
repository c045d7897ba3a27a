/** A pattern of paths: segments, `:name` for any one, `*` at the end for any rest. */
export class RouteMatch {
  readonly #segments: readonly string[];
  readonly pattern: string;
  /** Order of preference: a fixed segment before a parameter before a rest. */
  readonly rank: number;

  constructor(pattern: string) {
    this.pattern = pattern;
    this.#segments = pattern.split('/');
    this.rank = pattern.endsWith('*') ? 2 : pattern.includes('/:') ? 1 : 0;
  }

  /** Returns the parameters of a path in order, or null when the pattern does not match. O(length). */
  match(path: string): readonly string[] | null {
    const parts = path.split('/');
    const parameters: string[] = [];
    for (const [i, segment] of this.#segments.entries()) {
      const part = parts[i];
      if (segment === '*') return part === undefined ? null : parameters;
      if (part === undefined) return null;
      if (segment.startsWith(':')) parameters.push(part);
      else if (segment !== part) return null;
    }
    return parts.length === this.#segments.length ? parameters : null;
  }
}
