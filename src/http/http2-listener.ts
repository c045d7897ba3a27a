import http2 from 'node:http2';
import type {
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Http2Connections, Http2ConnectionsOptions } from './http2-connections.ts';
import {
  REJECTED_STREAMS_MAX,
  RESET_BURST,
  RESET_PER_SECOND,
  SETTINGS_PER_FRAME_MAX,
  WINDOW_BYTES,
} from './http2/connection-options.ts';
import { sendShutdownNotice } from './shutdown-notice.ts';

/** How long to wait for clients that have not taken earlier frames, before they are asked to go. */
const NOTICE_AGAIN_MS = 10;
const SESSION_MEGABYTES_MAX = 64;

/**
 * HTTP/2 without TLS on sockets that somebody else accepted. Bounds streams, header bytes, idle
 * time, resets and memory of each connection; drains with GOAWAY.
 */
export class Http2Listener implements Http2Connections {
  readonly #server: Http2Server;
  /** Open connections and their open streams. */
  readonly #sessions = new Map<ServerHttp2Session, number>();
  readonly #options: Http2ConnectionsOptions;
  #openStreamCount = 0;
  #streamTotal = 0;
  #isDraining = false;
  #onDrained: (() => void) | null = null;

  constructor(options: Http2ConnectionsOptions) {
    this.#options = options;
    const { limits } = options;
    this.#server = http2.createServer({
      maxSessionMemory: SESSION_MEGABYTES_MAX,
      maxSettings: SETTINGS_PER_FRAME_MAX,
      maxSessionRejectedStreams: REJECTED_STREAMS_MAX,
      streamResetBurst: RESET_BURST,
      streamResetRate: RESET_PER_SECOND,
      settings: {
        enablePush: false,
        maxConcurrentStreams: limits.http2StreamsMax,
        maxHeaderListSize: limits.http2HeaderBytesMax,
        initialWindowSize: WINDOW_BYTES,
      },
    });
    this.#server.on('session', (session) => this.#open(session));
    this.#server.on('stream', (stream, headers) => this.#stream(stream, headers));
    this.#server.on('sessionError', (error: Error) =>
      options.onIncident('http2_session', error.message),
    );
  }

  /** The server under it, for a port of its own where the shared port cannot be had. */
  get server(): Http2Server {
    return this.#server;
  }

  /** Adopts a connection whose bytes are still unread. */
  take(socket: Socket): void {
    this.#server.emit('connection', socket);
    socket.resume();
  }

  get connectionCount(): number {
    return this.#sessions.size;
  }

  get openStreamCount(): number {
    return this.#openStreamCount;
  }

  /** Streams of all connections since the start, ended ones too. */
  get streamTotal(): number {
    return this.#streamTotal;
  }

  /**
   * Asks every client to go elsewhere, those that come from now on, too; streams on the way are still served
   * (RFC 9113 section 6.8: a first GOAWAY that refuses nothing, the one that refuses a round trip later).
   */
  beginDrain(): void {
    this.#isDraining = true;
    for (const session of this.#sessions.keys()) this.#askToGo(session);
  }

  /** Refuses new streams; each connection closes when its last stream ends. */
  closeGracefully(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  destroy(): void {
    for (const session of this.#sessions.keys()) session.destroy();
    this.#sessions.clear();
  }

  /** Called when the last open stream has ended while draining. One listener. */
  whenDrained(listener: () => void): void {
    this.#onDrained = listener;
  }

  #open(session: ServerHttp2Session): void {
    this.#sessions.set(session, 0);
    const handshake = setTimeout(() => session.destroy(), this.#options.limits.http2HandshakeMs);
    handshake.unref();
    session.once('remoteSettings', () => clearTimeout(handshake));
    session.setTimeout(this.#options.limits.http2IdleMs, () => {
      // Also fires while a long-lived stream is quiet, which is no reason to end it.
      if (this.#sessions.get(session) === 0) session.close();
    });
    session.on('error', (error: Error) => this.#options.onIncident('http2_session', error.message));
    session.once('close', () => {
      clearTimeout(handshake);
      this.#sessions.delete(session);
    });
    if (this.#isDraining) this.#askToGo(session);
  }

  #askToGo(session: ServerHttp2Session): void {
    if (sendShutdownNotice(session)) return;
    setTimeout(() => this.#askToGo(session), NOTICE_AGAIN_MS).unref();
  }

  #stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { onStream, bodyDeadlines, onIncident } = this.#options;
    const { session } = stream;
    this.#streamTotal += 1;
    this.#count(session, 1);
    stream.once('close', () => {
      this.#count(session, -1);
      if (this.#openStreamCount === 0) this.#onDrained?.();
    });
    // A reset by the client is no error of ours; 'close' and 'aborted' say the same.
    stream.on('error', (error: Error) => onIncident('http2_stream', error.message));
    onStream(stream, headers, bodyDeadlines);
  }

  #count(session: http2.Http2Session | undefined, change: 1 | -1): void {
    this.#openStreamCount += change;
    const known = session as ServerHttp2Session | undefined;
    if (known === undefined) return;
    const count = this.#sessions.get(known);
    if (count !== undefined) this.#sessions.set(known, count + change);
  }
}
