import { connect, type Socket } from 'node:net';

export type RawReply = { readonly status: number; readonly body: Buffer };

/** Takes the answer to one request; undefined when the connection was lost before it. */
export type OnRawReply = (reply: RawReply | undefined) => void;

const HEAD_END = Buffer.from('\r\n\r\n');
const EMPTY = Buffer.alloc(0);

/** The bytes of one POST over HTTP/1.1, made once and sent many times. */
export function requestBytes(
  path: string,
  body: Buffer,
  token: string | undefined,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const extra = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (token !== undefined) extra.push(`authorization: Bearer ${token}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${extra.join('')}content-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/**
 * Keep-alive connections to one service for requests that are bytes already: a fifth of the CPU of a whole HTTP
 * client, which on a small machine is CPU of what it measures. Opened as they are needed; answers must state their
 * length, as the service's do. Requests beyond the connections wait in order.
 */
export class RawPool {
  readonly #port: number;
  readonly #host: string;
  readonly #connectionsMax: number;
  readonly #free: RawConnection[] = [];
  readonly #all = new Set<RawConnection>();
  #waiting: {
    readonly bytes: Buffer;
    readonly onSent: () => void;
    readonly onReply: OnRawReply;
  }[] = [];
  #waitingHead = 0;

  constructor(port: number, connectionsMax: number, host = '127.0.0.1') {
    this.#port = port;
    this.#host = host;
    this.#connectionsMax = connectionsMax;
  }

  /** Sends one request; tells when it got its connection, and then calls back exactly once. */
  post(bytes: Buffer, onSent: () => void, onReply: OnRawReply): void {
    let connection = this.#takeFree();
    if (connection === undefined && this.#all.size < this.#connectionsMax) {
      connection = new RawConnection(this.#port, this.#host);
      this.#all.add(connection);
    }
    if (connection === undefined) this.#waiting.push({ bytes, onSent, onReply });
    else {
      onSent();
      this.#send(connection, bytes, onReply);
    }
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }

  #send(connection: RawConnection, bytes: Buffer, onReply: OnRawReply): void {
    connection.send(bytes, (reply) => {
      if (reply === undefined) this.#all.delete(connection);
      else this.#free.push(connection);
      this.#next();
      onReply(reply);
    });
  }

  /** The service closes those that were idle for long. */
  #takeFree(): RawConnection | undefined {
    for (;;) {
      const connection = this.#free.pop();
      if (connection === undefined || !connection.isLost) return connection;
      this.#all.delete(connection);
    }
  }

  #next(): void {
    const next = this.#waiting[this.#waitingHead];
    if (next === undefined) return;
    this.#waitingHead += 1;
    if (this.#waitingHead === this.#waiting.length) {
      this.#waiting = [];
      this.#waitingHead = 0;
    }
    this.post(next.bytes, next.onSent, next.onReply);
  }
}

class RawConnection {
  readonly #socket: Socket;
  isLost = false;
  #onReply: OnRawReply | null = null;
  #chunks: Buffer[] = [];
  #size = 0;
  /** Where the body begins, and where it ends; 0 while the head is not there. */
  #bodyAt = 0;
  #endAt = 0;
  #status = 0;

  constructor(port: number, host: string) {
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.on('data', (chunk) => this.#received(chunk));
    this.#socket.on('error', () => this.#lost());
    this.#socket.on('close', () => this.#lost());
  }

  send(bytes: Buffer, onReply: OnRawReply): void {
    this.#onReply = onReply;
    this.#socket.write(bytes);
  }

  close(): void {
    this.#onReply = null;
    this.#socket.destroy();
  }

  #received(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#endAt === 0) this.#readHead();
    if (this.#endAt === 0 || this.#size < this.#endAt) return;
    const whole = this.#whole();
    const reply = { status: this.#status, body: whole.subarray(this.#bodyAt, this.#endAt) };
    this.#chunks = [];
    this.#size = 0;
    this.#bodyAt = 0;
    this.#endAt = 0;
    const onReply = this.#onReply;
    this.#onReply = null;
    onReply?.(reply);
  }

  #whole(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] ?? EMPTY) : Buffer.concat(this.#chunks);
  }

  #readHead(): void {
    const whole = this.#whole();
    const end = whole.indexOf(HEAD_END);
    if (end < 0) return;
    const head = whole.toString('latin1', 0, end);
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? '0';
    this.#bodyAt = end + HEAD_END.length;
    this.#endAt = this.#bodyAt + Number(length);
  }

  #lost(): void {
    this.isLost = true;
    const onReply = this.#onReply;
    this.#onReply = null;
    onReply?.(undefined);
  }
}
