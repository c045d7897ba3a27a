/** Every limit of a listener. Reaching one ends the connection or answers; nothing grows without bound. */
export type HttpLimits = {
  /** Connections open at once on the listener, both protocols; further ones are closed at accept. */
  readonly connectionsMax: number;
  /** Connections whose protocol is not known yet; the oldest one is closed for a new one. */
  readonly sniffingMax: number;
  /** A connection whose first head has not come whole by then is closed, and a kept one whose next head takes that long. */
  readonly sniffTimeoutMs: number;
  /** A request body that has not arrived whole by then is cut. */
  readonly bodyTimeoutMs: number;
  /** Bytes read and thrown away after a body passed its limit, so that the answer can be delivered. */
  readonly discardBytesMax: number;
  /** An HTTP/1.1 connection on which nothing is asked is closed after this long. */
  readonly http1IdleMs: number;
  /** Streams open at once on one HTTP/2 connection. */
  readonly http2StreamsMax: number;
  /** Bytes of the header block of one HTTP/2 request (HTTP/1.1: `HEADER_BYTES_MAX`). */
  readonly http2HeaderBytesMax: number;
  /** An HTTP/2 connection without an open stream is closed after this long. */
  readonly http2IdleMs: number;
  /** An answer whose reader takes nothing for this long, and at most half of it longer, is given up. */
  readonly answerStallMs: number;
  /** An HTTP/2 connection that has not finished its handshake by then is closed. */
  readonly http2HandshakeMs: number;
};

/** Bytes of the request line and headers of one HTTP/1.1 request; more is answered 431. */
export const HEADER_BYTES_MAX = 16_384;
/**
 * Unsent bytes that the kernel holds for a connection of HTTP/1.1, on node:http for one with a stream; without a bound it holds some megabytes for a client that
 * does not read. uWebSockets.js gives one up that lets it write nothing for ten seconds; with less held, one that reads slowly lets it write more often.
 */
export const UNSENT_BYTES = 131_072;

/** What a listener uses for each limit that its options leave out. */
export const HTTP_LIMITS_DEFAULT: HttpLimits = {
  connectionsMax: 16_384,
  sniffingMax: 10_240,
  sniffTimeoutMs: 5_000,
  bodyTimeoutMs: 30_000,
  discardBytesMax: 32 * 1_048_576,
  http1IdleMs: 120_000,
  http2StreamsMax: 256,
  http2HeaderBytesMax: HEADER_BYTES_MAX,
  http2IdleMs: 120_000,
  http2HandshakeMs: 10_000,
  answerStallMs: 60_000,
};
