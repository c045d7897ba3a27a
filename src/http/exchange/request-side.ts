import type { AppError } from '../../shared/app-error.ts';
import { type BodyBudget, NO_OWNER } from '../bodies/body-budget.ts';
import type { SlowBody } from '../bodies/body-deadlines.ts';
import { BodyIntake } from '../bodies/body-intake.ts';
import { type BodyLease, type BodyPool, copyOfChunk } from '../bodies/body-pool.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import type { ExchangeHost } from './exchange-host.ts';
import type { RawRequest, RawResponse } from './raw-message.ts';

/** Takes a body, and the lease of its memory where it has one. `refusal`: there is no body; used only without `onRefused`. */
export type OnBody = (body: Uint8Array, lease: BodyLease | null, refusal: AppError | null) => void;

type ExchangeState = 'open' | 'sending' | 'ended';

/** A body that comes in one piece and is no longer counts against no budget: there are as many as sockets are read at once. */
const UNCOUNTED_BYTES_MAX = 65_536;
const NO_BYTES = new Uint8Array(0);

/** The request of an exchange and the intake of its body. A base class, so that request and answer are one object. Hot. */
export abstract class RequestSide implements SlowBody {
  protected readonly res: RawResponse;
  protected readonly host: ExchangeHost;
  protected state: ExchangeState = 'open';
  /** The answer closes the connection: the rest of a refused body may still come. */
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
    return this.host.bodyBudget;
  }

  /**
   * Collects the body. `onBody` gets a copy that nobody else writes to, at most `maxBytes` long (a short one shares its
   * ArrayBuffer with others: copy before transferring it to another thread). `onRefused` is called instead of one that is
   * longer, with null, or that exceeds the budget or comes in crumbs, with the error; where it is null `onBody` gets the
   * refusal. Before it the rest was thrown away up to the listener's discard limit, so that the client can read the answer. One
   * of them is called, unless the client goes or is cut for taking longer than the listener's body timeout: then only the abort
   * listener is.
   *
   * With a `pool` the body may be in leased memory: `onBody` then gets the lease as well, and must see to its release. Without,
   * `onBody` waits until all that has come with the body is parsed: a request right behind it ends the connection, and nothing
   * may have been done by then. With `declaredBytes`, of the header content-length, a long body is put together as it comes.
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
   * Passes the body on chunk by chunk (each is valid until `onChunk` returns); `pauseBody` and `resumeBody` hold it back.
   * No limit on the whole, no deadline: for streams, whose messages are bounded one by one. `onOver` is called once the answer
   * is complete or the client has gone.
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
   * Also done by an answer, so that the connection can go on; what is still coming is thrown away. Not before where the body is
   * complete: it begins the listener's time-out anew, which would end a request that takes long.
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

  /** The body took too long (called by the listener's deadlines). */
  cut(): void {
    this.abort();
  }

  /** Ends what the body still holds, with the exchange. */
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
