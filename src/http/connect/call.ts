import { create, type DescMethod, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import type { JsonReadOptions, JsonWriteOptions } from '@bufbuild/protobuf';
import {
  type ConnectError,
  type ContextValues,
  createHandlerContext,
  type HandlerContext,
  type MethodImplSpec,
} from '@connectrpc/connect';
import {
  type Compression,
  compressionNegotiate,
  encodeEnvelope,
  type EnvelopedMessage,
  envelopeCompress,
  envelopeDecompress,
} from '@connectrpc/connect/protocol';
import { grpcStatusOk, headerGrpcStatus } from '@connectrpc/connect/protocol-grpc';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { type BodyBudget, type BodyHold, notEvictable } from '../bodies/body-budget.ts';
import { COMPRESSED } from '../bodies/envelope.ts';
import { gunzipCounted } from '../bodies/gunzip-counted.ts';
import { gzipped } from '../bodies/gzip.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import type { ConnectAdapterOptions } from './adapter-options.ts';
import { type ErrorPolicy, outgoingError, rpcOf } from './outgoing-error.ts';
import type { Admitted } from './protocol/caller-port.ts';
import { encodedJsonOf } from './protocol/encoded-answer.ts';
import type { MessageDecoding } from './protocol/message-decoding.ts';
import { abortReason } from './protocol/until-aborted.ts';
import { assertKnownVersion, type Wire } from './protocol/wire.ts';

/** A request whose caller is known, whatever carried it. */
export type CallRequest = {
  /** Whether HTTP/1.1 carries it, and so no answers before the end of a body. */
  readonly isHttp1: boolean;
  readonly header: Headers;
  /** Whole for a method that takes one message; otherwise in pieces of whole messages. */
  readonly body: Promise<Uint8Array> | AsyncIterable<Uint8Array>;
  /** Aborted, with its reason, when the client has gone. */
  readonly signal: AbortSignal;
  readonly contextValues: ContextValues;
  /** Time in ms left of what the caller stated; absent while none of it has passed. */
  readonly leftMs?: number | undefined;
};

/** The limits of `ConnectAdapterOptions`, each of them stated. */
export type CallLimits = Pick<
  ConnectAdapterOptions,
  'readMaxBytes' | 'isPlainHttpTaken' | 'drainSignal' | 'timeoutMsMax'
> & {
  readonly policy: ErrorPolicy;
  readonly decoding: MessageDecoding;
  /** Budget that decompressed messages count against, too. */
  readonly bodyBudget: BodyBudget;
  readonly writeMaxBytes: number;
  readonly compressMinBytes: number;
  readonly json: Partial<JsonReadOptions & JsonWriteOptions>;
};

/** The longest time of a timer, in ms; a longer one is as good as none. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Reason with which the signal of an ended call is aborted; a constant, since a stack costs more. */
const COMPLETE = new AppError<SharedReason>('CANCELLED', 'the call is complete');
const utf8 = new TextEncoder();

/**
 * One call: decodes its messages and encodes its answers. It combines the parts of Connect's own handlers in another way.
 * Those answer failed_precondition with 400, decode a message in one go whatever its size, and let a method outlive its
 * deadline.
 */
export class Call {
  readonly spec: MethodImplSpec;
  readonly options: CallLimits;
  readonly request: CallRequest;
  readonly wire: Wire;
  /** Context that the method gets. */
  readonly context: HandlerContext & { readonly abort: (reason: unknown) => void };
  readonly compression: ReturnType<typeof compressionNegotiate>;
  /** Error of a call whose headers are refused; nothing is read of it. */
  readonly #refusal: ConnectError | undefined;
  /** Hold of the decompressed bytes of a message; once released, it holds nothing of later messages. */
  readonly #decompressed: BodyHold;

  constructor(spec: MethodImplSpec, options: CallLimits, request: CallRequest, wire: Wire) {
    this.spec = spec;
    this.options = options;
    this.request = request;
    this.wire = wire;
    this.#decompressed = options.bodyBudget.open(this.admitted.caller.name, notEvictable);
    const { header } = request;
    const stated = wire.parseTimeout(header.get(wire.timeout), Infinity);
    this.compression = compressionNegotiate(
      [this.#gzip()],
      header.get(wire.encoding),
      header.get(wire.accepted),
      wire.accepted,
    );
    this.#refusal = this.compression.error ?? stated.error;
    const { method } = spec;
    this.context = createHandlerContext({
      method,
      service: method.parent,
      requestMethod: 'POST',
      protocolName: wire.protocol,
      ...boundedTime(request.leftMs ?? stated.timeoutMs, options.timeoutMsMax),
      requestSignal: request.signal,
      requestHeader: header,
      url: `http://localhost/${rpcOf(method)}`,
      responseHeader: { 'content-type': wire.answerType },
      responseTrailer: wire.protocol === 'connect' ? {} : { [headerGrpcStatus]: grpcStatusOk },
      contextValues: request.contextValues,
    });
  }

  get method(): DescMethod {
    return this.spec.method;
  }

  get admitted(): Admitted {
    return this.request.contextValues.get(this.options.policy.callers.key);
  }

  /** Whether the method may leave something changed. */
  get mayChange(): boolean {
    return this.options.policy.callers.isChange(`/${rpcOf(this.method)}`);
  }

  /** Throws for a call that is refused whatever its body says. */
  mustTake(): void {
    if (this.wire.protocol === 'connect') assertKnownVersion(this.request.header);
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /**
   * Decodes the message in an envelope. `isFirst` marks the message that says where the call goes. No method begins for a
   * caller that no longer waits.
   * Errors: those of `MessageDecoding.decode` and `gunzipCounted`; the reason why the call has ended.
   */
  async decoded(envelope: EnvelopedMessage, isFirst: boolean): Promise<Message> {
    const { decoding, readMaxBytes, isPlainHttpTaken } = this.options;
    const { isBinary, isEnveloped } = this.wire;
    this.#mustBeAwaited();
    const { data } =
      (envelope.flags & COMPRESSED) === 0
        ? envelope
        : await envelopeDecompress(envelope, this.compression.request, readMaxBytes);
    const isJsonOfNothing = !isEnveloped && !isBinary && data.length === 0;
    if (isPlainHttpTaken === true && isJsonOfNothing) return create(this.method.input);
    const decoded = decoding.decode(this.method, isBinary, data, this.admitted, isFirst);
    const message = decoded instanceof Promise ? await decoded : decoded;
    this.#mustBeAwaited();
    return message;
  }

  #mustBeAwaited(): void {
    const { signal } = this.context;
    if (signal.aborted) throw abortReason(signal);
  }

  /**
   * Makes the compression of the call, gzip. A decompressed message counts as the caller's until the next one, or the end of
   * the call.
   */
  #gzip(): Compression {
    return {
      name: 'gzip',
      compress: gzipped,
      decompress: (bytes, bytesMax) => {
        this.#decompressed.resize(0, false);
        return gunzipCounted(bytes, bytesMax, this.#decompressed) as Promise<
          Uint8Array<ArrayBuffer>
        >;
      },
    };
  }

  /** Encodes an answer. Errors: RESULT_TOO_LARGE; those of protobuf's writers. */
  encoded(message: Message): Uint8Array {
    const { writeMaxBytes, json } = this.options;
    const { output } = this.method;
    const bytes = this.wire.isBinary
      ? toBinary(output, message)
      : (encodedJsonOf(message) ?? utf8.encode(toJsonString(output, message, json)));
    if (bytes.byteLength <= writeMaxBytes) return bytes;
    const metadata = { limit_bytes: String(writeMaxBytes) };
    const problem = `the answer is larger than ${writeMaxBytes} bytes`;
    throw new AppError<SharedReason>('RESULT_TOO_LARGE', problem, metadata);
  }

  /** Puts a message of the answer into an envelope, compressed where the caller accepts that. */
  async envelope(data: Uint8Array, flags = 0): Promise<Uint8Array> {
    const { response } = this.compression;
    const sent = await envelopeCompress({ flags, data }, response, this.options.compressMinBytes);
    return encodeEnvelope(sent.flags, sent.data);
  }

  /** Makes the envelope that says how the call ended; null where the trailer says it, in which it is noted then. */
  async lastEnvelope(error: ConnectError | undefined): Promise<Uint8Array | null> {
    const last = this.wire.end(this.context.responseTrailer, error);
    return last === null ? null : await this.envelope(last, this.wire.endFlag);
  }

  /** Makes the answer whose body is these envelopes. */
  inEnvelopes(body: Uint8Array | AsyncIterable<Uint8Array>): HttpAnswer {
    const { responseHeader: header, responseTrailer: trailer } = this.context;
    const { response } = this.compression;
    if (response !== null) header.set(this.wire.encoding, response.name);
    const answer = { status: 200, header, body };
    return this.wire.protocol === 'grpc' ? { ...answer, trailer } : answer;
  }

  /** Turns a failure into the error that the caller gets. */
  shown(failure: unknown): ConnectError {
    return outgoingError(failure, this.options.policy, this.method, this.context.values);
  }

  /** Aborts the work of the method, and releases what the call holds. Idempotent. */
  close(): void {
    this.context.abort(COMPLETE);
    this.#decompressed.release();
  }
}

/** The deadline of a call: the stated time, at most `maxMs`; `maxMs` where none is stated. */
function boundedTime(
  statedMs: number | undefined,
  maxMs: number | undefined,
): { readonly timeoutMs?: number } {
  const ms = statedMs ?? maxMs;
  return ms === undefined ? {} : { timeoutMs: Math.min(ms, maxMs ?? TIMER_MS_MAX) };
}
