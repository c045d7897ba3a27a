import type { BodyPool } from '../../http/bodies/body-pool.ts';
import type { ConnectAdapter } from '../../http/connect/adapter-options.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { REQUEST_ID_HEADER } from '../../http/request-id.ts';
import type { AppError } from '../../shared/app-error.ts';
import type { Credential } from '../callers/caller.ts';
import { sendConnectError } from '../connect/connect-error.ts';
import { webErrorBody } from './answer-frames.ts';
import type { PlainHead } from './call-head.ts';
import { DecisionCall, type DecisionCallOptions } from './decision-call.ts';
import { acceptedOf } from './exchange-head.ts';
import type { HotMethod } from './hot-methods.ts';

export type ExchangeCallOptions = DecisionCallOptions & {
  readonly general: Pick<ConnectAdapter, 'handleBuffered'>;
};

/** A decision call over HTTP/1.1: Connect or gRPC-Web. */
export class ExchangeCall extends DecisionCall {
  protected readonly givenId: string;
  readonly #exchange: HttpExchange;
  readonly #general: ExchangeCallOptions['general'];
  /** Kept for the general path: an exchange forgets its headers when its handler returns. */
  readonly #accepted: string;
  #isWatched = false;

  constructor(
    options: ExchangeCallOptions,
    hot: HotMethod,
    head: PlainHead,
    credential: Credential,
    exchange: HttpExchange,
  ) {
    super(options, hot, head, credential);
    this.#general = options.general;
    this.#exchange = exchange;
    this.givenId = exchange.header(REQUEST_ID_HEADER);
    this.#accepted = acceptedOf(exchange, head);
    // Its timer runs already.
    if (head.isTimeoutStated) this.watchCaller();
  }

  /** Reads a body of at most `bytesMax`, synchronously inside the listener's handler. */
  receive(bodies: BodyPool, bytesMax: number, declaredBytes: number): void {
    this.#exchange.bodyOwner = this.caller;
    this.#exchange.readBody(
      bytesMax,
      (body, lease, none) => {
        if (none === null) this.receiveBody(body, lease);
        else if (!this.isEnded) this.fail(none);
      },
      null,
      bodies,
      declaredBytes,
    );
  }

  protected get keepsAnswer(): boolean {
    return false;
  }

  protected watchCaller(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#exchange.onAborted(() => this.gone());
  }

  protected send(body: Uint8Array, isCompressed: boolean): void {
    const { head } = this;
    const extra = [REQUEST_ID_HEADER, this.requestId];
    if (head.protocol !== 'connect') {
      if (head.isGzipWanted) extra.push('grpc-encoding', 'gzip');
    } else if (isCompressed) extra.push('content-encoding', 'gzip');
    this.#exchange.send(200, head.answerType, body, extra);
    this.counted();
  }

  protected refuse(error: AppError): void {
    const { head, requestId } = this;
    if (head.protocol === 'connect') return sendConnectError(this.#exchange, error, requestId);
    const extra = [REQUEST_ID_HEADER, requestId];
    if (head.isGzipWanted) extra.push('grpc-encoding', 'gzip');
    this.#exchange.send(200, head.answerType, webErrorBody(error), extra);
  }

  protected handOn(body: Uint8Array): void {
    const { head, hot, requestId, credential } = this;
    const isConnect = head.protocol === 'connect';
    const headers = new Headers({ 'content-type': head.answerType });
    if (head.isGzipAllowed) headers.set(isConnect ? 'content-encoding' : 'grpc-encoding', 'gzip');
    if (this.#accepted !== '') {
      headers.set(isConnect ? 'accept-encoding' : 'grpc-accept-encoding', this.#accepted);
    }
    this.#general.handleBuffered(
      this.#exchange,
      hot.path,
      headers,
      body,
      requestId,
      credential,
      head.isTimeoutStated ? this.leftMs : undefined,
    );
  }
}
