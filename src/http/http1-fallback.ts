import http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HeaderFields } from './header-fields.ts';
import { HEADER_BYTES_MAX, type HttpLimits } from './http-limits.ts';
import { NodeRequest, NodeResponse } from './node-message.ts';
import type { RawResponse } from './raw-message.ts';
import { refusedMessageBody } from './refused-message.ts';

export type Http1FallbackOptions = {
  readonly limits: HttpLimits;
  readonly fields: HeaderFields;
  /** Takes a request whose fields were read. */
  readonly take: (res: RawResponse, request: NodeRequest) => void;
  readonly onIncident: (event: string, detail: string) => void;
};

type Connection = {
  /** Requests that came behind one that is not answered yet, in order. */
  readonly waiting: (() => void)[];
  isBusy: boolean;
  /** Nothing more is answered. */
  isRefused: boolean;
  /** Fires when no request has begun for the time that uWebSockets.js allows as well. */
  readonly idle: NodeJS.Timeout;
};

const IDLE_MS = 10_000;
/** Further ones end the connection. */
const PIPELINED_MAX = 100;

/**
 * HTTP/1 on node:http, for connections that begin with anything but a plain request: HTTP/1.0, targets in absolute
 * form, several requests at once, which are answered one after another, and what is malformed, which is answered 400. Slower by
 * a multiple than uWebSockets.js, which takes all others.
 */
export class Http1Fallback {
  readonly #options: Http1FallbackOptions;
  readonly #server: http.Server;
  readonly #connections = new Map<Socket, Connection>();

  constructor(options: Http1FallbackOptions) {
    this.#options = options;
    this.#server = http.createServer(
      { maxHeaderSize: HEADER_BYTES_MAX, requireHostHeader: true, insecureHTTPParser: false },
      (request, response) => this.#arrived(request, response),
    );
    // Whoever asks for a tunnel is told that there is none.
    this.#server.on('connect', (_request, socket: Socket) => refuseRaw(socket, 405));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      // The answer to the message before it is on its way, and ends the connection.
      if (this.#connections.get(socket)?.isRefused === true) return;
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
      else refuseRaw(socket, error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400);
    });
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Takes over a connection whose bytes are still unread. */
  take(socket: Socket): void {
    const idle = setTimeout(() => {
      if (!connection.isBusy) socket.destroy();
    }, IDLE_MS);
    idle.unref();
    const connection: Connection = { waiting: [], isBusy: false, isRefused: false, idle };
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      clearTimeout(idle);
      this.#connections.delete(socket);
    });
    this.#server.emit('connection', socket);
    socket.resume();
  }

  /** Closes connections on which nothing is asked. */
  closeIdle(): void {
    for (const [socket, { isBusy }] of this.#connections) if (!isBusy) socket.destroy();
  }

  destroy(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #arrived(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined || connection.isRefused) return;
    if (connection.waiting.length >= PIPELINED_MAX) {
      this.#options.onIncident(
        'pipelining_limit',
        `${PIPELINED_MAX} requests wait on a connection`,
      );
      request.socket.destroy();
      return;
    }
    const begin = (): void => {
      connection.isBusy = true;
      response.once('close', () => this.#next(request.socket, connection));
      this.#begin(request, response, connection);
    };
    if (connection.isBusy) connection.waiting.push(begin);
    else begin();
  }

  #begin(request: IncomingMessage, response: ServerResponse, connection: Connection): void {
    const raw = new NodeRequest(request);
    const isKnown = request.httpVersion === '1.1' || request.httpVersion === '1.0';
    const problem = isKnown ? this.#options.fields.read(raw) : 'the version of HTTP is another one';
    if (problem === '') {
      this.#options.take(new NodeResponse(request, response), raw);
      return;
    }
    const type = 'application/json';
    connection.isRefused = true;
    response.writeHead(isKnown ? 400 : 505, { 'content-type': type, connection: 'close' });
    // What is behind it is not looked at.
    response.end(refusedMessageBody(problem), () => request.socket.destroy());
  }

  #next(socket: Socket, connection: Connection): void {
    connection.isBusy = false;
    if (socket.destroyed || connection.isRefused) return;
    connection.idle.refresh();
    connection.waiting.shift()?.();
  }
}

function refuseRaw(socket: Socket, statusCode: 400 | 405 | 431): void {
  const body = refusedMessageBody(http.STATUS_CODES[statusCode] ?? '');
  socket.end(
    `HTTP/1.1 ${statusCode} ${http.STATUS_CODES[statusCode] ?? ''}\r\ncontent-type: application/json\r\n` +
      `connection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
