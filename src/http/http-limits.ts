/** Limits of a listener. Reaching one ends the connection or is answered; nothing grows without bound. */
export type HttpLimits = {
  /** Connections open at once on the listener, both protocols; further ones are closed at accept. */
  readonly connectionsMax: number;
  /** Connections whose protocol is not known yet; the oldest one is closed for a new one. */
  readonly sniffingMax: number;
  /**
   * Time in ms in which the first head of a connection must come whole, and the next one of a kept connection; else it is
   * closed.
   */
  readonly sniffTimeoutMs: number;
  /** Time in ms in which a request body must arrive whole; else it is cut. */
  readonly bodyTimeoutMs: number;
  /** Bytes read and thrown away after a body passed its limit, so that the answer can be delivered. */
  readonly discardBytesMax: number;
  /** Time in ms after which an HTTP/1.1 connection without a request is closed. */
  readonly http1IdleMs: number;
  /** Streams open at once on one HTTP/2 connection. */
  readonly http2StreamsMax: number;
  /** Bytes of the header block of one HTTP/2 request (HTTP/1.1: `HEADER_BYTES_MAX`). */
  readonly http2HeaderBytesMax: number;
  /** Time in ms after which an HTTP/2 connection without an open stream is closed. */
  readonly http2IdleMs: number;
  /** Time in ms without progress after which an answer is given up; it may take half as long again. */
  readonly answerStallMs: number;
  /** Time in ms in which an HTTP/2 connection must finish its handshake; else it is closed. */
  readonly http2HandshakeMs: number;
};

/** Bytes of the request line and headers of one HTTP/1.1 request; more is answered 431. */
export const HEADER_BYTES_MAX = 16_384;
/**
 * Unsent bytes that the kernel holds for a connection of HTTP/1.1, on node:http only for one with a stream. Without a bound
 * it holds some megabytes for a client that does not read. uWebSockets.js gives up a connection that lets it write nothing
 * for ten seconds. With less held, a client that reads slowly lets it write more often.
 */
export const UNSENT_BYTES = 131_072;

/** Default of each limit that the options of a listener leave out. */
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
