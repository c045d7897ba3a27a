import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { AppError } from '../../shared/app-error.ts';
import type { HttpExchange } from '../exchange/http-exchange.ts';
import type { CallHead } from './early-answers.ts';
import {
  cancelled,
  streamedBodyOfExchange,
  WholeBody,
  wholeBodyOfExchange,
} from './messages/adapter-body.ts';
import { respondToExchange } from './messages/adapter-http1.ts';
import { internalError } from './protocol/call-errors.ts';
import type { Admitted } from './protocol/caller-port.ts';
import type { UniversalRequest } from './protocol/universal.ts';
import { isReadWhole, type ServiceCalls } from './service-calls.ts';

/** Calls that come by HTTP/1.1. */
export class Http1Calls {
  readonly #calls: ServiceCalls;

  constructor(calls: ServiceCalls) {
    this.#calls = calls;
  }

  handle(exchange: HttpExchange): void {
    const header = (name: string): string => exchange.header(name);
    const head = this.#calls.headOf(exchange.path(), exchange.method(), header, true);
    const handler = this.#calls.handlerOf(head.path);
    const admission = this.#calls.admissionOf(head.path, header);
    if (admission instanceof Promise) this.#hold(exchange, head, handler, admission);
    else if (!this.#isRefused(exchange, head, handler, admission)) {
      if (!(admission instanceof AppError)) exchange.bodyOwner = admission.caller.name;
      this.#open(exchange, head, handler)(admission);
    }
  }

  /** The caller is not known yet, but headers and body can be had only now. */
  #hold(
    exchange: HttpExchange,
    head: CallHead,
    handler: UniversalHandler | undefined,
    admission: Promise<Admitted | AppError>,
  ): void {
    const begin = this.#open(exchange, head, handler);
    void admission.catch(internalError).then((known) => {
      if (!this.#isRefused(exchange, head, handler, known)) begin(known);
    });
  }

  /** Reads headers, and begins to read the body; what it returns begins the call. */
  #open(
    exchange: HttpExchange,
    head: CallHead,
    handler: UniversalHandler | undefined,
  ): (admission: Admitted | AppError) => void {
    const controller = new AbortController();
    const { signal } = controller;
    exchange.onAborted(() => controller.abort(cancelled()));
    if (handler === undefined) return () => undefined;
    const body = isReadWhole(handler)
      ? wholeBodyOfExchange(exchange, this.#calls.readMaxBytes, signal)
      : streamedBodyOfExchange(exchange, this.#calls.ends(), signal);
    const headers = exchange.headers();
    return (admitted) => {
      if (admitted instanceof AppError) return;
      exchange.bodyOwner = admitted.caller.name;
      const call = { httpVersion: '1.1', head, headers, signal, admitted };
      this.#answer(exchange, handler, this.#calls.requestOf(call, body), head.requestId);
    };
  }

  /** Answers what no handler sees. */
  #isRefused(
    exchange: HttpExchange,
    head: CallHead,
    handler: UniversalHandler | undefined,
    admission: Admitted | AppError,
  ): boolean {
    const early = this.#calls.early.answerTo(head, handler, admission);
    if (early !== null) void respondToExchange(exchange, early, head.requestId, true);
    return early !== null;
  }

  /** As `handle`, for a request whose caller is known and whose body was read elsewhere. */
  handleBuffered(
    exchange: HttpExchange,
    path: string,
    headers: Headers,
    body: Uint8Array,
    requestId: string,
    admitted: Admitted,
  ): void {
    const handler = this.#calls.handlerOf(path);
    const contentType = headers.get('content-type') ?? '';
    if (handler === undefined || !handler.supportedContentType(contentType)) {
      const { early } = this.#calls;
      const answer = handler === undefined ? early.unknown(path, contentType) : early.otherType();
      void respondToExchange(exchange, answer, requestId, true);
      return;
    }
    const controller = new AbortController();
    const { signal } = controller;
    exchange.onAborted(() => controller.abort(cancelled()));
    const whole = new WholeBody(Promise.resolve(body));
    const call = { httpVersion: '1.1', head: { path, requestId }, headers, signal, admitted };
    this.#answer(exchange, handler, this.#calls.requestOf(call, whole), requestId);
  }

  #answer(
    exchange: HttpExchange,
    handler: UniversalHandler,
    request: UniversalRequest,
    requestId: string,
  ): void {
    const isUnary = handler.method.methodKind === 'unary';
    const { unread } = this.#calls;
    this.#calls.answer(handler, request, (response, isFailure) =>
      respondToExchange(exchange, response, requestId, isUnary || isFailure, unread),
    );
  }
}
