import { NO_ERROR } from './frames/protocol.ts';
import type { Http2RequestStream } from './request-stream.ts';

/** How long a client may go on sending to a call that is answered. */
const LATE_BODY_MS = 1_000;

/**
 * Releases a stream that is answered. What the client still sends is thrown away, so that it does not wait for our window; if it does not
 * stop, the stream is reset without an error, as RFC 9113 §8.1 has it for a complete answer.
 */
export function release(stream: Http2RequestStream): void {
  if (stream.destroyed || stream.readableEnded) return;
  stream.resume();
  const wait = (): void => {
    if (stream.destroyed || stream.readableEnded) return;
    const timer = setTimeout(() => stream.close(NO_ERROR), LATE_BODY_MS);
    stream.once('close', () => clearTimeout(timer));
  };
  if (stream.writableFinished) wait();
  else stream.once('finish', wait);
}
