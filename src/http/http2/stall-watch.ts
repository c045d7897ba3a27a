import type { OwnStream } from './own-stream.ts';
import type { SendSide } from './send-side.ts';

const SWEEPS_PER_STALL = 2;

export type StallWatchOptions = {
  readonly stallMs: number;
  readonly sender: SendSide;
  readonly streams: ReadonlyMap<number, OwnStream>;
  readonly onIncident: (event: string, detail: string) => void;
  /** Called for a stream of whose answer nothing has left for too long. */
  readonly onStream: (stream: OwnStream) => void;
  /** Called when the kernel has passed on nothing of the whole connection. */
  readonly onConnection: () => void;
};

/** Checks twice per `stallMs` whether all that waits for a peer makes progress, for as long as something waits. */
export class StallWatch {
  readonly #options: StallWatchOptions;
  #timer: NodeJS.Timeout | null = null;
  #takenBytesSeen = -1;
  #idleSweeps = 0;

  constructor(options: StallWatchOptions) {
    this.#options = options;
  }

  /** Starts the watch, since something waits. O(1) where it has started. */
  begin(): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#sweep(), this.#options.stallMs / SWEEPS_PER_STALL);
    this.#timer.unref();
  }

  /** Stops the watch. Idempotent. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Checks the connection and its streams. O(open streams). */
  #sweep(): void {
    this.#timer = null;
    const { sender, streams, onIncident, onStream, onConnection } = this.#options;
    const { takenBytes, isBacklogged } = sender;
    this.#idleSweeps = takenBytes === this.#takenBytesSeen ? this.#idleSweeps + 1 : 0;
    this.#takenBytesSeen = takenBytes;
    if (isBacklogged && this.#idleSweeps >= SWEEPS_PER_STALL) {
      onIncident('answer_stalled', 'a peer of HTTP/2 reads nothing');
      onConnection();
      return;
    }
    let isWaiting = isBacklogged;
    for (const stream of streams.values()) {
      if (!stream.isWaiting) stream.sentBytesSeen = -1;
      else if (hasStalled(stream)) {
        onIncident(
          'answer_stalled',
          `nothing was read behind ${stream.sentBytes} bytes of an answer`,
        );
        onStream(stream);
      } else isWaiting = true;
    }
    if (isWaiting) this.begin();
  }
}

function hasStalled(stream: OwnStream): boolean {
  stream.idleSweeps = stream.sentBytes === stream.sentBytesSeen ? stream.idleSweeps + 1 : 0;
  stream.sentBytesSeen = stream.sentBytes;
  return stream.idleSweeps >= SWEEPS_PER_STALL;
}
