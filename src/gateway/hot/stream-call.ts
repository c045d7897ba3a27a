import type { IncomingHttpHeaders } from 'node:http2';
import type { BodyBudget } from '../../http/body-budget.ts';
import type { BodyDeadlines } from '../../http/body-deadlines.ts';
import { BodyIntake } from '../../http/body-intake.ts';
import type { BodyPool } from '../../http/body-pool.ts';
import type { Http2RequestStream } from '../../http/http2/request-stream.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type { UnreadAnswer, UnreadAnswers } from '../../http/unread-answers.ts';
import { AppError, type InternalReason } from '../../shared/app-error.ts';
import type { Credential } from '../callers/caller.ts';
import { gzipCompression } from '../connect/adapter-compression.ts';
import { letGo } from '../connect/adapter-http2.ts';
import type { ConnectAdapter } from '../connect/adapter.ts';
import { errorBody, httpStatusOfReason } from '../connect/connect-error.ts';
import {
  errorTrailer,
  framedAnswer,
  isSentPlain,
  preparedAnswer,
  webErrorBody,
} from './answer-frames.ts';
import { answerTypeOf, type CallHead } from './call-head.ts';
import { type DecisionAnswer, DecisionCall, type DecisionCallOptions } from './decision-call.ts';
import { ENVELOPE_BYTES } from './envelope.ts';
import type { AwaitedBody, LateBodies } from './late-bodies.ts';
import type { HotMethod } from './raw-decisions.ts';

export type StreamCallOptions = DecisionCallOptions & {
  readonly general: Pick<ConnectAdapter, 'handleBufferedStream'>;
};

/** What the calls of one listener share. */
export type StreamCallParts = {
  readonly bodies: BodyPool;
  /** Of the bodies that come in several chunks, or late. */
  readonly budget: BodyBudget;
  readonly late: LateBodies;
  readonly unread: UnreadAnswers;
};

type OutgoingHead = Record<string, string | number>;

const OK_TRAILERS = { 'grpc-status': '0' };
const WITH_TRAILERS = { waitForTrailers: true };
const WITHOUT_BODY = { endStream: true };
/** Shorter answers fit the first window of every client that did not shrink it. */
const UNREAD_BYTES_MIN = 16 * 1024;
/** NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM */
const CANCEL = 8;
const ENHANCE_YOUR_CALM = 11;

/** A decision call over HTTP/2: gRPC, gRPC-Web or Connect, whoever frames it. */
export class StreamCall extends DecisionCall implements AwaitedBody, UnreadAnswer {
  unreadBytes = 0;
  readonly #stream: Http2RequestStream;
  readonly #incoming: IncomingHttpHeaders;
  readonly #general: StreamCallOptions['general'];
  readonly #parts: StreamCallParts;
  readonly #deadlines: BodyDeadlines;
  readonly #bytesMax: number;
  #chunk: Uint8Array | null = null;
  #intake: BodyIntake | null = null;
  #isLate = false;
  #size = 0;
  #isBodyAwaited = true;
  #issuedId = '';

  constructor(
    options: StreamCallOptions,
    parts: StreamCallParts,
    hot: HotMethod,
    head: CallHead,
    credential: Credential,
    stream: Http2RequestStream,
    incoming: IncomingHttpHeaders,
    deadlines: BodyDeadlines,
  ) {
    super(options, hot, head, credential);
    this.#general = options.general;
    this.#parts = parts;
    this.#stream = stream;
    this.#incoming = incoming;
    this.#deadlines = deadlines;
    this.#bytesMax = options.bodyBytesMax + ENVELOPE_BYTES;
    parts.late.expect(this, deadlines);
    stream.on('data', (chunk: Uint8Array) => this.#came(chunk));
    stream.on('end', () => this.#complete());
    stream.on('close', () => this.#closed());
  }

  get requestId(): string {
    if (this.#issuedId !== '') return this.#issuedId;
    const given = this.#incoming['x-request-id'];
    const text = typeof given === 'string' ? given : (given?.join(', ') ?? '');
    this.#issuedId = requestIdOf(text);
    return this.#issuedId;
  }

  get owner(): object {
    return this.credential.caller;
  }

  get progress(): number | undefined {
    return this.#stream.sentBytes;
  }

  get isBodyAwaited(): boolean {
    return this.#isBodyAwaited;
  }

  /** The body took too long (called by the listener's deadlines). */
  cut(): void {
    this.#stream.close(CANCEL);
  }

  drop(): void {
    // Unlike CANCEL it does not wait for the data that the caller does not take.
    this.#stream.close(ENHANCE_YOUR_CALM);
  }

  bodyIsLate(): void {
    this.#isLate = true;
    this.#gatherFirst();
  }

  #came(chunk: Uint8Array): void {
    this.#size += chunk.byteLength;
    if (!this.#isBodyAwaited || this.isEnded) return; // answered or refused: the rest is thrown away
    if (this.#intake === null && this.#chunk === null && !this.#isLate) {
      if (this.#size > this.#bytesMax) this.#tooLarge();
      else this.#chunk = chunk;
      return;
    }
    this.#gatherFirst();
    this.#gather(chunk);
  }

  /** A chunk lies in the memory of all that was read with it, and is not kept. */
  #gatherFirst(): void {
    const chunk = this.#chunk;
    this.#chunk = null;
    if (chunk !== null) this.#gather(chunk);
  }

  #gather(chunk: Uint8Array): void {
    this.#intake ??= new BodyIntake({
      bytesMax: this.#bytesMax,
      discardBytesMax: 0,
      budget: this.#parts.budget,
      owner: this.caller,
      pool: undefined,
      declaredBytes: 0,
      onCut: (error) => this.#refuseBody(error),
    });
    const outcome = this.#intake.add(chunk, false);
    const { refusal } = this.#intake;
    if (refusal !== null) this.#refuseBody(refusal);
    else if (outcome === 'refused') this.#tooLarge();
  }

  #tooLarge(): void {
    this.#bodyDone();
    this.fallBack();
  }

  #refuseBody(error: AppError): void {
    if (this.#isBodyAwaited) this.#bodyDone();
    if (!this.isEnded) this.fail(error);
  }

  #complete(): void {
    if (!this.#isBodyAwaited) return;
    const chunk = this.#chunk;
    const intake = this.#intake;
    const lease = this.#parts.bodies.take(this.#size);
    const body = lease?.bytes ?? Buffer.allocUnsafe(this.#size);
    if (intake !== null) intake.copyTo(body);
    else if (chunk !== null) body.set(chunk);
    this.#bodyDone();
    this.take(body, lease);
  }

  #bodyDone(): void {
    this.#isBodyAwaited = false;
    this.#chunk = null;
    this.#deadlines.remove(this);
  }

  #closed(): void {
    if (this.#isBodyAwaited) this.#bodyDone();
    if (this.unreadBytes > 0) this.#parts.unread.remove(this);
    this.#intake?.release();
    this.gone();
  }

  protected answer(answer: DecisionAnswer): void {
    if (typeof answer === 'string') return this.#send(preparedAnswer(this.head, answer), false);
    if (isSentPlain(this.head, answer, this.options.compressMinBytes)) {
      return this.#send(framedAnswer(this.head, answer, false), false);
    }
    gzipCompression.compress(answer as Uint8Array<ArrayBuffer>).then(
      (bytes) => this.#send(framedAnswer(this.head, bytes, true), true),
      (error: unknown) =>
        this.fail(new AppError<InternalReason>('INTERNAL', 'internal error', {}, error)),
    );
  }

  #send(body: Uint8Array, isCompressed: boolean): void {
    const stream = this.#stream;
    this.counted();
    if (stream.destroyed || stream.closed) return;
    const head = this.#headOf(answerTypeOf(this.head));
    if (body.length >= UNREAD_BYTES_MIN) {
      this.unreadBytes = body.length;
      this.#parts.unread.add(this);
    }
    if (this.head.protocol === 'grpc') {
      stream.respond(head, WITH_TRAILERS);
      stream.on('wantTrailers', sendOkTrailers);
    } else {
      if (isCompressed && this.head.protocol === 'connect') head['content-encoding'] = 'gzip';
      stream.respond(head);
    }
    stream.end(body);
  }

  protected refuse(error: AppError): void {
    const stream = this.#stream;
    if (this.#isBodyAwaited) this.#bodyDone();
    if (stream.destroyed || stream.closed) return;
    if (this.head.protocol === 'grpc') {
      const head = this.#headOf(answerTypeOf(this.head));
      errorTrailer(error).forEach((value, name) => {
        head[name] = value;
      });
      stream.respond(head, WITHOUT_BODY);
    } else if (this.head.protocol === 'grpc-web') {
      stream.respond(this.#headOf(answerTypeOf(this.head)));
      stream.end(webErrorBody(error));
    } else {
      const head = this.#headOf('application/json');
      head[':status'] = httpStatusOfReason(error.reason);
      stream.respond(head);
      stream.end(errorBody(error));
    }
    letGo(stream);
  }

  protected handOn(body: Uint8Array): void {
    this.#general.handleBufferedStream(
      this.#stream,
      this.#incoming,
      this.#size > this.#bytesMax ? null : body,
      this.head.isTimeoutStated ? this.leftMs : undefined,
      this.credential,
    );
  }

  #headOf(contentType: string): OutgoingHead {
    const head: OutgoingHead = {
      ':status': 200,
      'content-type': contentType,
      'x-request-id': this.requestId,
    };
    // Says how messages are compressed that say so.
    if (this.head.isGzipWanted && this.head.protocol !== 'connect') head['grpc-encoding'] = 'gzip';
    return head;
  }
}

function sendOkTrailers(this: Http2RequestStream): void {
  this.sendTrailers(OK_TRAILERS);
}
