import { Code, createContextValues } from '@connectrpc/connect';
import { AppError } from '../../shared/app-error.ts';
import { respond } from '../exchange/answer-sink.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import type { ConnectAdapterOptions } from './adapter-options.ts';
import { refusal } from './adapter-refusal.ts';
import type { CallCarrier } from './call-carrier.ts';
import type { CallHandler } from './call-handler.ts';
import { CallRecord, kCallRecord } from './call-record.ts';
import type { CallRequest } from './call.ts';
import { type CallHead, EarlyAnswers } from './early-answers.ts';
import { type ErrorPolicy, reportFailure, rpcOf } from './outgoing-error.ts';
import { internalError } from './protocol/call-errors.ts';
import { type Admitted, kRequestId } from './protocol/caller-port.ts';
import { plainUnaryType } from './protocol/wire.ts';

/** Takes the calls of all methods, from their heads on, over either HTTP. */
export class Calls {
  readonly #options: ConnectAdapterOptions;
  readonly #policy: ErrorPolicy;
  readonly #early: EarlyAnswers;
  readonly #handlers: ReadonlyMap<string, CallHandler>;

  constructor(
    options: ConnectAdapterOptions,
    policy: ErrorPolicy,
    handlers: readonly CallHandler[],
  ) {
    this.#options = options;
    this.#policy = policy;
    this.#early = new EarlyAnswers(policy, options.isPlainHttpTaken === true);
    this.#handlers = new Map(handlers.map((handler) => [handler.path, handler]));
  }

  /** Takes a call, synchronously inside the handler of its listener. */
  handle(carrier: CallCarrier): void {
    const head = this.#headOf(carrier);
    const handler = this.#handlers.get(head.path);
    const admission = this.#policy.callers.admit(head.path, (name) => carrier.header(name));
    if (!(admission instanceof Promise)) {
      this.#admitted(carrier, head, handler, admission);
      return;
    }
    if (handler !== undefined) carrier.hold(isReadWhole(handler));
    void admission.catch(internalError).then((known) => {
      if (!carrier.isGone) return this.#admitted(carrier, head, handler, known);
      head.record?.failed(Code.Canceled);
      head.record?.finish();
    });
  }

  /** Takes a call as `handle` does, whose caller is known and whose body was read elsewhere. */
  handleBuffered(
    carrier: CallCarrier,
    path: string,
    requestId: string,
    admitted: Admitted,
    parts: Pick<CallRequest, 'header' | 'body' | 'leftMs'>,
  ): void {
    const handler = this.#handlers.get(path);
    const contentType = parts.header.get('content-type') ?? '';
    if (handler?.takes(contentType) === true) {
      const signal = carrier.signal();
      this.#answer(carrier, handler, { requestId }, admitted, { ...parts, signal });
      return;
    }
    const early = this.#early;
    const answer = handler === undefined ? early.unknown(path, contentType) : early.otherType();
    carrier.refuse(answer, requestId);
  }

  #admitted(
    carrier: CallCarrier,
    head: CallHead,
    handler: CallHandler | undefined,
    admission: Admitted | AppError,
  ): void {
    const early = this.#early.answerTo(head, handler, admission);
    if (early !== null || handler === undefined || admission instanceof AppError) {
      carrier.refuse(early ?? { status: 404 }, head.requestId);
      return;
    }
    carrier.own(admission.caller.name);
    this.#answer(carrier, handler, head, admission, carrier.open(isReadWhole(handler)));
  }

  /** Reads the head of a call, and begins its record. */
  #headOf(carrier: CallCarrier): CallHead {
    const { path, method, isHttp1 } = carrier;
    const requestId = requestIdOf(carrier.header(REQUEST_ID_HEADER));
    const stated = carrier.header('content-type');
    const contentType = this.#options.isPlainHttpTaken === true ? plainUnaryType(stated) : stated;
    const { onCall } = this.#options;
    const handler = onCall === undefined ? undefined : this.#handlers.get(path);
    const record =
      onCall === undefined || handler === undefined || method !== 'POST'
        ? undefined
        : new CallRecord(rpcOf(handler.method), requestId, onCall);
    return { path, requestId, contentType, method, record, isHttp1 };
  }

  /** Lets the handler answer; a failure of it becomes an answer, too. */
  #answer(
    carrier: CallCarrier,
    handler: CallHandler,
    { requestId, record }: Pick<CallHead, 'requestId' | 'record'>,
    admitted: Admitted,
    parts: Omit<CallRequest, 'isHttp1' | 'contextValues'>,
  ): void {
    if (this.#options.isPlainHttpTaken === true) spellPlainly(parts.header);
    const contextValues = createContextValues()
      .set(kRequestId, requestId)
      .set(this.#policy.callers.key, admitted)
      .set(kCallRecord, record ?? null);
    const request = { ...parts, isHttp1: carrier.isHttp1, contextValues };
    const sink = carrier.sink(requestId, admitted.caller);
    void handler
      .answer(request)
      .then(
        (response) => respond(sink, response),
        (error: unknown) => respond(sink, this.#failed(handler, error, request)),
      )
      .then(() => record?.finish());
  }

  #failed(
    handler: CallHandler,
    error: unknown,
    { header, contextValues }: CallRequest,
  ): HttpAnswer {
    reportFailure(error, this.#policy, handler.method, contextValues);
    const shown = internalError(error);
    const { errors } = this.#policy;
    contextValues.get(kCallRecord)?.failed(errors.codeOfReason(shown.reason));
    return refusal(header.get('content-type') ?? '', shown, errors);
  }
}

/** Writes the type and the encoding of a unary call as Connect's handlers know them. */
function spellPlainly(headers: Headers): void {
  headers.set('content-type', plainUnaryType(headers.get('content-type') ?? ''));
  const encoding = headers.get('content-encoding')?.trim().toLowerCase();
  if (encoding === '') headers.delete('content-encoding');
  else if (encoding !== undefined) headers.set('content-encoding', encoding);
}

/** Whether the body of a method's calls is wanted whole. */
function isReadWhole({ method: { methodKind } }: CallHandler): boolean {
  return methodKind === 'unary' || methodKind === 'server_streaming';
}
