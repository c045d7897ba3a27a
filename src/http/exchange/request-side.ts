import type { AppError } from '../../shared/app-error.ts';
import { type BodyBudget, NO_OWNER } from '../bodies/body-budget.ts';
import type { SlowBody } from '../bodies/body-deadlines.ts';
import { BodyIntake } from '../bodies/body-intake.ts';
import { type BodyLease, type BodyPool, copyOfChunk } from '../bodies/body-pool.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import type { ExchangeHost } from './exchange-host.ts';
import type { RawRequest, RawResponse } from './raw-message.ts';

/**
 * Takes a body, and the lease of its memory where it has one. `refusal` is set where there is no body, and only without
 * `onRefused`.
 */
export type OnBody = (body: Uint8Array, lease: BodyLease | null, refusal: AppError | null) => void;

type ExchangeState = 'open' | 'sending' | 'ended';

/** Bytes up to which a body in one piece is not counted: there are only as many as sockets that are read at once. */
const UNCOUNTED_BYTES_MAX = 65_536;
const NO_BYTES = new Uint8Array(0);

/** The request of an exchange and the intake of its body. A base class, so that request and answer are one object. Hot. */
export abstract class RequestSide implements SlowBody {
  protected readonly res: RawResponse;
  protected readonly host: ExchangeHost;
  protected state: ExchangeState = 'open';
  /** Whether the answer closes the connection, since the rest of a refused body may still come. */
  protected closeAfter = false;
  readonly #req: RawRequest;
  #isBodyPending = false;
  #isPaused = false;
  #bodyOwner = NO_OWNER;
  #intake: BodyIntake | null = null;
  #onBodyOver: (() => void) | null = null;
  #onCut: (refusal: AppError) => void = doNothing;

  constructor(res: RawResponse, req: RawRequest, host: ExchangeHost) {
    this.res = res;
    this.#req = req;
    this.host = host;
  }

  /** The value of a header by its lower-case name, '' when absent. */
  header(lowerCaseName: string): string {
    return this.host.headerFields.get(lowerCaseName);
  }

  /** All headers. Errors: a TypeError for a value that no header may hold. Allocates. */
  headers(): Headers {
    const headers = new Headers();
    this.host.headerFields.forEach((name, value) => headers.append(name, value));
    return headers;
  }

  /** The path without the query, as sent. */
  path(): string {
    return this.#req.getUrl();
  }

  method(): string {
    return this.#req.getCaseSensitiveMethod();
  }

  /** The query after `?`, undecoded; '' when absent. */
  query(): string {
    return this.#req.getQuery();
  }

  /** The value of the nth `:name` of the route's pattern; '' where it has fewer. */
  parameter(index: number): string {
    return this.#req.getParameter(index) ?? '';
  }

  /** The address of the peer as text; IPv4 as such also on an IPv6 socket. */
  remoteAddress(): string {
    const text = this.res.getRemoteAddress();
    return text.startsWith('::ffff:') ? text.slice(7) : text;
  }

  /** True until an answer begins or the client has gone. */
  get isOpen(): boolean {
    return this.state === 'open';
  }

  /** True once the answer is complete or the client has gone. */
  get isEnded(): boolean {
    return this.state === 'ended';
  }

  /** Name of the caller whose share of the body budget this body counts against; NO_OWNER while the caller is not known. */
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
    return this.host.bodyBudget;
  }

  /**
   * Collects the body. `onBody` gets a copy that no other code writes to, at most `maxBytes` long. A short one shares its
   * ArrayBuffer with others: copy it before transferring it to another thread.
   *
   * `onRefused` is called instead for a body that is longer, with null. It gets the error for a body that exceeds the budget,
   * is evicted, or comes in tiny pieces. Where `onRefused` is null, `onBody` gets the refusal. When a chunk exceeds the
   * length or the budget, the rest is thrown away first, up to the listener's discard limit. So the client can read the
   * answer. One of the two is called, unless the client goes or exceeds the listener's body timeout: then only the abort
   * listener is called.
   *
   * With a `pool` the body may be in leased memory: `onBody` then gets the lease, and must see to its release. Without a
   * pool, `onBody` waits until all that has come with the body is parsed. A request right behind it ends the connection, and
   * nothing may have been done by then. `declaredBytes` is the header content-length: with it and a `pool`, a long body is
   * put together as it comes.
   */
  readBody(
    maxBytes: number,
    onBody: OnBody,
    onRefused: ((refusal: AppError | null) => void) | null,
    pool?: BodyPool,
    declaredBytes = 0,
  ): void {
    let isOver = false;
    this.res.onData((chunk, isLast) => {
      if (isOver || this.state !== 'open') return;
      const bytes = chunk.byteLength;
      if (this.#intake === null && isLast && bytes <= UNCOUNTED_BYTES_MAX && bytes <= maxBytes) {
        isOver = true;
        const lease = pool === undefined ? null : pool.acquire(bytes);
        if (lease === null) return this.#deliver(copyOfChunk(chunk), null, pool, onBody);
        lease.bytes.set(chunk);
        onBody(lease.bytes, lease, null);
        return;
      }
      if (!isLast) this.#expectBody();
      this.#intake ??= this.#newIntake(maxBytes, pool, declaredBytes, (refusal) => {
        isOver = true;
        this.#bodyDone();
        // The body may be evicted within a call of another connection: the refusal waits for the turn to end.
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
      this.#deliver(whole, lease, pool, onBody);
    });
  }

  #newIntake(
    bytesMax: number,
    pool: BodyPool | undefined,
    declaredBytes: number,
    onCut: (refusal: AppError) => void,
  ): BodyIntake {
    const { discardBytesMax, bodyBudget: budget } = this.host;
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
    if (this.state !== 'open') return;
    this.closeAfter = isRestOpen;
    if (onRefused !== null) onRefused(refusal);
    else onBody(NO_BYTES, null, refusal ?? bodyTooLarge(maxBytes));
  }

  #deliver(
    body: Uint8Array,
    lease: BodyLease | null,
    pool: BodyPool | undefined,
    onBody: OnBody,
  ): void {
    if (pool !== undefined) return onBody(body, lease, null);
    setImmediate(() => {
      if (this.state === 'open') onBody(body, null, null);
    });
  }

  /**
   * Passes the body on chunk by chunk; a chunk is valid until `onChunk` returns. `pauseBody` and `resumeBody` hold it back.
   * There is no limit on the whole and no deadline: messages of streams are bounded one by one. `onOver` is called once the
   * answer is complete or the client has gone.
   */
  streamBody(onChunk: (chunk: Uint8Array, isLast: boolean) => void, onOver: () => void): void {
    this.#onBodyOver = onOver;
    this.res.onData((chunk, isLast) => {
      if (this.state !== 'ended') onChunk(chunk, isLast);
    });
  }

  pauseBody(): void {
    if (this.state === 'ended') return;
    this.#isPaused = true;
    this.res.pause();
  }

  /**
   * Resumes a paused body. An answer does so too, so that the connection can go on; the rest of the body is thrown away. Does
   * nothing for a body that was not paused: resuming restarts the listener's timeout, which would end a long request.
   */
  resumeBody(): void {
    if (this.state === 'ended' || !this.#isPaused) return;
    this.#isPaused = false;
    this.res.resume();
  }

  /** Drops the connection; the abort listener runs. */
  abort(): void {
    if (this.state !== 'ended') this.res.close();
  }

  /** Drops the connection of a body that took too long (called by the listener's deadlines). */
  cut(): void {
    this.abort();
  }

  /** Releases what the body still holds, when the exchange ends. */
  protected endBody(): void {
    this.#bodyDone();
    this.#intake?.release();
    this.#onBodyOver?.();
    this.#onBodyOver = null;
  }

  #expectBody(): void {
    if (this.#isBodyPending) return;
    this.#isBodyPending = true;
    this.host.bodyDeadlines.add(this);
  }

  #bodyDone(): void {
    if (!this.#isBodyPending) return;
    this.#isBodyPending = false;
    this.host.bodyDeadlines.remove(this);
  }
}

function doNothing(): void {
  // Nothing is read of the body.
}
