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
  /** It carries no answers before the end of a body. */
  readonly isHttp1: boolean;
  readonly header: Headers;
  /** Whole, for a method that takes one message; else in whole messages. */
  readonly body: Promise<Uint8Array> | AsyncIterable<Uint8Array>;
  /** Aborted, with its reason, when the client has gone. */
  readonly signal: AbortSignal;
  readonly contextValues: ContextValues;
  /** What is left of the time that the caller stated, where some of it has passed. */
  readonly leftMs?: number | undefined;
};

/** The limits of `ConnectAdapterOptions`, each of them stated. */
export type CallLimits = Pick<
  ConnectAdapterOptions,
  'readMaxBytes' | 'isPlainHttpTaken' | 'drainSignal' | 'timeoutMsMax'
> & {
  readonly policy: ErrorPolicy;
  readonly decoding: MessageDecoding;
  /** Of what messages become when they are decompressed, too. */
  readonly bodyBudget: BodyBudget;
  readonly writeMaxBytes: number;
  readonly compressMinBytes: number;
  readonly json: Partial<JsonReadOptions & JsonWriteOptions>;
};

/** The longest time of a timer; a longer one is as good as none. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Why the signal of a call is aborted when it has ended; a constant, since a stack costs more. */
const COMPLETE = new AppError<SharedReason>('CANCELLED', 'the call is complete');
const utf8 = new TextEncoder();

/**
 * What the messages of one call become on their way in, and its answers on their way out. It puts the parts of Connect's own handlers
 * together, since these answer failed_precondition with 400, decode a message in one go whatever its size, and let a method outlive its deadline.
 */
export class Call {
  readonly spec: MethodImplSpec;
  readonly options: CallLimits;
  readonly request: CallRequest;
  readonly wire: Wire;
  /** What the method sees of it. */
  readonly context: HandlerContext & { readonly abort: (reason: unknown) => void };
  readonly compression: ReturnType<typeof compressionNegotiate>;
  /** Why nothing is read of it. */
  readonly #refusal: ConnectError | undefined;
  /** Of what a message is decompressed to; once it is released, it holds nothing of one that comes later. */
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

  /** Throws where nothing is read of the call, whatever its body says. */
  mustTake(): void {
    if (this.wire.protocol === 'connect') assertKnownVersion(this.request.header);
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /**
   * The message in an envelope; `isFirst` says where the call goes. No method is begun that nobody waits for. Errors: those of
   * `MessageDecoding.decode` and `gunzipCounted`; why the call has ended.
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

  /** gzip, in which what comes out of a message counts as the caller's until the next one, or the end of the call. */
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

  /** The bytes of an answer. Errors: RESULT_TOO_LARGE; those of protobuf's writers. */
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

  /** An envelope of the answer, compressed where the caller takes that. */
  async envelope(data: Uint8Array, flags = 0): Promise<Uint8Array> {
    const { response } = this.compression;
    const sent = await envelopeCompress({ flags, data }, response, this.options.compressMinBytes);
    return encodeEnvelope(sent.flags, sent.data);
  }

  /** The envelope that says how the call ended; null where the trailer does, which has it from now on. */
  async lastEnvelope(error: ConnectError | undefined): Promise<Uint8Array | null> {
    const last = this.wire.end(this.context.responseTrailer, error);
    return last === null ? null : await this.envelope(last, this.wire.endFlag);
  }

  /** The answer that has these envelopes. */
  inEnvelopes(body: Uint8Array | AsyncIterable<Uint8Array>): HttpAnswer {
    const { responseHeader: header, responseTrailer: trailer } = this.context;
    const { response } = this.compression;
    if (response !== null) header.set(this.wire.encoding, response.name);
    const answer = { status: 200, header, body };
    return this.wire.protocol === 'grpc' ? { ...answer, trailer } : answer;
  }

  /** What the caller is shown of a failure. */
  shown(failure: unknown): ConnectError {
    return outgoingError(failure, this.options.policy, this.method, this.context.values);
  }

  /** Ends what the method does for the call, and what the call holds. Idempotent. */
  close(): void {
    this.context.abort(COMPLETE);
    this.#decompressed.release();
  }
}

/** The time of a call: what is stated, at most `maxMs`, or that where nothing is. */
function boundedTime(
  statedMs: number | undefined,
  maxMs: number | undefined,
): { readonly timeoutMs?: number } {
  const ms = statedMs ?? maxMs;
  return ms === undefined ? {} : { timeoutMs: Math.min(ms, maxMs ?? TIMER_MS_MAX) };
}
