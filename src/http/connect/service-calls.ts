import type { ContextValues } from '@connectrpc/connect';
import { createContextValues } from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import type { AppError } from '../../shared/app-error.ts';
import { BodyBudget } from '../bodies/body-budget.ts';
import { EnvelopeEnds } from '../bodies/unit-ends.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../exchange/unread-answers.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { type ErrorPolicy, reportFailure, rpcOf } from './adapter-guard.ts';
import type { ConnectAdapterOptions } from './adapter-options.ts';
import { refusal } from './adapter-refusal.ts';
import { CallRecord, kCallRecord } from './call-record.ts';
import { boundTimeouts } from './call-timeouts.ts';
import { type CallHead, EarlyAnswers } from './early-answers.ts';
import { CallBodies } from './messages/call-bodies.ts';
import type { MessageDecoding } from './messages/message-decoding.ts';
import { kRequestId } from './protocol/adapter-request-id.ts';
import { internalError } from './protocol/call-errors.ts';
import type { Admitted, HeaderOf } from './protocol/caller-port.ts';
import { plainUnaryType } from './protocol/content-types.ts';
import type { UniversalRequest, UniversalResponse } from './protocol/universal.ts';

const STALL_MS = 60_000;

/** What a call is begun with, besides its body. */
export type OpenedCall = {
  readonly httpVersion: string;
  readonly head: Pick<CallHead, 'path' | 'requestId' | 'record'>;
  readonly headers: Headers;
  readonly signal: AbortSignal;
  readonly admitted: Admitted;
};

/** The handlers of a service, and what every call of them needs, whichever HTTP carries it. */
export class ServiceCalls {
  readonly policy: ErrorPolicy;
  readonly early: EarlyAnswers;
  readonly budget: BodyBudget;
  readonly unread: UnreadAnswers;
  readonly #options: ConnectAdapterOptions;
  readonly #bodies: CallBodies;
  readonly #handlers = new Map<string, UniversalHandler>();

  constructor(
    options: ConnectAdapterOptions,
    policy: ErrorPolicy,
    decoding: MessageDecoding,
    handlers: readonly UniversalHandler[],
  ) {
    this.#options = options;
    this.policy = policy;
    this.budget = options.bodyBudget ?? new BodyBudget();
    this.early = new EarlyAnswers(policy, options.isPlainHttpTaken === true);
    this.#bodies = new CallBodies(this.budget, decoding, options.readMaxBytes, policy.callers.key);
    this.unread =
      options.unread ?? new UnreadAnswers({ bytesMax: UNREAD_BYTES_MAX, stallMs: STALL_MS });
    for (const handler of handlers) this.#handlers.set(handler.requestPath, handler);
  }

  get readMaxBytes(): number {
    return this.#options.readMaxBytes;
  }

  handlerOf(path: string): UniversalHandler | undefined {
    return this.#handlers.get(path);
  }

  admissionOf(path: string, header: HeaderOf): Admitted | AppError | Promise<Admitted | AppError> {
    return this.policy.callers.admit(path, header);
  }

  /** What the first lines of a call say; its record begins here. */
  headOf(path: string, method: string, header: HeaderOf, isHttp1: boolean): CallHead {
    const requestId = requestIdOf(header(REQUEST_ID_HEADER));
    const stated = header('content-type');
    const contentType = this.#options.isPlainHttpTaken === true ? plainUnaryType(stated) : stated;
    const { onCall } = this.#options;
    const handler = onCall === undefined ? undefined : this.#handlers.get(path);
    const record =
      onCall === undefined || handler === undefined || method !== 'POST'
        ? undefined
        : new CallRecord(rpcOf(handler.method), requestId, onCall);
    return { path, requestId, contentType, method, record, isHttp1 };
  }

  /** Finds where the messages of a streamed body end. */
  ends(): EnvelopeEnds {
    return new EnvelopeEnds(this.#options.readMaxBytes);
  }

  /** The request as Connect's handlers take it. Changes `headers`. */
  requestOf(call: OpenedCall, body: AsyncIterable<Uint8Array>): UniversalRequest {
    const { httpVersion, head, headers: header, signal, admitted } = call;
    if (this.#options.isPlainHttpTaken === true) spellPlainly(header);
    boundTimeouts(header, this.#options.timeoutMsMax);
    const contextValues: ContextValues = createContextValues()
      .set(kRequestId, head.requestId)
      .set(this.policy.callers.key, admitted);
    if (head.record !== undefined) contextValues.set(kCallRecord, head.record);
    const url = `http://localhost${head.path}`;
    return { httpVersion, method: 'POST', url, header, body, signal, contextValues };
  }

  /** Has a handler answer a request; what it fails with becomes an answer, too. `respond` never rejects. */
  answer(
    handler: UniversalHandler,
    request: UniversalRequest,
    respond: (response: UniversalResponse, isFailure: boolean) => Promise<void>,
  ): void {
    const record = request.contextValues?.get(kCallRecord);
    void this.#bodies
      .counted(handler, request, (counted) =>
        handler(counted).then(
          (response) => respond(response, false),
          (error: unknown) => respond(this.#failed(handler, error, request), true),
        ),
      )
      .then(() => record?.end());
  }

  /** Who an answer is for. */
  ownerOf({ contextValues }: UniversalRequest): object | undefined {
    return contextValues?.get(this.policy.callers.key).caller;
  }

  #failed(
    handler: UniversalHandler,
    error: unknown,
    { header, contextValues }: UniversalRequest,
  ): UniversalResponse {
    reportFailure(error, this.policy, handler.method, contextValues);
    const shown = internalError(error);
    const { errors } = this.policy;
    contextValues?.get(kCallRecord)?.failed(errors.codeOfReason(shown.reason));
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
export function isReadWhole({ method: { methodKind } }: UniversalHandler): boolean {
  return methodKind === 'unary' || methodKind === 'server_streaming';
}
