import type { IncomingHttpHeaders } from 'node:http2';
import type { BodyBudget } from '../bodies/body-budget.ts';
import type { BodyDeadlines } from '../bodies/body-deadlines.ts';
import { ENVELOPE_BYTES } from '../bodies/envelope.ts';
import { StreamedBody } from '../bodies/streamed-body.ts';
import { EnvelopeEnds } from '../bodies/unit-ends.ts';
import type { HttpAnswer, AnswerSink } from '../exchange/answer-sink.ts';
import { refuseStream, StreamSink } from '../exchange/stream-sink.ts';
import type { UnreadAnswers } from '../exchange/unread-answers.ts';
import { headerText, pathOfTarget } from '../header-text.ts';
import type { Http2RequestStream } from '../http2/request-stream.ts';
import { WholeStream } from '../http2/whole-stream.ts';
import { type CallCarrier, orUnread } from './call-carrier.ts';
import type { CallRequest } from './call.ts';
import { cancelled } from './protocol/call-errors.ts';

/** Limits and tables that the streams of one adapter share. */
export type StreamParts = {
  readonly readMaxBytes: number;
  readonly budget: BodyBudget;
  readonly unread: UnreadAnswers;
};

/** Carries a call over HTTP/2. */
export class Http2Carrier implements CallCarrier {
  readonly isHttp1 = false;
  readonly #stream: Http2RequestStream;
  readonly #incoming: IncomingHttpHeaders;
  readonly #parts: StreamParts;
  readonly #deadlines: BodyDeadlines;

  constructor(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    parts: StreamParts,
    deadlines: BodyDeadlines,
  ) {
    this.#stream = stream;
    this.#incoming = incoming;
    this.#parts = parts;
    this.#deadlines = deadlines;
  }

  get path(): string {
    return pathOfTarget(this.header(':path'));
  }

  get method(): string {
    return this.header(':method');
  }

  get isGone(): boolean {
    return this.#stream.destroyed;
  }

  header(lowerCaseName: string): string {
    return headerText(this.#incoming[lowerCaseName]);
  }

  /** The headers without the pseudo ones. Errors: TypeError for a bad value. */
  headers(): Headers {
    const headers = new Headers();
    for (const name in this.#incoming) {
      if (name.startsWith(':')) continue;
      const value = this.#incoming[name];
      if (Array.isArray(value)) for (const one of value) headers.append(name, one);
      else if (value !== undefined) headers.append(name, value);
    }
    return headers;
  }

  hold(): void {
    // Bytes that arrive meanwhile wait in the stream, counted against the share of unknown callers.
  }

  own(caller: string): void {
    this.#stream.bodyOwner = caller;
  }

  open(isReadWhole: boolean): Pick<CallRequest, 'header' | 'body' | 'signal'> {
    const signal = this.signal();
    const body = isReadWhole ? this.#wholeBody(signal) : this.#streamedBody(signal);
    return { header: this.headers(), body, signal };
  }

  /** Aborted when the stream has closed, answered or not. */
  signal(): AbortSignal {
    const controller = new AbortController();
    this.#stream.once('close', () => controller.abort(cancelled()));
    return controller.signal;
  }

  sink(requestId: string, caller: object): AnswerSink {
    return new StreamSink(this.#stream, requestId, this.#parts.unread, caller);
  }

  refuse(response: HttpAnswer, requestId: string): void {
    refuseStream(this.#stream, response, requestId, this.#parts.unread);
  }

  #wholeBody(signal: AbortSignal): Promise<Uint8Array> {
    const { readMaxBytes: messageBytesMax, budget } = this.#parts;
    const bytesMax = messageBytesMax + ENVELOPE_BYTES;
    const options = { bytesMax, messageBytesMax, deadlines: this.#deadlines, budget };
    return orUnread(new WholeStream(this.#stream, options, signal).whole);
  }

  /** Streams the body under the protocol's own flow control. */
  #streamedBody(signal: AbortSignal): StreamedBody {
    const stream = this.#stream;
    const body = new StreamedBody({
      ends: new EnvelopeEnds(this.#parts.readMaxBytes),
      budget: this.#parts.budget,
      owner: () => stream.bodyOwner,
      signal,
      pause: () => stream.pause(),
      resume: () => stream.resume(),
    });
    stream.on('data', (chunk) => body.came(chunk));
    stream.once('end', () => body.ended());
    return body;
  }
}
