/** A text with its lines, which converts offsets into lines and columns. */
export class TextLines {
  /** The text without a byte order mark, with lines that end in \n. */
  readonly text: string;
  readonly #starts: number[] = [0];

  constructor(text: string) {
    this.text = text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
    for (let at = this.text.indexOf('\n'); at !== -1; at = this.text.indexOf('\n', at + 1)) {
      this.#starts.push(at + 1);
    }
  }

  /** Line and column of an offset, both from 1; columns count characters. O(log lines + column). */
  position(at: number): { readonly line: number; readonly column: number } {
    let low = 0;
    let high = this.#starts.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.#starts[middle] as number) <= at) low = middle;
      else high = middle;
    }
    const start = this.#starts[low] as number;
    return { line: low + 1, column: Array.from(this.text.slice(start, at)).length + 1 };
  }
}
