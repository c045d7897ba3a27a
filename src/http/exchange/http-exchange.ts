/*
 * Requests of HTTP/1 flow through this folder to handlers, and answers back. `raw-message` is what ../http1 offers, `http-exchange` what handlers see. `offered-answer` and
 * `unread-answers` hold what a client has not read yet, `sse-event` writes events. `answer-sink` writes an answer over either HTTP, by `exchange-sink` or `stream-sink`.
 */
import type { AppError } from '../../shared/app-error.ts';
import { type BodyBudget, NO_OWNER } from '../bodies/body-budget.ts';
import type { BodyDeadlines, SlowBody } from '../bodies/body-deadlines.ts';
import { BodyIntake } from '../bodies/body-intake.ts';
import { type BodyLease, type BodyPool, copyOfChunk } from '../bodies/body-pool.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import type { HeaderFields } from './header-fields.ts';
import { OfferedAnswer } from './offered-answer.ts';
import { type RawRequest, type RawResponse, writeHead } from './raw-message.ts';
import type { UnreadAnswers } from './unread-answers.ts';

/** What an exchange needs of its server. */
export interface ExchangeHost {
  readonly isDraining: boolean;
  readonly discardBytesMax: number;
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly unread: UnreadAnswers;
  /** Of the request that is being taken. */
  readonly headerFields: HeaderFields;
  exchangeBegan(): void;
  exchangeEnded(): void;
}

/** Takes a body, and the lease of its memory where it is lent. `refusal`: there is none; only where nobody else is notified of it. */
export type OnBody = (body: Uint8Array, lease: BodyLease | null, refusal: AppError | null) => void;

type ExchangeState = 'open' | 'sending' | 'ended';

/** Above this a body is offered in parts as the client takes them, instead of copied whole. */
const SEND_WHOLE_BYTES_MAX = 65_536;
/** A body that comes in one piece and is no longer counts against no budget: there are as many as sockets are read at once. */
const UNCOUNTED_BYTES_MAX = 65_536;
const NO_HEADERS: readonly string[] = [];
const NO_BYTES = new Uint8Array(0);

/**
 * One HTTP/1 request and its answer. The request side (`header`, `path`,
 * `readBody`…) may be used only synchronously inside the handler; the answer side at any time, and
 * does nothing once the client has gone. Hot: one object and one closure a request.
 */
export class HttpExchange implements SlowBody {
  readonly #res: RawResponse;
  readonly #req: RawRequest;
  readonly #host: ExchangeHost;
  #state: ExchangeState = 'open';
  #closeAfter = false;
  #isBodyPending = false;
  #isPaused = false;
  #bodyOwner = NO_OWNER;
  #intake: BodyIntake | null = null;
  #onBodyOver: (() => void) | null = null;
  #onCut: (refusal: AppError) => void = doNothing;
  /** A long answer, or one in parts of a stated length. */
  #offered: OfferedAnswer | null = null;
  #abortListener: (() => void) | null = null;
  #writableListener: (() => void) | null = null;

  constructor(res: RawResponse, req: RawRequest, host: ExchangeHost) {
    this.#res = res;
    this.#req = req;
    this.#host = host;
    host.exchangeBegan();
    res.onAborted(() => this.#abort());
  }

  /** The value of a header by its lower-case name, '' when absent. */
  header(lowerCaseName: string): string {
    return this.#host.headerFields.get(lowerCaseName);
  }

  /** All headers. Errors: a TypeError for a value that no header may hold. Allocates. */
  headers(): Headers {
    const headers = new Headers();
    this.#host.headerFields.forEach((name, value) => headers.append(name, value));
    return headers;
  }

  /** The path without the query, as sent. */
  path(): string {
    return this.#req.getUrl();
  }

  method(): string {
    return this.#req.getCaseSensitiveMethod();
  }

  /** What follows `?`, undecoded; '' when absent. */
  query(): string {
    return this.#req.getQuery();
  }

  /** The nth `:name` of the route's pattern, '' when there is none. */
  parameter(index: number): string {
    return this.#req.getParameter(index) ?? '';
  }

  /** The address of the peer as text; IPv4 as such also on an IPv6 socket. */
  remoteAddress(): string {
    const text = this.#res.getRemoteAddress();
    return text.startsWith('::ffff:') ? text.slice(7) : text;
  }

  /** True until an answer begins or the client has gone. */
  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** True once the answer is complete or the client has gone. */
  get isEnded(): boolean {
    return this.#state === 'ended';
  }

  /** Called once if the client goes away before the answer is complete. One listener. */
  onAborted(listener: () => void): void {
    this.#abortListener = listener;
  }

  /** Whose share of the budget of bodies this one counts against; NO_OWNER until it is known who calls. */
  get bodyOwner(): string {
    return this.#bodyOwner;
  }

  set bodyOwner(owner: string) {
    this.#bodyOwner = owner;
    const full = this.#intake?.moveTo(owner) ?? null;
    if (full !== null) this.#onCut(full);
  }

  /** The budget of all bodies of the process. */
  get bodyBudget(): BodyBudget {
    return this.#host.bodyBudget;
  }

  /**
   * Collects the body. `onBody` gets a copy that nobody else writes to, at most `maxBytes` long (a
   * short one shares its ArrayBuffer with others: copy before transferring it to another thread).
   * `onRefused` is called instead of one that is longer, with null, or that there is no room for or that comes in crumbs, with the
   * error; where it is null `onBody` is reported. Before it the rest was thrown away up to the listener's discard limit, so that the client can read the
   * answer. One of them is called, unless the client goes or
   * is cut for taking longer than the listener's body timeout: then only the abort listener is.
   *
   * With a `pool` the body may lie in memory that is lent: `onBody` then gets the lease as well, and must
   * see to its release. Without, `onBody` waits until all that has come with the body is parsed: a request right behind it ends
   * the connection, and nothing may have been done by then. With `declaredBytes`, of the header content-length, a long body is put together as it comes.
   */
  readBody(
    maxBytes: number,
    onBody: OnBody,
    onRefused: ((refusal: AppError | null) => void) | null,
    pool?: BodyPool,
    declaredBytes = 0,
  ): void {
    let isOver = false;
    this.#res.onData((chunk, isLast) => {
      if (isOver || this.#state !== 'open') return;
      const bytes = chunk.byteLength;
      if (this.#intake === null && isLast && bytes <= UNCOUNTED_BYTES_MAX && bytes <= maxBytes) {
        isOver = true;
        const lease = pool === undefined ? null : pool.take(bytes);
        if (lease === null) return this.#give(copyOfChunk(chunk), null, pool, onBody);
        lease.bytes.set(chunk);
        onBody(lease.bytes, lease, null);
        return;
      }
      if (!isLast) this.#expectBody();
      this.#intake ??= this.#newIntake(maxBytes, pool, declaredBytes, (refusal) => {
        isOver = true;
        this.#bodyDone();
        // Whoever is cut may be so within a call of another connection: its answer waits for the turn to end.
        setImmediate(() => this.#refuseBody(refusal, true, maxBytes, onBody, onRefused));
      });
      const outcome = this.#intake.add(chunk, isLast);
      if (outcome === 'more') return;
      isOver = true;
      this.#bodyDone();
      if (outcome === 'refused') {
        const { refusal } = this.#intake;
        this.#refuseBody(refusal, !isLast, maxBytes, onBody, onRefused);
        return;
      }
      const { bytes: whole, lease } = this.#intake.takeWhole();
      this.#give(whole, lease, pool, onBody);
    });
  }

  #newIntake(
    bytesMax: number,
    pool: BodyPool | undefined,
    declaredBytes: number,
    onCut: (refusal: AppError) => void,
  ): BodyIntake {
    const { discardBytesMax, bodyBudget: budget } = this.#host;
    const limits = { bytesMax, discardBytesMax, budget, owner: this.#bodyOwner };
    this.#onCut = onCut;
    return new BodyIntake({ ...limits, pool, declaredBytes, onCut });
  }

  #refuseBody(
    refusal: AppError | null,
    isRestOpen: boolean,
    maxBytes: number,
    onBody: OnBody,
    onRefused: ((refusal: AppError | null) => void) | null,
  ): void {
    if (this.#state !== 'open') return;
    this.#closeAfter = isRestOpen;
    if (onRefused !== null) onRefused(refusal);
    else onBody(NO_BYTES, null, refusal ?? bodyTooLarge(maxBytes));
  }

  #give(
    body: Uint8Array,
    lease: BodyLease | null,
    pool: BodyPool | undefined,
    onBody: OnBody,
  ): void {
    if (pool !== undefined) return onBody(body, lease, null);
    setImmediate(() => {
      if (this.#state === 'open') onBody(body, null, null);
    });
  }

  /**
   * Passes the body on chunk by chunk (each is valid until `onChunk` returns); `pauseBody` and `resumeBody` hold it back.
   * No limit on the whole, no deadline: for streams, whose messages are bounded one by one. `onOver` is called once the answer
   * is complete or the client has gone.
   */
  streamBody(onChunk: (chunk: Uint8Array, isLast: boolean) => void, onOver: () => void): void {
    this.#onBodyOver = onOver;
    this.#res.onData((chunk, isLast) => {
      if (this.#state !== 'ended') onChunk(chunk, isLast);
    });
  }

  pauseBody(): void {
    if (this.#state === 'ended') return;
    this.#isPaused = true;
    this.#res.pause();
  }

  /**
   * Also done by an answer, so that the connection can go on; what is still coming is thrown away. Not before where the body is
   * complete: it begins the listener's time-out anew, which would end a request that takes long.
   */
  resumeBody(): void {
    if (this.#state === 'ended' || !this.#isPaused) return;
    this.#isPaused = false;
    this.#res.resume();
  }

  /** Answers with a whole body. `extra` is name, value, name, value… with lower-case names. */
  send(
    statusCode: number,
    contentType: string,
    body: string | Uint8Array,
    extra: readonly string[] = NO_HEADERS,
  ): void {
    if (this.#state !== 'open') return;
    this.resumeBody();
    this.#state = 'sending';
    this.#res.cork(() => {
      writeHead(this.#res, statusCode, contentType, extra);
      if (body.length <= SEND_WHOLE_BYTES_MAX) {
        this.#res.end(body, this.#closeAfter || this.#host.isDraining);
        this.#end();
      } else {
        this.#offer(typeof body === 'string' ? Buffer.from(body) : body);
      }
    });
  }

  /** Answers without a body. */
  sendEmpty(statusCode: number, extra: readonly string[] = NO_HEADERS): void {
    if (this.#state !== 'open') return;
    this.resumeBody();
    this.#state = 'sending';
    this.#res.cork(() => {
      writeHead(this.#res, statusCode, '', extra);
      this.#res.end(undefined, this.#closeAfter || this.#host.isDraining);
      this.#end();
    });
  }

  /**
   * Answers with a head alone: to HEAD, with the length that the body of a GET would have, or with a
   * status that has no body (204, 304) and no length either.
   */
  sendHead(
    statusCode: number,
    contentType: string,
    contentLength: number | undefined,
    extra: readonly string[] = NO_HEADERS,
  ): void {
    if (this.#state !== 'open') return;
    this.#state = 'sending';
    this.#res.cork(() => {
      writeHead(this.#res, statusCode, contentType, extra);
      const isClosing = this.#closeAfter || this.#host.isDraining;
      if (contentLength !== undefined) {
        this.#res.endWithoutBody(contentLength, isClosing);
      } else {
        // An explicit undefined would be written as a length.
        if (isClosing) this.#res.writeHeader('connection', 'close');
        this.#res.endWithoutBody();
      }
      this.#end();
    });
  }

  /** Begins an answer of `totalBytes` (≥ 1); `writeSized` follows until all of them are given. */
  beginSized(
    statusCode: number,
    contentType: string,
    totalBytes: number,
    extra: readonly string[] = NO_HEADERS,
  ): void {
    if (this.#state !== 'open') return;
    this.#state = 'sending';
    this.#newOffered(totalBytes).followParts();
    this.#res.cork(() => {
      writeHead(this.#res, statusCode, contentType, extra);
      if (this.#closeAfter || this.#host.isDraining) this.#res.writeHeader('connection', 'close');
    });
  }

  /**
   * Sends the next part of an answer begun with `beginSized`; the parts together are exactly as long
   * as stated. Resolves once the part no longer waits here, or the client has gone.
   */
  writeSized(chunk: Uint8Array): Promise<void> {
    if (this.#state !== 'sending' || chunk.byteLength === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#writableListener = resolve;
      this.#offered?.offerPart(chunk);
    });
  }

  /** Begins an answer of unknown length; `write` and `finish` follow. */
  begin(statusCode: number, contentType: string, extra: readonly string[] = NO_HEADERS): void {
    if (this.#state !== 'open') return;
    this.#state = 'sending';
    this.#res.cork(() => {
      writeHead(this.#res, statusCode, contentType, extra);
      if (this.#host.isDraining) this.#res.writeHeader('connection', 'close');
      this.#res.write(NO_BYTES);
    });
  }

  /** Sends a part; false means that it waits in memory: send more only after `onWritable`. */
  write(chunk: string | Uint8Array): boolean {
    if (this.#state !== 'sending') return true;
    if (chunk.length === 0) return true;
    let hasCapacity = true;
    this.#res.cork(() => {
      hasCapacity = this.#res.write(chunk);
    });
    return hasCapacity;
  }

  /** Calls `listener` once, when the client has taken what waited or has gone. */
  onWritable(listener: () => void): void {
    if (this.#state !== 'sending') return listener();
    this.#writableListener = listener;
    this.#res.onWritable(() => {
      this.#wakeWriter();
      return true;
    });
  }

  /** Completes an answer begun with `begin`. */
  finish(): void {
    if (this.#state !== 'sending') return;
    this.resumeBody();
    this.#res.cork(() => this.#res.end());
    this.#end();
  }

  /** Drops the connection; the abort listener runs. */
  abort(): void {
    if (this.#state !== 'ended') this.#res.close();
  }

  /** The body took too long (called by the listener's deadlines). */
  cut(): void {
    this.abort();
  }

  #offer(body: Uint8Array): void {
    if (this.#closeAfter || this.#host.isDraining) this.#res.writeHeader('connection', 'close');
    this.#newOffered(body.byteLength).offerWhole(body, this.#host.unread);
  }

  #newOffered(totalBytes: number): OfferedAnswer {
    const onDone = (): void => this.#end();
    const onCapacity = (): void => this.#wakeWriter();
    return (this.#offered = new OfferedAnswer(this.#res, totalBytes, onDone, onCapacity));
  }

  #expectBody(): void {
    if (this.#isBodyPending) return;
    this.#isBodyPending = true;
    this.#host.bodyDeadlines.add(this);
  }

  #bodyDone(): void {
    if (!this.#isBodyPending) return;
    this.#isBodyPending = false;
    this.#host.bodyDeadlines.remove(this);
  }

  #wakeWriter(): void {
    const listener = this.#writableListener;
    this.#writableListener = null;
    listener?.();
  }

  #end(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#offered?.over();
    this.#bodyDone();
    this.#intake?.release();
    this.#onBodyOver?.();
    this.#onBodyOver = null;
    this.#abortListener = null;
    this.#host.exchangeEnded();
  }

  #abort(): void {
    if (this.#state === 'ended') return;
    const listener = this.#abortListener;
    this.#end();
    listener?.();
    this.#wakeWriter();
  }
}

function doNothing(): void {
  // Nothing is read of the body.
}
