import type { IncomingHttpHeaders } from 'node:http2';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { AppError } from '../../shared/app-error.ts';
import type { BodyDeadlines } from '../bodies/body-deadlines.ts';
import { ENVELOPE_BYTES } from '../bodies/envelope.ts';
import { bodyTooLarge } from '../bodies/gunzip-limited.ts';
import { headerText, pathOfTarget } from '../header-text.ts';
import type { Http2RequestStream } from '../http2/request-stream.ts';
import { WholeStream } from '../http2/whole-stream.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { setTimeLeft } from './call-timeouts.ts';
import type { CallHead } from './early-answers.ts';
import { cancelled, streamedBodyOfStream, WholeBody } from './messages/adapter-body.ts';
import { headersFromHttp2, refuseStream, respondToStream } from './messages/adapter-http2.ts';
import { internalError } from './protocol/call-errors.ts';
import type { Admitted, HeaderOf } from './protocol/caller-port.ts';
import type { UniversalRequest } from './protocol/universal.ts';
import { isReadWhole, type ServiceCalls } from './service-calls.ts';

/** Calls that come by HTTP/2. */
export class Http2Calls {
  readonly #calls: ServiceCalls;

  constructor(calls: ServiceCalls) {
    this.#calls = calls;
  }

  handle(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    deadlines: BodyDeadlines,
  ): void {
    const header: HeaderOf = (name) => headerText(incoming[name]);
    const path = pathOfTarget(header(':path'));
    const head = this.#calls.headOf(path, header(':method'), header, false);
    const admission = this.#calls.admissionOf(path, header);
    if (!(admission instanceof Promise)) {
      this.#admitted(stream, incoming, deadlines, head, admission);
      return;
    }
    // Of its body there is what waits in the meantime, as that of nobody.
    void admission.catch(internalError).then((known) => {
      if (!stream.destroyed) this.#admitted(stream, incoming, deadlines, head, known);
    });
  }

  #admitted(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    deadlines: BodyDeadlines,
    head: CallHead,
    admission: Admitted | AppError,
  ): void {
    const handler = this.#calls.handlerOf(head.path);
    const early = this.#calls.early.answerTo(head, handler, admission);
    if (early !== null || handler === undefined || admission instanceof AppError) {
      const answer = early ?? { status: 404 };
      void refuseStream(stream, answer, head.requestId, this.#calls.unread);
      return;
    }
    const signal = signalOfStream(stream);
    stream.bodyOwner = admission.caller.name;
    const body = isReadWhole(handler)
      ? this.#wholeBody(stream, deadlines, signal)
      : streamedBodyOfStream(stream, this.#calls.ends(), this.#calls.budget, signal);
    const headers = headersFromHttp2(incoming);
    const call = { httpVersion: '2.0', head, headers, signal, admitted: admission };
    this.#answer(stream, handler, this.#calls.requestOf(call, body), head.requestId);
  }

  #wholeBody(stream: Http2RequestStream, deadlines: BodyDeadlines, signal: AbortSignal): WholeBody {
    const { readMaxBytes: messageBytesMax, budget } = this.#calls;
    const bytesMax = messageBytesMax + ENVELOPE_BYTES;
    const options = { bytesMax, messageBytesMax, deadlines, budget };
    return new WholeBody(new WholeStream(stream, options, stream.bodyOwner, signal).whole);
  }

  /** As `handle`, for a request whose caller is known and whose body was read elsewhere; null for one beyond the limit. */
  handleBuffered(
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    body: Uint8Array | null,
    leftMs: number | undefined,
    admitted: Admitted,
  ): void {
    const path = pathOfTarget(headerText(incoming[':path']));
    const requestId = requestIdOf(headerText(incoming[REQUEST_ID_HEADER]));
    const handler = this.#calls.handlerOf(path);
    if (handler === undefined) {
      void refuseStream(stream, { status: 404 }, requestId, this.#calls.unread);
      return;
    }
    const headers = headersFromHttp2(incoming);
    if (leftMs !== undefined) setTimeLeft(headers, leftMs);
    const whole = new WholeBody(
      body === null
        ? Promise.reject(bodyTooLarge(this.#calls.readMaxBytes))
        : Promise.resolve(body),
    );
    const signal = signalOfStream(stream);
    const call = { httpVersion: '2.0', head: { path, requestId }, headers, signal, admitted };
    this.#answer(stream, handler, this.#calls.requestOf(call, whole), requestId);
  }

  #answer(
    stream: Http2RequestStream,
    handler: UniversalHandler,
    request: UniversalRequest,
    requestId: string,
  ): void {
    const owner = this.#calls.ownerOf(request);
    this.#calls.answer(handler, request, (response) =>
      respondToStream(stream, response, requestId, this.#calls.unread, owner),
    );
  }
}

/** Aborted when the stream has closed, answered or not. */
function signalOfStream(stream: Http2RequestStream): AbortSignal {
  const controller = new AbortController();
  stream.once('close', () => controller.abort(cancelled()));
  return controller.signal;
}
