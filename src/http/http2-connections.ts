import type { Socket } from 'node:net';
import type { BodyBudget } from './body-budget.ts';
import type { BodyDeadlines } from './body-deadlines.ts';
import type { HttpLimits } from './http-limits.ts';
import type { Http2Headers, Http2RequestStream } from './http2/request-stream.ts';

/** Takes one HTTP/2 request; `bodyDeadlines` cuts bodies that it expects whole. */
export type Http2StreamHandler = (
  stream: Http2RequestStream,
  headers: Http2Headers,
  bodyDeadlines: BodyDeadlines,
) => void;

export type Http2ConnectionsOptions = {
  readonly onStream: Http2StreamHandler;
  readonly limits: HttpLimits;
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly onIncident: (event: string, detail: string) => void;
};

/** HTTP/2 without TLS on sockets that somebody else accepted. */
export interface Http2Connections {
  /** Adopts a connection whose bytes are still unread. */
  take(socket: Socket): void;
  readonly connectionCount: number;
  readonly openStreamCount: number;
  /** Streams of all connections since the start, ended ones too. */
  readonly streamTotal: number;
  /**
   * Asks every client to go elsewhere, those that come from now on, too; streams on the way are still served
   * (RFC 9113 section 6.8: a first GOAWAY that refuses nothing, the one that refuses a round trip later).
   */
  beginDrain(): void;
  /** Refuses new streams; each connection closes when its last stream ends. */
  closeGracefully(): void;
  destroy(): void;
  /** Called when the last open stream has ended while draining. One listener. */
  whenDrained(listener: () => void): void;
}
