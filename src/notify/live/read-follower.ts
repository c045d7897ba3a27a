import { encodeSseEvent } from '../../http/exchange/sse-event.ts';
import type { ReadMark, ReadNews } from '../model/notification-store.ts';

/** A stream, as far as marks are about it. */
export interface ReadingStream {
  readonly isOpen: boolean;
  readonly isCatchingUp: boolean;
  readonly position: number;
  /** The newest mark that its client knows of; undefined until it was greeted. */
  reads: number | undefined;
  send(frame: string): unknown;
}

export type ReadFollowerOptions<Stream extends ReadingStream> = {
  /** The open streams of one user. */
  readonly streams: ReadonlySet<Stream>;
  /** The marks after one; undefined once nobody waits for them. Never rejects. */
  readonly read: (after: number) => Promise<ReadNews | undefined>;
  /** The user's stream goes up to this sequence. */
  readonly onHead: (sequence: number) => void;
  readonly onSent: () => void;
};

/**
 * Brings what a user marks as read to the user's open streams, in the order of the marks. A stream hears of a mark once it stands
 * at or above what was stored when the mark was read, so that its client has seen all that the mark is about.
 *
 * Invariants: I1 a stream's `reads` grows mark by mark, without gaps; I2 when nothing is heard of any more and the store answers,
 * every open stream knows the newest mark. (test/notify/reads.pg.test.ts)
 */
export class ReadFollower<Stream extends ReadingStream> {
  readonly #options: ReadFollowerOptions<Stream>;
  #newest = 0;
  #isReading = false;

  constructor(options: ReadFollowerOptions<Stream>) {
    this.#options = options;
  }

  /** Somebody made this mark. */
  heardOf(mark: number): void {
    this.#newest = Math.max(this.#newest, mark);
    this.look();
  }

  /** A stream may have come to where it hears of marks. */
  look(): void {
    if (!this.#isReading && this.#behind() !== undefined) void this.#readOn();
  }

  /** The first mark that a stream that stands at its place has not heard of is after this one. */
  #behind(): number | undefined {
    let lowest: number | undefined;
    for (const { isOpen, isCatchingUp, reads } of this.#options.streams) {
      if (!isOpen || isCatchingUp || reads === undefined || reads >= this.#newest) continue;
      lowest = Math.min(reads, lowest ?? reads);
    }
    return lowest;
  }

  async #readOn(): Promise<void> {
    this.#isReading = true;
    for (let after = this.#behind(); after !== undefined; after = this.#behind()) {
      const heardOf = this.#newest;
      const news = await this.#options.read(after);
      if (news === undefined) break;
      // What was heard of before the read is in it, unless the store was put back to an earlier time.
      const isNewer = this.#newest > heardOf;
      this.#newest = isNewer ? Math.max(this.#newest, news.reads) : news.reads;
      this.#options.onHead(news.head);
      this.#spread(after, news);
    }
    this.#isReading = false;
  }

  /** `news`: what came after the mark `after`. */
  #spread(after: number, news: ReadNews): void {
    const frames = new Map<ReadMark, string>();
    for (const stream of this.#options.streams) {
      const { isOpen, isCatchingUp, reads } = stream;
      // It looks again when it has caught up.
      if (!isOpen || isCatchingUp || reads === undefined || stream.position < news.head) continue;
      // Greeted meanwhile with less than was asked for: the next read is for it.
      if (reads < after) continue;
      for (const mark of news.marks) {
        if (mark.number <= reads) continue;
        const frame = frames.get(mark) ?? readFrame(mark, news);
        frames.set(mark, frame);
        stream.send(frame);
        this.#options.onSent();
      }
      stream.reads = Math.max(reads, news.upTo);
    }
  }
}

/** The wire form of a mark on a stream: no id, since it is not a place to go on from. */
function readFrame({ number, which }: ReadMark, { head, unreadCount }: ReadNews): string {
  const part =
    which === undefined
      ? {}
      : 'ids' in which
        ? { ids: which.ids }
        : { up_to_sequence: which.upToSequence };
  const data = JSON.stringify({ ...part, unread_count: unreadCount, head, reads: number });
  return encodeSseEvent({ event: 'read', data });
}
