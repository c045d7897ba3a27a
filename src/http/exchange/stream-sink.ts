import type { OutgoingHttpHeaders } from 'node:http2';
import { ENHANCE_YOUR_CALM, INTERNAL_ERROR } from '../http2/frames/protocol.ts';
import { type Http2RequestStream, release } from '../http2/request-stream.ts';
import { REQUEST_ID_HEADER } from '../request-id.ts';
import { type HttpAnswer, type AnswerHead, type AnswerSink, respond } from './answer-sink.ts';
import type { UnreadAnswer, UnreadAnswers } from './unread-answers.ts';

/** Time in ms that a refusal waits for its reader. */
const REFUSAL_MS = 1_000;
const NO_BYTES = new Uint8Array(0);

/**
 * Answers a stream that no handler sees. It waits only a moment for a client that does not read: an unknown caller has no
 * claim to our memory.
 */
export function refuseStream(
  stream: Http2RequestStream,
  response: HttpAnswer,
  requestId: string,
  unread?: UnreadAnswers,
): void {
  void respond(new StreamSink(stream, requestId, unread), response).then(() => {
    if (stream.writableFinished || stream.destroyed) return;
    const timer = setTimeout(() => {
      if (!stream.writableFinished && !stream.destroyed) stream.close(ENHANCE_YOUR_CALM);
    }, REFUSAL_MS);
    timer.unref();
    stream.once('close', () => clearTimeout(timer));
  });
}

/**
 * Sends an answer, trailers included, under the flow control of its stream; `unread` tracks it while it waits for its reader.
 */
export class StreamSink implements AnswerSink, UnreadAnswer {
  readonly owner: object | undefined;
  unreadBytes = 0;
  readonly #stream: Http2RequestStream;
  readonly #requestId: string;
  readonly #unread: UnreadAnswers | undefined;

  constructor(
    stream: Http2RequestStream,
    requestId: string,
    unread?: UnreadAnswers,
    owner?: object,
  ) {
    this.#stream = stream;
    this.#requestId = requestId;
    this.#unread = unread;
    this.owner = owner;
  }

  get isOver(): boolean {
    return this.#stream.destroyed;
  }

  get progress(): number {
    return this.#stream.sentBytes;
  }

  drop(): void {
    this.#stream.close(ENHANCE_YOUR_CALM);
  }

  send(head: AnswerHead, body: Uint8Array | undefined): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    if (body === undefined) {
      stream.respond(this.#headOf(head), { endStream: true });
      release(stream);
    } else {
      this.begin(head);
      this.#endStream(body);
    }
  }

  begin(head: AnswerHead): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    const { trailer } = head;
    stream.respond(this.#headOf(head), { waitForTrailers: trailer !== undefined });
    if (trailer === undefined) return;
    // Read when they are sent: a handler fills them in until its end.
    stream.once('wantTrailers', () => stream.sendTrailers(outgoing(trailer)));
  }

  async write(bytes: Uint8Array): Promise<void> {
    const stream = this.#stream;
    if (bytes.length === 0 || stream.destroyed || stream.write(bytes)) return;
    this.unreadBytes = bytes.length;
    this.#unread?.add(this);
    await drained(stream);
    this.#unread?.remove(this);
  }

  finish(): void {
    if (!this.#stream.destroyed) this.#endStream(NO_BYTES);
  }

  abort(): void {
    if (!this.#stream.destroyed) this.#stream.close(INTERNAL_ERROR);
  }

  #endStream(bytes: Uint8Array): void {
    const stream = this.#stream;
    stream.end(bytes);
    release(stream);
    if (stream.writableFinished || stream.destroyed) return;
    this.unreadBytes = bytes.length;
    this.#unread?.add(this);
    stream.once('finish', () => this.#unread?.remove(this));
    stream.once('close', () => this.#unread?.remove(this));
  }

  #headOf({ status, header }: AnswerHead): OutgoingHttpHeaders {
    const head = header === undefined ? {} : outgoing(header);
    head[':status'] = status;
    head[REQUEST_ID_HEADER] = this.#requestId;
    if (status === 405) head['allow'] = 'POST';
    return head;
  }
}

function drained(stream: Http2RequestStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.once('drain', done);
    stream.once('close', done);
  });
}

function outgoing(headers: Headers): OutgoingHttpHeaders {
  return Object.fromEntries(headers);
}
