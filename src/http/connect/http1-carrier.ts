import { ENVELOPE_BYTES } from '../bodies/envelope.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import type { StreamedBody } from '../bodies/streamed-body.ts';
import { EnvelopeEnds } from '../bodies/unit-ends.ts';
import type { HttpAnswer, AnswerSink } from '../exchange/answer-sink.ts';
import { ExchangeSink, refuseExchange } from '../exchange/exchange-sink.ts';
import type { HttpExchange } from '../exchange/http-exchange.ts';
import { streamedBodyOfExchange } from '../exchange/streamed-exchange.ts';
import type { UnreadAnswers } from '../exchange/unread-answers.ts';
import { type CallCarrier, orUnread } from './call-carrier.ts';
import type { CallRequest } from './call.ts';
import { cancelled } from './protocol/call-errors.ts';

/** Carries a call over HTTP/1.1. */
export class Http1Carrier implements CallCarrier {
  readonly isHttp1 = true;
  readonly #exchange: HttpExchange;
  readonly #readMaxBytes: number;
  readonly #unread: UnreadAnswers;
  #held: Pick<CallRequest, 'header' | 'body' | 'signal'> | null = null;

  constructor(exchange: HttpExchange, readMaxBytes: number, unread: UnreadAnswers) {
    this.#exchange = exchange;
    this.#readMaxBytes = readMaxBytes;
    this.#unread = unread;
  }

  get path(): string {
    return this.#exchange.path();
  }

  get method(): string {
    return this.#exchange.method();
  }

  get isGone(): boolean {
    return !this.#exchange.isOpen;
  }

  header(lowerCaseName: string): string {
    return this.#exchange.header(lowerCaseName);
  }

  hold(isReadWhole: boolean): void {
    this.#held = this.open(isReadWhole);
  }

  own(caller: string): void {
    this.#exchange.bodyOwner = caller;
  }

  open(isReadWhole: boolean): Pick<CallRequest, 'header' | 'body' | 'signal'> {
    if (this.#held !== null) return this.#held;
    const signal = this.signal();
    const body = isReadWhole ? this.#wholeBody(signal) : this.#streamedBody(signal);
    return { header: this.#exchange.headers(), body, signal };
  }

  signal(): AbortSignal {
    const controller = new AbortController();
    this.#exchange.onAborted(() => controller.abort(cancelled()));
    return controller.signal;
  }

  sink(requestId: string): AnswerSink {
    return new ExchangeSink(this.#exchange, requestId, this.#unread);
  }

  refuse(response: HttpAnswer, requestId: string): void {
    refuseExchange(this.#exchange, response, requestId);
  }

  /** Reads the whole body, a message that may come in an envelope. */
  #wholeBody(signal: AbortSignal): Promise<Uint8Array> {
    const bytesMax = this.#readMaxBytes;
    const whole = new Promise<Uint8Array>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.#exchange.readBody(bytesMax + ENVELOPE_BYTES, resolve, (refusal) =>
        reject(refusal ?? bodyTooLarge(bytesMax)),
      );
    });
    return orUnread(whole);
  }

  #streamedBody(signal: AbortSignal): StreamedBody {
    return streamedBodyOfExchange(this.#exchange, new EnvelopeEnds(this.#readMaxBytes), signal);
  }
}
