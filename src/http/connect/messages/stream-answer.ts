import type { UnreadAnswer, UnreadAnswers } from '../../exchange/unread-answers.ts';
import { ENHANCE_YOUR_CALM } from '../../http2/frames/protocol.ts';
import type { Http2RequestStream } from '../../http2/request-stream.ts';

/** An answer on its way into a stream of HTTP/2, held in `unread` for as long as it waits for its reader. */
export class StreamAnswer implements UnreadAnswer {
  readonly owner: object | undefined;
  unreadBytes = 0;
  readonly #stream: Http2RequestStream;
  readonly #unread: UnreadAnswers | undefined;

  constructor(
    stream: Http2RequestStream,
    unread: UnreadAnswers | undefined,
    owner: object | undefined,
  ) {
    this.#stream = stream;
    this.#unread = unread;
    this.owner = owner;
  }

  get progress(): number {
    return this.#stream.sentBytes;
  }

  drop(): void {
    this.#stream.close(ENHANCE_YOUR_CALM);
  }

  /** Writes a part of the body; resolves when more may be written, or the stream is over. */
  async write(bytes: Uint8Array): Promise<void> {
    const stream = this.#stream;
    if (bytes.length === 0 || stream.destroyed || stream.write(bytes)) return;
    this.unreadBytes = bytes.length;
    this.#unread?.add(this);
    await drained(stream);
    this.#unread?.remove(this);
  }

  /** Writes the last part of the body and ends the answer. */
  end(bytes: Uint8Array): void {
    const stream = this.#stream;
    stream.end(bytes);
    if (stream.writableFinished || stream.destroyed) return;
    this.unreadBytes = bytes.length;
    this.#unread?.add(this);
    stream.once('finish', () => this.#unread?.remove(this));
    stream.once('close', () => this.#unread?.remove(this));
  }
}

function drained(stream: Http2RequestStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.once('drain', done);
    stream.once('close', done);
  });
}
