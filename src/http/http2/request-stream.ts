import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import { NO_ERROR } from './frames/protocol.ts';

/**
 * Header fields by lower-case name, with the pseudo ones, joined as node:http2 joins them. They must not be changed: requests
 * may share them.
 */
export type Http2Headers = IncomingHttpHeaders;

type StreamEvent = 'end' | 'close' | 'drain' | 'finish' | 'wantTrailers';

/**
 * A request over HTTP/2 and the way to its answer, by the names of node:http2's streams. Nothing of the body is read before a
 * listener of 'data' is added or `resume` is called.
 */
export interface Http2RequestStream {
  /** The stream is over, or is being given up. */
  readonly destroyed: boolean;
  /** The body was read to its end. */
  readonly readableEnded: boolean;
  /** Bytes of the answer's body that have left. */
  readonly sentBytes: number;
  /** The whole answer has been sent. */
  readonly writableFinished: boolean;
  /**
   * Sends the head of the answer, with `:status` 200 unless it has another. With `waitForTrailers`, 'wantTrailers' is emitted
   * after the body. Errors: throws where a value cannot be sent, or for a second head.
   */
  respond(
    head?: OutgoingHttpHeaders,
    options?: { readonly endStream?: boolean; readonly waitForTrailers?: boolean },
  ): void;
  /** Returns false if no more is to be written before 'drain'. */
  write(chunk: Uint8Array): boolean;
  end(chunk?: Uint8Array | string): unknown;
  sendTrailers(trailers: OutgoingHttpHeaders): void;
  /** Resets the stream with an error code of HTTP/2. */
  close(code?: number): void;
  /** Name of the caller against whose share bytes of the body count that wait for a reader; '' for an unknown caller. */
  bodyOwner: string;
  pause(): unknown;
  resume(): unknown;
  /** A chunk may share the memory of all that was read with it: copy it to keep it beyond its turn of the loop. */
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  on(event: StreamEvent, listener: () => void): unknown;
  once(event: StreamEvent, listener: () => void): unknown;
  off(event: StreamEvent, listener: () => void): unknown;
}

/** Time in ms that a client may go on sending to a call that is answered. */
const LATE_BODY_MS = 1_000;

/**
 * Releases a stream that is answered. What the client still sends is thrown away, so that it does not wait for our window. If
 * it does not stop, the stream is reset without an error, as RFC 9113 §8.1 has it for a complete answer.
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
