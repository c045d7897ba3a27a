import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RawRequest, RawResponse } from '../exchange/raw-message.ts';
import type { HttpLimits } from '../http-limits.ts';

const ABSOLUTE = /^https?:\/\/([^/?#]*)([^#]*)$/i;
/** Bytes of a large body written at a time: what waits is a slice of it. */
const SLICE_BYTES = 262_144;
const NO_BYTES = new Uint8Array(0);

/** A request of node:http in the form of uWebSockets.js. */
export class NodeRequest implements RawRequest {
  readonly #request: IncomingMessage;
  readonly #path: string;
  readonly #query: string;
  /** Authority of a target in absolute form, which stands in for Host (RFC 9112 §3.2.2). */
  readonly #authority: string | undefined;
  #parameters: readonly string[] = [];
  isNameless = false;

  constructor(request: IncomingMessage) {
    const url = request.url ?? '';
    const absolute = ABSOLUTE.exec(url);
    const target = absolute === null ? url : (absolute[2] ?? '');
    const end = target.indexOf('?');
    const path = end < 0 ? target : target.slice(0, end);
    this.#path = path === '' ? '/' : path;
    this.#query = end < 0 ? '' : target.slice(end + 1);
    this.#authority = absolute?.[1];
    this.#request = request;
  }

  /** Whether the target has a form that is served: a path, absolute, `*`, or any form of CONNECT. */
  get hasTarget(): boolean {
    const { url = '', method } = this.#request;
    return (
      url.startsWith('/') || this.#authority !== undefined || url === '*' || method === 'CONNECT'
    );
  }

  forEach(onHeader: (name: string, value: string) => void): void {
    const { rawHeaders, httpVersionMinor } = this.#request;
    let hasHost = false;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = (rawHeaders[i] ?? '').toLowerCase();
      const value = rawHeaders[i + 1] ?? '';
      if (name !== 'host') onHeader(name, value);
      else {
        hasHost = true;
        onHeader(name, this.#authority ?? value);
      }
    }
    // HTTP/1.0 needs no Host.
    const lacksHost = !hasHost && httpVersionMinor === 0;
    this.isNameless = lacksHost && this.#authority === undefined;
    if (lacksHost) onHeader('host', this.#authority ?? '');
  }

  getUrl(): string {
    return this.#path;
  }

  getCaseSensitiveMethod(): string {
    return this.#request.method ?? '';
  }

  getQuery(): string {
    return this.#query;
  }

  getParameter(index: number): string | undefined {
    return this.#parameters[index];
  }

  /** Sets the parameters of the route that takes the request. */
  setParameters(parameters: readonly string[]): void {
    this.#parameters = parameters;
  }
}

/** Time in ms that an answer waits for the rest of its request at most: less than a drain lasts. */
const HELD_MS_MAX = 10_000;

/** Limits on the rest of a request that is answered before it has come whole, and ends the connection. */
type DiscardLimits = Pick<HttpLimits, 'discardBytesMax' | 'bodyTimeoutMs'>;

/** An answer of node:http in the form of uWebSockets.js. */
export class NodeResponse implements RawResponse {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #limits: DiscardLimits;
  readonly #onStream: () => void;
  #givenBytes = 0;
  #isOver = false;
  #isPaused = false;
  #isReadScheduled = false;
  #read: (() => void) | null = null;
  #onAborted: (() => void) | null = null;
  #held: (() => void) | null = null;

  /** `onStream` is called where an answer of unknown length begins. */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    limits: DiscardLimits,
    onStream: () => void,
  ) {
    this.#request = request;
    this.#response = response;
    this.#limits = limits;
    this.#onStream = onStream;
    response.once('close', () => this.abort());
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  /**
   * Aborts the request: the client has gone, or its message is refused after all. Idempotent; does nothing once the answer is
   * complete.
   */
  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onAborted?.();
  }

  /** Passes on as one the chunks that came in one turn, each of which node:http reads separately. */
  onData(handler: (chunk: Uint8Array, isLast: boolean) => void): void {
    const request = this.#request;
    this.#read = () => {
      this.#isReadScheduled = false;
      while (!this.#isPaused && !this.#isOver) {
        const chunk = request.read() as Buffer | null;
        if (chunk === null) return;
        handler(chunk, false);
      }
    };
    request.on('readable', () => this.#scheduleRead());
    request.once('end', () => {
      if (!this.#isOver) handler(NO_BYTES, true);
    });
  }

  #scheduleRead(): void {
    if (this.#isReadScheduled || this.#read === null) return;
    this.#isReadScheduled = true;
    setImmediate(this.#read);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    // Never within the call: the caller may not be ready yet.
    this.#scheduleRead();
  }

  cork(handler: () => void): void {
    if (!this.#isOver) handler();
  }

  writeStatus(status: string): void {
    const end = status.indexOf(' ');
    this.#response.statusCode = Number(status.slice(0, end));
    this.#response.statusMessage = status.slice(end + 1);
  }

  writeHeader(name: string, value: string): void {
    this.#response.appendHeader(name, value);
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.#isOver) return true;
    if (!this.#response.headersSent) this.#onStream();
    if (chunk.length > 0) return this.#response.write(ownBytes(chunk));
    this.#response.flushHeaders();
    return !this.#response.writableNeedDrain;
  }

  end(body?: string | Uint8Array, closeConnection = false): void {
    const response = this.#response;
    const isClosedByNode = !response.shouldKeepAlive && !closeConnection;
    if (isClosedByNode && !this.#request.complete && !this.#isOver && !response.headersSent) {
      this.#endBehindRequest(body);
      return;
    }
    // HTTP/1.0 keeps a connection only for answers with a length.
    if (!response.headersSent && !hasNoContent(response)) {
      response.setHeader('content-length', Buffer.byteLength(body ?? ''));
    }
    this.#endMessage(closeConnection, body);
  }

  /**
   * Answers after the rest of the request. node:http closes the connection with the answer, which would be lost on a client
   * that still sends.
   */
  #endBehindRequest(body: string | Uint8Array | undefined): void {
    const whole = body === undefined ? undefined : ownBytes(body);
    const request = this.#request;
    this.#read = null;
    let left = this.#limits.discardBytesMax;
    const end = (): void => {
      clearTimeout(timer);
      this.#held = null;
      if (!this.#response.headersSent) this.end(whole, true);
    };
    this.#held = end;
    const timer = setTimeout(end, Math.min(HELD_MS_MAX, this.#limits.bodyTimeoutMs));
    request.removeAllListeners('readable').removeAllListeners('end');
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) end();
    });
    request.once('end', end).once('close', () => clearTimeout(timer));
    request.resume();
  }

  /** Sends an answer that waits for the end of its request. Returns whether there was one. */
  sendHeld(): boolean {
    const held = this.#held;
    held?.();
    return held !== null;
  }

  endWithoutBody(contentLength?: number, closeConnection = false): void {
    if (contentLength !== undefined) this.#response.setHeader('content-length', contentLength);
    this.#endMessage(closeConnection);
  }

  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean] {
    const response = this.#response;
    if (this.#isOver) return [true, false];
    if (!response.headersSent) response.setHeader('content-length', totalBytes);
    let at = 0;
    while (at < chunk.byteLength && !response.writableNeedDrain) {
      const slice = chunk.subarray(at, at + SLICE_BYTES);
      response.write(slice);
      at += slice.byteLength;
    }
    this.#givenBytes += at;
    const hasCapacity = !response.writableNeedDrain && at === chunk.byteLength;
    const isDone = hasCapacity && this.#givenBytes >= totalBytes;
    if (isDone) this.#endMessage(false);
    return [hasCapacity, isDone];
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#response.removeAllListeners('drain');
    this.#response.on('drain', () => {
      if (!this.#isOver) handler(this.#givenBytes);
    });
  }

  close(): void {
    this.#request.socket.destroy();
  }

  getRemoteAddress(): string {
    return this.#request.socket.remoteAddress ?? '';
  }

  #endMessage(closeConnection: boolean, body?: string | Uint8Array): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (closeConnection && !this.#response.headersSent)
      this.#response.setHeader('connection', 'close');
    if (body === undefined) this.#response.end();
    else this.#response.end(ownBytes(body));
  }
}

/** Copies bytes that may wait in the socket: the caller may reuse `bytes` on return. */
function ownBytes(bytes: string | Uint8Array): string | Uint8Array {
  return typeof bytes === 'string' ? bytes : Buffer.from(bytes);
}

/** Whether a status has no body, and no length of one: 204 and 304 (RFC 9110 §8.6). */
function hasNoContent({ statusCode }: ServerResponse): boolean {
  return statusCode === 204 || statusCode === 304;
}
