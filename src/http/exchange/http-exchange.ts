/*
 * Requests of HTTP/1 flow through this folder to handlers, and answers back. `raw-message` is the port to ../http1,
 * `http-exchange` the one to handlers, over its `request-side`. `offered-answer` and `unread-answers` hold what a client has
 * not read yet, `sse-event` writes events. `answer-sink` writes an answer over either HTTP, by `exchange-sink` or
 * `stream-sink`.
 */
import type { ExchangeHost } from './exchange-host.ts';
import { OfferedAnswer } from './offered-answer.ts';
import { type RawRequest, type RawResponse, writeHead } from './raw-message.ts';
import { RequestSide } from './request-side.ts';

/** Bytes above which a body is offered in parts as the client takes them, instead of copied whole. */
const SEND_WHOLE_BYTES_MAX = 65_536;
const NO_HEADERS: readonly string[] = [];
const NO_BYTES = new Uint8Array(0);

/**
 * One HTTP/1 request and its answer. The request side (`header`, `path`, `readBody`…) may be used only synchronously inside
 * the handler. The answer side may be used at any time, and does nothing once the client has gone. Hot: one object and one
 * closure a request.
 */
export class HttpExchange extends RequestSide {
  /** A long answer, or one in parts of a stated length. */
  #offered: OfferedAnswer | null = null;
  #abortListener: (() => void) | null = null;
  #writableListener: (() => void) | null = null;

  constructor(res: RawResponse, req: RawRequest, host: ExchangeHost) {
    super(res, req, host);
    host.inFlight.exchangeBegan();
    res.onAborted(() => this.#abort());
  }

  /** Called once if the client goes away before the answer is complete. One listener. */
  onAborted(listener: () => void): void {
    this.#abortListener = listener;
  }

  /** Answers with a whole body. `extra` is name, value, name, value… with lower-case names. */
  send(
    statusCode: number,
    contentType: string,
    body: string | Uint8Array,
    extra: readonly string[] = NO_HEADERS,
  ): void {
    if (this.state !== 'open') return;
    this.resumeBody();
    this.state = 'sending';
    this.res.cork(() => {
      writeHead(this.res, statusCode, contentType, extra);
      if (body.length <= SEND_WHOLE_BYTES_MAX) {
        this.res.end(body, this.closeAfter || this.host.isDraining);
        this.#close();
      } else {
        this.#offer(typeof body === 'string' ? Buffer.from(body) : body);
      }
    });
  }

  /** Answers without a body. */
  sendEmpty(statusCode: number, extra: readonly string[] = NO_HEADERS): void {
    if (this.state !== 'open') return;
    this.resumeBody();
    this.state = 'sending';
    this.res.cork(() => {
      writeHead(this.res, statusCode, '', extra);
      this.res.end(undefined, this.closeAfter || this.host.isDraining);
      this.#close();
    });
  }

  /**
   * Answers with a head alone. To HEAD it has the length that the body of a GET would have. With a status that has no body
   * (204, 304) it has no length.
   */
  sendHead(
    statusCode: number,
    contentType: string,
    contentLength: number | undefined,
    extra: readonly string[] = NO_HEADERS,
  ): void {
    if (this.state !== 'open') return;
    this.state = 'sending';
    this.res.cork(() => {
      writeHead(this.res, statusCode, contentType, extra);
      const isClosing = this.closeAfter || this.host.isDraining;
      if (contentLength !== undefined) {
        this.res.endWithoutBody(contentLength, isClosing);
      } else {
        // An explicit undefined would be written as a length.
        if (isClosing) this.res.writeHeader('connection', 'close');
        this.res.endWithoutBody();
      }
      this.#close();
    });
  }

  /** Begins an answer of `totalBytes` (≥ 1); `writeSized` follows until all of them are given. */
  beginSized(
    statusCode: number,
    contentType: string,
    totalBytes: number,
    extra: readonly string[] = NO_HEADERS,
  ): void {
    if (this.state !== 'open') return;
    this.state = 'sending';
    this.#newOffered(totalBytes).followParts();
    this.res.cork(() => {
      writeHead(this.res, statusCode, contentType, extra);
      if (this.closeAfter || this.host.isDraining) this.res.writeHeader('connection', 'close');
    });
  }

  /**
   * Sends the next part of an answer begun with `beginSized`; the parts together are exactly as long
   * as stated. Resolves once the part no longer waits here, or the client has gone.
   */
  writeSized(chunk: Uint8Array): Promise<void> {
    if (this.state !== 'sending' || chunk.byteLength === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#writableListener = resolve;
      this.#offered?.offerPart(chunk);
    });
  }

  /** Begins an answer of unknown length; `write` and `finish` follow. */
  begin(statusCode: number, contentType: string, extra: readonly string[] = NO_HEADERS): void {
    if (this.state !== 'open') return;
    this.state = 'sending';
    this.res.cork(() => {
      writeHead(this.res, statusCode, contentType, extra);
      if (this.host.isDraining) this.res.writeHeader('connection', 'close');
      this.res.write(NO_BYTES);
    });
  }

  /** Sends a part; false means that it waits in memory: send more only after `onWritable`. */
  write(chunk: string | Uint8Array): boolean {
    if (this.state !== 'sending') return true;
    if (chunk.length === 0) return true;
    let hasCapacity = true;
    this.res.cork(() => {
      hasCapacity = this.res.write(chunk);
    });
    return hasCapacity;
  }

  /** Calls `listener` once, when the client has taken what waited or has gone. */
  onWritable(listener: () => void): void {
    if (this.state !== 'sending') return listener();
    this.#writableListener = listener;
    this.res.onWritable(() => {
      this.#wakeWriter();
      return true;
    });
  }

  /** Completes an answer begun with `begin`. */
  finish(): void {
    if (this.state !== 'sending') return;
    this.resumeBody();
    this.res.cork(() => this.res.end());
    this.#close();
  }

  #offer(body: Uint8Array): void {
    if (this.closeAfter || this.host.isDraining) this.res.writeHeader('connection', 'close');
    this.#newOffered(body.byteLength).offerWhole(body, this.host.unread);
  }

  #newOffered(totalBytes: number): OfferedAnswer {
    const onDone = (): void => this.#close();
    const onCapacity = (): void => this.#wakeWriter();
    return (this.#offered = new OfferedAnswer(this.res, totalBytes, onDone, onCapacity));
  }

  #wakeWriter(): void {
    const listener = this.#writableListener;
    this.#writableListener = null;
    listener?.();
  }

  #close(): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.#offered?.over();
    this.endBody();
    this.#abortListener = null;
    this.host.inFlight.exchangeEnded();
  }

  #abort(): void {
    if (this.state === 'ended') return;
    const listener = this.#abortListener;
    this.#close();
    listener?.();
    this.#wakeWriter();
  }
}
