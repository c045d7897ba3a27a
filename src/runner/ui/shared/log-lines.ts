/** Of the end of a log, and around the place that a reader is at. */
const TAIL_MAX = 200_000;
const AROUND_MAX = 100_000;
/** So that not every line that comes moves all others. */
const SLACK = 20_000;

/** What stands in a row: a line with its number from 1, or lines that are not here. */
export type LogRow =
  | { readonly kind: 'line'; readonly number: number; readonly text: string }
  | { readonly kind: 'gap'; readonly from: number; readonly to: number };

type LinePart = { readonly first: number; readonly lines: string[] };

/**
 * The lines of one step that are held: parts in order, with gaps between them, each a row of its own. At most
 * about 320,000 lines; beyond that those far from the reader and from the end become a gap again.
 */
export class LogLines {
  #parts: LinePart[] = [];

  /** The highest number of a line. */
  get total(): number {
    return lastOf(this.#parts.at(-1));
  }

  get rowCount(): number {
    let count = 0;
    let next = 1;
    for (const part of this.#parts) {
      count += part.lines.length + (part.first > next ? 1 : 0);
      next = lastOf(part) + 1;
    }
    return count;
  }

  /** Lines that are not held. */
  get missing(): number {
    return this.total - this.#parts.reduce((sum, { lines }) => sum + lines.length, 0);
  }

  /** Adds lines from number `first` on; those that are held stay. `near`: the line where the reader is. */
  add(first: number, lines: readonly string[], near: number = first): void {
    const tail = this.#parts.at(-1);
    if (tail !== undefined && first === lastOf(tail) + 1) {
      for (const line of lines) tail.lines.push(line);
    } else if (lines.length > 0) this.#insert({ first, lines: [...lines] });
    this.#bound(near);
  }

  clear(): void {
    this.#parts = [];
  }

  /** Undefined beyond the last row. O(parts). */
  row(index: number): LogRow | undefined {
    let at = index;
    let next = 1;
    for (const part of this.#parts) {
      if (part.first > next) {
        if (at === 0) return { kind: 'gap', from: next, to: part.first - 1 };
        at -= 1;
      }
      const text = part.lines[at];
      if (text !== undefined) return { kind: 'line', number: part.first + at, text };
      at -= part.lines.length;
      next = lastOf(part) + 1;
    }
    return undefined;
  }

  /** The row of a line; undefined for one that is not held. */
  rowOf(number: number): number | undefined {
    let index = 0;
    let next = 1;
    for (const part of this.#parts) {
      if (part.first > next) index += 1;
      if (number >= part.first && number <= lastOf(part)) return index + number - part.first;
      index += part.lines.length;
      next = lastOf(part) + 1;
    }
    return undefined;
  }

  /** Puts the lines among the parts; where both have a line, that which was here stays. */
  #insert({ first, lines }: LinePart): void {
    const pieces: LinePart[] = [];
    let at = first;
    const end = first + lines.length;
    for (const part of this.#parts) {
      if (part.first > at && at < end) {
        pieces.push({
          first: at,
          lines: lines.slice(at - first, Math.min(part.first, end) - first),
        });
      }
      at = Math.max(at, lastOf(part) + 1);
    }
    if (at < end) pieces.push({ first: at, lines: lines.slice(at - first) });
    const all = [...this.#parts, ...pieces].sort((a, b) => a.first - b.first);
    this.#parts = [];
    for (const part of all) {
      const before = this.#parts.at(-1);
      if (before === undefined || lastOf(before) + 1 < part.first) this.#parts.push(part);
      else for (const line of part.lines) before.lines.push(line);
    }
  }

  #bound(near: number): void {
    const { total } = this;
    if (total - this.missing <= TAIL_MAX + AROUND_MAX + SLACK) return;
    const tail = total - TAIL_MAX + 1;
    const kept: LinePart[] = [];
    const cut = (from: number, to: number): void => {
      for (const { first, lines } of this.#parts) {
        const piece = lines.slice(Math.max(0, from - first), Math.max(0, to + 1 - first));
        if (piece.length > 0) kept.push({ first: Math.max(first, from), lines: piece });
      }
    };
    cut(near - AROUND_MAX / 2, Math.min(near + AROUND_MAX / 2 - 1, tail - 1));
    cut(tail, total);
    this.#parts = [];
    for (const part of kept) this.#insert(part);
  }
}

function lastOf(part: LinePart | undefined): number {
  return part === undefined ? 0 : part.first + part.lines.length - 1;
}
