import type { IncomingHttpHeaders } from 'node:http2';
import type { BodyBudget } from '../../http/bodies/body-budget.ts';
import type { BodyDeadlines } from '../../http/bodies/body-deadlines.ts';
import { BodyIntake } from '../../http/bodies/body-intake.ts';
import type { BodyPool } from '../../http/bodies/body-pool.ts';
import { ENVELOPE_BYTES } from '../../http/bodies/envelope.ts';
import type { ConnectAdapter } from '../../http/connect/adapter-options.ts';
import type { UnreadAnswer, UnreadAnswers } from '../../http/exchange/unread-answers.ts';
import { headerText } from '../../http/header-text.ts';
import { CANCEL, ENHANCE_YOUR_CALM } from '../../http/http2/frames/protocol.ts';
import { type Http2RequestStream, release } from '../../http/http2/request-stream.ts';
import { REQUEST_ID_HEADER } from '../../http/request-id.ts';
import type { AppError } from '../../shared/app-error.ts';
import type { Credential } from '../callers/caller.ts';
import { errorBody, httpStatusOfReason } from '../connect/connect-error.ts';
import { errorTrailer, webErrorBody } from './answer-frames.ts';
import type { PlainHead } from './call-head.ts';
import { DecisionCall, type DecisionCallOptions } from './decision-call.ts';
import type { HotMethod } from './hot-methods.ts';
import type { AwaitedBody, LateBodies } from './late-bodies.ts';

export type StreamCallOptions = DecisionCallOptions & {
  readonly general: Pick<ConnectAdapter, 'handleBufferedStream'>;
};

/** Parts that the calls of one listener share. */
export type StreamCallParts = {
  readonly bodies: BodyPool;
  /** Budget of the bodies that come in several chunks, or late. */
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

/** A decision call over HTTP/2: gRPC, gRPC-Web or Connect. */
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

  constructor(
    options: StreamCallOptions,
    parts: StreamCallParts,
    hot: HotMethod,
    head: PlainHead,
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

  protected get givenId(): string {
    return headerText(this.#incoming[REQUEST_ID_HEADER]);
  }

  protected get keepsAnswer(): boolean {
    return true;
  }

  protected watchCaller(): void {
    // The stream calls `gone` when it closes, from the first moment on.
  }

  get owner(): object {
    return this.credential.caller;
  }

  get progress(): number {
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

  /** Copies the first chunk: it shares the memory of all that was read with it, and must not be kept. */
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
    const lease = this.#parts.bodies.acquire(this.#size);
    const body = lease?.bytes ?? Buffer.allocUnsafe(this.#size);
    if (intake !== null) intake.copyTo(body);
    else if (chunk !== null) body.set(chunk);
    this.#bodyDone();
    this.receiveBody(body, lease);
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

  protected send(body: Uint8Array, isCompressed: boolean): void {
    const stream = this.#stream;
    this.counted();
    if (stream.destroyed) return;
    const head = this.#headOf(this.head.answerType);
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
    if (stream.destroyed) return;
    if (this.head.protocol === 'grpc') {
      const head = this.#headOf(this.head.answerType);
      errorTrailer(error).forEach((value, name) => {
        head[name] = value;
      });
      stream.respond(head, WITHOUT_BODY);
    } else if (this.head.protocol === 'grpc-web') {
      stream.respond(this.#headOf(this.head.answerType));
      stream.end(webErrorBody(error));
    } else {
      const head = this.#headOf('application/json');
      head[':status'] = httpStatusOfReason(error.reason);
      stream.respond(head);
      stream.end(errorBody(error));
    }
    release(stream);
  }

  protected handOn(body: Uint8Array): void {
    this.#general.handleBufferedStream(
      this.#stream,
      this.#incoming,
      this.#size > this.#bytesMax ? null : body,
      this.head.isTimeoutStated ? this.leftMs : undefined,
      this.#deadlines,
      this.credential,
    );
  }

  #headOf(contentType: string): OutgoingHead {
    const head: OutgoingHead = {
      ':status': 200,
      'content-type': contentType,
      [REQUEST_ID_HEADER]: this.requestId,
    };
    // States the compression of the messages that are marked as compressed.
    if (this.head.isGzipWanted && this.head.protocol !== 'connect') head['grpc-encoding'] = 'gzip';
    return head;
  }
}

function sendOkTrailers(this: Http2RequestStream): void {
  this.sendTrailers(OK_TRAILERS);
}
