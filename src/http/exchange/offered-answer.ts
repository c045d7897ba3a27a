import type { RawResponse } from './raw-message.ts';
import type { UnreadAnswer, UnreadAnswers } from './unread-answers.ts';

const NO_BYTES = new Uint8Array(0);

/** An answer of a stated length, offered to the connection as the client takes it: whole, or in parts that follow. */
export class OfferedAnswer implements UnreadAnswer {
  /** Bytes that the client has taken of a whole body. */
  progress = 0;
  /** Bytes of the whole answer. */
  readonly unreadBytes: number;
  readonly #res: RawResponse;
  readonly #onDone: () => void;
  readonly #onCapacity: () => void;
  #unread: UnreadAnswers | null = null;
  #given = 0;
  #part: Uint8Array = NO_BYTES;
  #partStart = 0;

  /** `onDone` is called when the connection has the whole answer, `onCapacity` when nothing of the last part waits. */
  constructor(res: RawResponse, totalBytes: number, onDone: () => void, onCapacity: () => void) {
    this.#res = res;
    this.unreadBytes = totalBytes;
    this.#onDone = onDone;
    this.#onCapacity = onCapacity;
  }

  /** Offers the whole body, after the head. The rest that the client does not take at once counts among `unread`. */
  offerWhole(body: Uint8Array, unread: UnreadAnswers): void {
    const [, isDone] = this.#res.tryEnd(body, this.unreadBytes);
    if (isDone) return this.#onDone();
    this.#part = body;
    this.#unread = unread;
    unread.add(this);
    this.#res.onWritable((offset) => {
      this.progress = offset;
      return this.#offerRest(offset);
    });
  }

  /** Offers the rest of each part as the client takes it; before the head. */
  followParts(): void {
    // Once for all parts.
    this.#res.onWritable((offset) => this.#offerRest(offset));
  }

  /** Offers the next part; all of them together are as long as stated. */
  offerPart(part: Uint8Array): void {
    this.#part = part;
    this.#partStart = this.#given;
    this.#given += part.byteLength;
    this.#res.cork(() => this.#offerRest(this.#partStart));
  }

  /** Stops counting the answer as unread: it is complete, or the client has gone. */
  over(): void {
    this.#unread?.remove(this);
  }

  /** Drops the connection of an answer that is not read (called by UnreadAnswers). */
  drop(): void {
    this.#res.close();
  }

  /** Offers the rest of the part; the client has taken `offset` bytes of the answer. */
  #offerRest(offset: number): boolean {
    const rest = this.#part.subarray(offset - this.#partStart);
    const [hasCapacity, isDone] = this.#res.tryEnd(rest, this.unreadBytes);
    if (isDone) this.#onDone();
    if (isDone || hasCapacity) this.#onCapacity();
    return hasCapacity;
  }
}
