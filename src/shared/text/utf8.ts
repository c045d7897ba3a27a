/** A view of a buffer for reading parts of it as text, such as Buffer. */
export interface Utf8View {
  readonly buffer: ArrayBufferLike;
  /** The text of the bytes from `start` to `end`. Invalid UTF-8 reads as U+FFFD. */
  toString(encoding: 'utf8', start: number, end: number): string;
}

type BufferOfNode = {
  from(buffer: ArrayBufferLike, offset: number, length: number): Utf8View;
  byteLength(text: string): number;
};

/**
 * Node's Buffer, which is several times as fast as TextDecoder for short texts; a browser has none.
 */
const { Buffer: nodes } = globalThis as unknown as { readonly Buffer?: BufferOfNode };
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

class DecodedView implements Utf8View {
  readonly buffer: ArrayBufferLike;
  readonly #bytes: Uint8Array;

  constructor(buffer: ArrayBufferLike, offset: number, length: number) {
    this.buffer = buffer;
    this.#bytes = new Uint8Array(buffer, offset, length);
  }

  toString(_encoding: 'utf8', start: number, end: number): string {
    return decoder.decode(this.#bytes.subarray(start, end));
  }
}

/** Views `length` bytes of a buffer from `offset` on, without a copy. */
export const utf8View: (buffer: ArrayBufferLike, offset: number, length: number) => Utf8View =
  nodes === undefined
    ? (buffer, offset, length) => new DecodedView(buffer, offset, length)
    : (buffer, offset, length) => nodes.from(buffer, offset, length);

/** Reads the text of the bytes from `start` to `end`. Invalid UTF-8 reads as U+FFFD. O(length). */
export function utf8Text(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  return utf8View(bytes.buffer, bytes.byteOffset + start, length).toString('utf8', 0, length);
}

/** Counts the bytes of a text in UTF-8, three for an unpaired surrogate. O(length). */
export const utf8Length: (text: string) => number =
  nodes === undefined ? (text) => encoder.encode(text).length : (text) => nodes.byteLength(text);
