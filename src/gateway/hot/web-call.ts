import type { BodyPool } from '../../http/body-pool.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import { requestIdOf } from '../../http/request-id.ts';
import { AppError, type InternalReason } from '../../shared/app-error.ts';
import type { Credential } from '../callers/caller.ts';
import { gzipCompression } from '../connect/adapter-compression.ts';
import type { ConnectAdapter } from '../connect/adapter.ts';
import { REQUEST_ID_HEADER } from '../connect/call-context.ts';
import { framedAnswer, isSentPlain, preparedAnswer, webErrorBody } from './answer-frames.ts';
import { answerTypeOf, type CallHead } from './call-head.ts';
import { type DecisionAnswer, DecisionCall, type DecisionCallOptions } from './decision-call.ts';
import { ENVELOPE_BYTES } from './envelope.ts';
import type { HotMethod } from './raw-decisions.ts';

export type WebCallOptions = DecisionCallOptions & {
  readonly general: Pick<ConnectAdapter, 'handleBuffered'>;
};

/** Of a call, for the general path: an exchange forgets them when its handler returns. */
const KEPT_HEADERS = ['content-type', 'grpc-encoding', 'grpc-accept-encoding', 'grpc-timeout'];

/** A decision call of gRPC-Web over HTTP/1.1. */
export class WebCall extends DecisionCall {
  readonly #exchange: HttpExchange;
  readonly #general: WebCallOptions['general'];
  readonly requestId: string;
  readonly #headers: readonly string[];

  constructor(
    options: WebCallOptions,
    bodies: BodyPool,
    hot: HotMethod,
    head: CallHead,
    credential: Credential,
    exchange: HttpExchange,
    declaredBytes: number,
  ) {
    super(options, hot, head, credential);
    this.#general = options.general;
    this.#exchange = exchange;
    this.requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
    this.#headers = KEPT_HEADERS.map((name) => exchange.header(name));
    exchange.onAborted(() => this.gone());
    exchange.bodyOwner = credential.caller.name;
    exchange.readBody(
      options.bodyBytesMax + ENVELOPE_BYTES,
      (body, lease, none) => {
        if (none === null) this.take(body, lease);
        else if (!this.isEnded) this.fail(none);
      },
      null,
      bodies,
      declaredBytes,
    );
  }

  protected answer(answer: DecisionAnswer): void {
    if (typeof answer === 'string') return this.#send(preparedAnswer(this.head, answer));
    if (isSentPlain(this.head, answer, this.options.compressMinBytes)) {
      return this.#send(framedAnswer(this.head, answer, false));
    }
    gzipCompression.compress(answer as Uint8Array<ArrayBuffer>).then(
      (bytes) => this.#send(framedAnswer(this.head, bytes, true)),
      (error: unknown) =>
        this.fail(new AppError<InternalReason>('INTERNAL', 'internal error', {}, error)),
    );
  }

  #send(body: Uint8Array): void {
    this.#answer(body);
    this.counted();
  }

  protected refuse(error: AppError): void {
    this.#answer(webErrorBody(error));
  }

  #answer(body: Uint8Array): void {
    const extra = [REQUEST_ID_HEADER, this.requestId];
    if (this.head.isGzipWanted) extra.push('grpc-encoding', 'gzip');
    this.#exchange.send(200, answerTypeOf(this.head), body, extra);
  }

  protected handOn(body: Uint8Array): void {
    const headers = new Headers();
    for (const [i, name] of KEPT_HEADERS.entries()) {
      const value = this.#headers[i] ?? '';
      if (value !== '') headers.set(name, value);
    }
    if (this.head.isTimeoutStated) headers.set('grpc-timeout', `${Math.ceil(this.leftMs)}m`);
    const { path } = this.hot;
    this.#general.handleBuffered(
      this.#exchange,
      path,
      headers,
      body,
      this.requestId,
      this.credential,
    );
  }
}
