import { REQUEST_ID_HEADER } from '../request-id.ts';
import { type HttpAnswer, type AnswerHead, type AnswerSink, respond } from './answer-sink.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { UnreadAnswers } from './unread-answers.ts';

/** Bytes written at a time; each part that the client takes counts as progress. */
const PART_BYTES = 16_384;

/** Answers a request that no handler sees. */
export function refuseExchange(
  exchange: HttpExchange,
  response: HttpAnswer,
  requestId: string,
): void {
  void respond(new ExchangeSink(exchange, requestId), response);
}

/** Sends an answer over HTTP/1.1; `unread` tracks a part of it while it waits for its reader. */
export class ExchangeSink implements AnswerSink {
  readonly #exchange: HttpExchange;
  readonly #requestId: string;
  readonly #unread: UnreadAnswers | undefined;

  constructor(exchange: HttpExchange, requestId: string, unread?: UnreadAnswers) {
    this.#exchange = exchange;
    this.#requestId = requestId;
    this.#unread = unread;
  }

  get isOver(): boolean {
    return this.#exchange.isEnded;
  }

  send(head: AnswerHead, body: Uint8Array | undefined): void {
    const extra = this.#extraHeaders(head);
    if (body === undefined) this.#exchange.sendEmpty(head.status, extra);
    else this.#exchange.send(head.status, typeOf(head), body, extra);
  }

  begin(head: AnswerHead): void {
    this.#exchange.begin(head.status, typeOf(head), this.#extraHeaders(head));
  }

  async write(bytes: Uint8Array): Promise<void> {
    const exchange = this.#exchange;
    for (let from = 0; from < bytes.length && !exchange.isEnded; from += PART_BYTES) {
      if (exchange.write(bytes.subarray(from, from + PART_BYTES))) continue;
      const held = { unreadBytes: bytes.length, progress: from, drop: () => exchange.abort() };
      this.#unread?.add(held);
      await new Promise<void>((resolve) => exchange.onWritable(resolve));
      this.#unread?.remove(held);
    }
  }

  finish(): void {
    this.#exchange.finish();
  }

  abort(): void {
    this.#exchange.abort();
  }

  #extraHeaders({ status, header }: AnswerHead): string[] {
    const extra = [REQUEST_ID_HEADER, this.#requestId];
    header?.forEach((value, name) => {
      // The connection writes the length itself.
      if (name !== 'content-type' && name !== 'content-length') extra.push(name, value);
    });
    if (status === 405) extra.push('allow', 'POST');
    return extra;
  }
}

function typeOf({ header }: AnswerHead): string {
  return header?.get('content-type') ?? '';
}
