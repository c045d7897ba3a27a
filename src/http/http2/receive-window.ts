import { UNREAD_BYTES_MAX, WINDOW_BYTES, WINDOW_STEP_BYTES } from './connection-options.ts';
import { WINDOW_UPDATE } from './frames/protocol.ts';
import type { OwnStream } from './own-stream.ts';
import type { SendSide } from './send-side.ts';

/** The window of the whole connection (RFC 9113 section 5.2): what the peer may send, and when it may send more. */
export class ReceiveWindow {
  readonly #sender: SendSide;
  #bytes = WINDOW_BYTES;
  #owedBytes = 0;
  #unreadBytes = 0;

  constructor(sender: SendSide) {
    this.#sender = sender;
  }

  /** Counts data, padding and all; false where it is more than was allowed. */
  consume(bytes: number): boolean {
    this.#bytes -= bytes;
    if (this.#bytes < 0) return false;
    this.#owedBytes += bytes;
    this.#openIfDue();
    return true;
  }

  /** Counts bytes that no reader has taken; below 0: that one has. */
  unread(bytes: number): void {
    this.#unreadBytes += bytes;
    if (bytes < 0) this.#openIfDue();
  }

  /** Counts bytes of a body that the reader of its stream has taken, and opens the window of the stream by steps. */
  consumed(stream: OwnStream, bytes: number): void {
    stream.owedBytes += bytes;
    if (stream.owedBytes < WINDOW_STEP_BYTES || stream.isRemoteEnded || stream.destroyed) return;
    this.#sender.numberFrame(WINDOW_UPDATE, stream.id, stream.owedBytes);
    stream.receiveWindow += stream.owedBytes;
    stream.owedBytes = 0;
  }

  #openIfDue(): void {
    if (this.#owedBytes < WINDOW_STEP_BYTES || this.#unreadBytes > UNREAD_BYTES_MAX) return;
    this.#sender.numberFrame(WINDOW_UPDATE, 0, this.#owedBytes);
    this.#bytes += this.#owedBytes;
    this.#owedBytes = 0;
  }
}
