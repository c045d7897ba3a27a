import type { RawResponse } from './raw-message.ts';

/** What an answer needs of its connection. */
export interface Http1Answering {
  /** Sends a head and perhaps a body behind it, which is copied if it must wait. */
  sendHead(head: string, body: string | Uint8Array | undefined): void;
  /** Sends bytes that stay as they are until `isWritable`. */
  sendPart(bytes: Uint8Array): void;
  /** Does nothing wait for the client? */
  readonly isWritable: boolean;
  /** "date: …\r\n" */
  readonly dateField: string;
  /** The field that says how long a connection is kept, with its line end. */
  readonly keptField: string;
  pauseBody(): void;
  resumeBody(): void;
  /** The answer is given whole. */
  answered(response: Http1Response): void;
  drop(): void;
  readonly remoteAddress: string;
}

/** What the request says of its answer. */
export type AnswerForm = {
  readonly isHead: boolean;
  readonly isHttp10: boolean;
  readonly isKept: boolean;
};

/** Offered at a time of a large body: what waits is a slice of it. */
const SLICE_BYTES = 262_144;
const LAST_CHUNK = '0\r\n\r\n';
const NO_CONTENT = /^(?:204|304) /;

/** The answer to one request of HTTP/1 (RFC 9112 §§4, 6, 9). Hot. */
export class Http1Response implements RawResponse {
  readonly #connection: Http1Answering;
  readonly #isHead: boolean;
  readonly #isHttp10: boolean;
  #isKept: boolean;
  #isKeptSaid = false;
  #isClosed = false;
  #head = 'HTTP/1.1 200 OK\r\n';
  #hasLength = true;
  #isHeadSent = false;
  #isChunked = false;
  #givenBytes = 0;
  #onAborted: (() => void) | null = null;
  #onData: ((chunk: Uint8Array, isLast: boolean) => void) | null = null;
  #onWritable: ((offset: number) => boolean) | null = null;

  constructor(connection: Http1Answering, form: AnswerForm) {
    this.#connection = connection;
    this.#isHead = form.isHead;
    this.#isHttp10 = form.isHttp10;
    this.#isKept = form.isKept;
  }

  get isKept(): boolean {
    return this.#isKept;
  }

  get hasBegun(): boolean {
    return this.#isHeadSent;
  }

  get takesBody(): boolean {
    return this.#onData !== null;
  }

  /** A part of the body came. */
  bodyCame(chunk: Uint8Array, isLast: boolean): void {
    this.#onData?.(chunk, isLast);
  }

  /** The client has taken what waited. */
  becameWritable(): void {
    if (!this.#isClosed) this.#onWritable?.(this.#givenBytes);
  }

  /** The client has gone, or the connection is given up. */
  aborted(): void {
    this.#isClosed = true;
    this.#onAborted?.();
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  onData(handler: (chunk: Uint8Array, isLast: boolean) => void): void {
    this.#onData = handler;
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler;
  }

  pause(): void {
    if (!this.#isClosed) this.#connection.pauseBody();
  }

  resume(): void {
    if (!this.#isClosed) this.#connection.resumeBody();
  }

  cork(handler: () => void): void {
    handler();
  }

  writeStatus(status: string): void {
    this.#head = `HTTP/1.1 ${status}\r\n`;
    // 204 and 304 have no body, and no length of one (RFC 9110 §8.6).
    this.#hasLength = !NO_CONTENT.test(status);
  }

  writeHeader(name: string, value: string): void {
    if (name === 'connection' && value === 'close') this.#isKept = false;
    else if (name === 'connection') this.#isKeptSaid = true;
    else this.#head += `${name}: ${value}\r\n`;
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.#isClosed) return true;
    if (!this.#isHeadSent) {
      this.#isChunked = !this.#isHttp10;
      if (this.#isHttp10) this.#isKept = false;
      this.#sendHead(this.#isChunked ? 'transfer-encoding: chunked\r\n' : '', undefined);
    }
    if (chunk.length === 0 || this.#isHead) return this.#connection.isWritable;
    if (!this.#isChunked) this.#connection.sendHead('', chunk);
    else {
      const size = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.byteLength;
      this.#connection.sendHead(`${size.toString(16)}\r\n`, chunk);
      this.#connection.sendHead('\r\n', undefined);
    }
    return this.#connection.isWritable;
  }

  end(body?: string | Uint8Array, closeConnection = false): void {
    if (this.#isClosed) return;
    if (closeConnection) this.#isKept = false;
    if (!this.#isHeadSent) {
      const length =
        body === undefined
          ? 0
          : typeof body === 'string'
            ? Buffer.byteLength(body)
            : body.byteLength;
      this.#sendHead(this.#hasLength ? `content-length: ${length}\r\n` : '', body);
    } else {
      if (body !== undefined) this.write(body);
      if (this.#isChunked && !this.#isHead) this.#connection.sendHead(LAST_CHUNK, undefined);
    }
    this.#answered();
  }

  endWithoutBody(contentLength?: number, closeConnection = false): void {
    if (this.#isClosed) return;
    if (closeConnection) this.#isKept = false;
    this.#sendHead(
      contentLength === undefined ? '' : `content-length: ${contentLength}\r\n`,
      undefined,
    );
    this.#answered();
  }

  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean] {
    if (this.#isClosed) return [true, false];
    if (!this.#isHeadSent) this.#sendHead(`content-length: ${totalBytes}\r\n`, undefined);
    let at = this.#isHead ? chunk.byteLength : 0;
    this.#givenBytes += at;
    while (at < chunk.byteLength && this.#connection.isWritable) {
      const slice = chunk.subarray(at, at + SLICE_BYTES);
      this.#connection.sendPart(slice);
      at += slice.byteLength;
      this.#givenBytes += slice.byteLength;
    }
    const hasCapacity = this.#connection.isWritable && at === chunk.byteLength;
    const isDone = hasCapacity && this.#givenBytes >= totalBytes;
    if (isDone) this.#answered();
    return [hasCapacity, isDone];
  }

  close(): void {
    if (!this.#isClosed) this.#connection.drop();
  }

  getRemoteAddress(): string {
    return this.#connection.remoteAddress;
  }

  #sendHead(lengthField: string, body: string | Uint8Array | undefined): void {
    this.#isHeadSent = true;
    const connection = this.#connection;
    const kept = this.#isKept
      ? this.#isHttp10 || this.#isKeptSaid
        ? `connection: keep-alive\r\n${connection.keptField}`
        : connection.keptField
      : 'connection: close\r\n';
    const head = `${this.#head}${kept}${connection.dateField}${lengthField}\r\n`;
    connection.sendHead(head, this.#isHead ? undefined : body);
  }

  #answered(): void {
    this.#isClosed = true;
    this.#connection.answered(this);
  }
}
