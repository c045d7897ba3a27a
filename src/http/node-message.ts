import type { IncomingMessage, ServerResponse } from 'node:http';
import { HTTP_LIMITS_DEFAULT } from './http-limits.ts';
import type { RawRequest, RawResponse } from './raw-message.ts';

/** A request of node:http in the form of uWebSockets.js. */
export class NodeRequest implements RawRequest {
  readonly path: string;
  readonly #query: string;
  readonly #request: IncomingMessage;
  readonly #parameters: readonly string[];
  /** Of a target in absolute form, which stands in for Host (RFC 9112 §3.2.2). */
  readonly #authority: string | undefined;

  constructor(request: IncomingMessage, parameters: readonly string[] = []) {
    const absolute = /^https?:\/\/([^/?#]*)([^#]*)$/i.exec(request.url ?? '');
    const target = absolute === null ? (request.url ?? '') : (absolute[2] ?? '');
    const end = target.indexOf('?');
    const path = end < 0 ? target : target.slice(0, end);
    this.path = path === '' ? '/' : path;
    this.#query = end < 0 ? '' : target.slice(end + 1);
    this.#authority = absolute?.[1];
    this.#request = request;
    this.#parameters = parameters;
  }

  withParameters(parameters: readonly string[]): NodeRequest {
    return new NodeRequest(this.#request, parameters);
  }

  getHeader(lowerCaseName: string): string {
    let found = '';
    this.forEach((name, value) => {
      if (name === lowerCaseName && found === '') found = value;
    });
    return found;
  }

  forEach(onHeader: (name: string, value: string) => void): void {
    const { rawHeaders } = this.#request;
    let hasHost = false;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = (rawHeaders[i] ?? '').toLowerCase();
      const isHost = name === 'host';
      hasHost ||= isHost;
      onHeader(
        name,
        isHost ? (this.#authority ?? rawHeaders[i + 1] ?? '') : (rawHeaders[i + 1] ?? ''),
      );
    }
    // HTTP/1.0 has none.
    if (!hasHost && this.#request.httpVersion === '1.0') onHeader('host', this.#authority ?? '');
  }

  getUrl(): string {
    return this.path;
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
}

/** How long a client may take nothing of an answer that is complete. */
const STALL_MS = HTTP_LIMITS_DEFAULT.answerStallMs;

/** An answer of node:http in the form of uWebSockets.js. */
export class NodeResponse implements RawResponse {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #givenBytes = 0;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  onAborted(handler: () => void): void {
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) handler();
    });
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.#request.on('data', (chunk: Buffer) => handler(arrayBufferOf(chunk), false));
    this.#request.once('end', () => handler(new ArrayBuffer(0), true));
  }

  pause(): void {
    this.#request.pause();
  }

  resume(): void {
    this.#request.resume();
  }

  cork(handler: () => void): void {
    handler();
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
    if (chunk.length > 0) return this.#response.write(chunk);
    this.#response.flushHeaders();
    return true;
  }

  end(body?: string | Uint8Array, closeConnection = false): void {
    if (!this.#response.headersSent) {
      // HTTP/1.0 keeps a connection for answers with a length alone.
      this.#response.setHeader('content-length', Buffer.byteLength(body ?? ''));
    }
    this.#end(closeConnection, body);
  }

  endWithoutBody(contentLength?: number, closeConnection = false): void {
    if (contentLength !== undefined) this.#response.setHeader('content-length', contentLength);
    this.#end(closeConnection);
  }

  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean] {
    const response = this.#response;
    if (!response.headersSent) response.setHeader('content-length', totalBytes);
    this.#givenBytes += chunk.byteLength;
    const isDone = this.#givenBytes >= totalBytes;
    const hasRoom = chunk.byteLength === 0 ? !response.writableNeedDrain : response.write(chunk);
    if (isDone) {
      response.end();
      this.#watch();
    }
    return [hasRoom, isDone];
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#response.on('drain', () => handler(this.#givenBytes));
  }

  close(): void {
    this.#request.socket.destroy();
  }

  #end(closeConnection: boolean, body?: string | Uint8Array): void {
    if (closeConnection) this.#response.setHeader('connection', 'close');
    if (body === undefined) this.#response.end();
    else this.#response.end(body);
    this.#watch();
  }

  /** A socket of which nothing leaves is closed: node:http holds what is left of its answer. */
  #watch(): void {
    const { socket } = this.#request;
    if (socket.writableLength === 0) return;
    const destroy = (): void => void socket.destroy();
    socket.setTimeout(STALL_MS, destroy);
    this.#response.once('finish', () => {
      socket.off('timeout', destroy);
      socket.setTimeout(0);
    });
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return arrayBufferOf(Buffer.from(this.#request.socket.remoteAddress ?? ''));
  }
}

function arrayBufferOf(chunk: Buffer): ArrayBuffer {
  const copy = new ArrayBuffer(chunk.byteLength);
  new Uint8Array(copy).set(chunk);
  return copy;
}
