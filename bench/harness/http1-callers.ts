import { connect, type Socket } from 'node:net';
import type { Http2Questions } from './http2-connection.ts';

const HEAD_END = Buffer.from('\r\n\r\n');

type Connection = {
  readonly socket: Socket;
  /** When the request under way was due; undefined of a free one. */
  askedMs: number | undefined;
  head: Buffer;
  /** Bytes of the body that are to come; -1 while the head comes. */
  left: number;
};

/**
 * Connections of HTTP/1.1 of a load generator, one request at a time on each, without an HTTP client between, so that the
 * generator takes little of the machine. Bodies of answers are counted and not kept.
 */
export class Http1Callers {
  readonly #requests: readonly Buffer[];
  readonly #onAnswer: (askedMs: number) => void;
  readonly #onProblem: (problem: string) => void;
  readonly #connections: readonly Connection[];
  readonly #free: Connection[];
  readonly #waiting: number[] = [];
  #next = 0;
  #open = 0;

  constructor(
    port: number,
    count: number,
    { path, headers, bodies }: Http2Questions,
    onAnswer: (askedMs: number) => void,
    onProblem: (problem: string) => void,
  ) {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${fields.join('')}content-length: `;
    this.#requests = bodies.map((body) =>
      Buffer.concat([Buffer.from(`${head}${body.length}\r\n\r\n`), body]),
    );
    this.#onAnswer = onAnswer;
    this.#onProblem = onProblem;
    this.#connections = Array.from({ length: count }, () => this.#connect(port));
    this.#free = [...this.#connections];
  }

  /** Requests that are under way or wait for a connection. */
  get openCount(): number {
    return this.#open;
  }

  /** Sends the next request on a free connection, or once there is one; `askedMs` comes back with its answer. */
  ask(askedMs: number): void {
    this.#open += 1;
    const connection = this.#free.pop();
    if (connection === undefined) this.#waiting.push(askedMs);
    else this.#send(connection, askedMs);
  }

  close(): void {
    for (const { socket } of this.#connections) socket.destroy();
  }

  #connect(port: number): Connection {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const connection = { socket, askedMs: undefined, head: Buffer.alloc(0), left: -1 };
    socket.on('data', (chunk: Buffer) => this.#read(connection, chunk));
    socket.on('error', (error) => this.#onProblem(error.message));
    socket.on('end', () => this.#onProblem('a connection was closed'));
    return connection;
  }

  #send(connection: Connection, askedMs: number): void {
    connection.askedMs = askedMs;
    connection.socket.write(this.#requests[this.#next++ % this.#requests.length] as Buffer);
  }

  #read(connection: Connection, chunk: Buffer): void {
    if (connection.left < 0) {
      const head = connection.head.length === 0 ? chunk : Buffer.concat([connection.head, chunk]);
      connection.head = head;
      const end = head.indexOf(HEAD_END);
      if (end < 0) return;
      const text = head.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
      if (length === undefined || !text.startsWith('HTTP/1.1 200'))
        this.#onProblem(head.toString());
      connection.left = Number(length) - (head.length - end - HEAD_END.length);
      connection.head = Buffer.alloc(0);
    } else connection.left -= chunk.length;
    const { askedMs } = connection;
    if (connection.left > 0 || askedMs === undefined) return;
    connection.left = -1;
    connection.askedMs = undefined;
    this.#open -= 1;
    this.#free.push(connection);
    const due = this.#waiting.shift();
    if (due !== undefined) this.#send(this.#free.pop() as Connection, due);
    this.#onAnswer(askedMs);
  }
}
