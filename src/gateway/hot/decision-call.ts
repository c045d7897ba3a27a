import type { BodyBudget, BodyHold } from '../../http/body-budget.ts';
import type { BodyLease } from '../../http/body-pool.ts';
import { gunzipCounted } from '../../http/gunzip-counted.ts';
import type {
  CallOrigin,
  Cancellable,
  RawAnswer,
  RawScope,
  ReadScope,
} from '../../protocol/shard-client.ts';
import { AppError, errorFromData } from '../../shared/app-error.ts';
import type { Credential } from '../callers/caller.ts';
import { sharedNowMs } from '../connect/call-context.ts';
import { deadlineExceeded } from '../connect/connect-error.ts';
import type { ParkedCall } from '../reads/parked-read.ts';
import type { CallHead } from './call-head.ts';
import { messageOf } from './envelope.ts';
import {
  type HotMethod,
  isTenantId,
  LARGE_BODY_BYTES,
  type RawDecisionsOptions,
} from './raw-decisions.ts';
import { createScopeScan, scanJsonScope, scanProtoScope } from './scope-scan.ts';

/** What decision calls of every protocol need. */
export type DecisionCallOptions = Pick<
  RawDecisionsOptions,
  'shards' | 'scopes' | 'meter' | 'bodyBytesMax' | 'compressMinBytes' | 'recorder' | 'stages'
> & {
  /** Of all request bodies of the process. */
  readonly bodyBudget: BodyBudget;
};

/** A plain yes or no, or the bytes of an answer in the format of the call. Valid until the call returns. */
export type DecisionAnswer = 'allowed' | 'denied' | Uint8Array;

const NO_BYTES = new Uint8Array(0);
const NO_SCOPE: RawScope = { projectId: '', tenantId: '', token: '' };
const scan = createScopeScan();

/**
 * One call on the hot path, from its whole body to its one answer, whatever carries it. It decides nothing but the
 * plain case; all else goes to the general path with the same body. Who carries it says how an answer, an
 * error and the general path look, and tells when the caller has gone.
 */
export abstract class DecisionCall implements ParkedCall, CallOrigin {
  readonly hot: HotMethod;
  readonly head: CallHead;
  readonly credential: Credential;
  /** Of the whole body, envelope included, until the answer. */
  protected body: Uint8Array = NO_BYTES;
  protected readonly options: DecisionCallOptions;
  readonly #startedMs = performance.now();
  #message: Uint8Array = NO_BYTES;
  #lease: BodyLease | null = null;
  #decompressed: BodyHold | null = null;
  #expected = NO_SCOPE;
  #running: Cancellable | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;

  constructor(
    options: DecisionCallOptions,
    hot: HotMethod,
    head: CallHead,
    credential: Credential,
  ) {
    this.options = options;
    this.hot = hot;
    this.head = head;
    this.credential = credential;
    // The time that a caller states runs from its headers on, whatever becomes of the body.
    if (head.isTimeoutStated) this.#timer = setTimeout(timedOut, head.timeoutMs, this);
  }

  /** Whether nothing is to be done any more: answered, handed on, or the caller has gone. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Milliseconds left of what the caller stated. */
  protected get leftMs(): number {
    return this.#startedMs + this.head.timeoutMs - performance.now();
  }

  /** The same one each time. */
  abstract readonly requestId: string;

  get caller(): string {
    return this.credential.caller.name;
  }

  protected abstract answer(answer: DecisionAnswer): void;
  protected abstract refuse(error: AppError): void;
  /** `body` is nobody else's. */
  protected abstract handOn(body: Uint8Array): void;

  /** Takes the whole body; `lease` is of its memory. */
  protected take(body: Uint8Array, lease: BodyLease | null): void {
    if (this.#isEnded) {
      lease?.release();
      return;
    }
    this.body = body;
    this.#lease = lease;
    const { stages } = this.options;
    stages?.bodyArrived();
    this.#opened(body);
    stages?.scanned();
  }

  #opened(body: Uint8Array): void {
    const found = messageOf(this.head, body, this.options.bodyBytesMax);
    if (found === null || this.#isRecorded(body.length)) return this.fallBack();
    if (!found.isCompressed) return this.#route(found.message);
    const hold = this.options.bodyBudget.open(this.caller, { cutForRoom: holdsOn });
    this.#decompressed = hold;
    gunzipCounted(found.message, this.options.bodyBytesMax, hold).then(
      (message) => {
        if (this.#isEnded) hold.release();
        else this.#route(message);
      },
      (error: unknown) => {
        hold.release();
        if (this.#isEnded) return;
        const isFull = error instanceof AppError && error.reason === 'BODY_MEMORY_EXHAUSTED';
        // A bomb, or no gzip: the general path says which.
        if (isFull) this.fail(error);
        else this.fallBack();
      },
    );
  }

  /** The caller has gone: what is under way stops, and its memory is given back. */
  gone(): void {
    if (this.#isEnded) return;
    const running = this.#running;
    this.#end();
    running?.cancel();
  }

  /** The time that the caller stated has passed. */
  expire(): void {
    if (this.#isEnded) return;
    this.#running?.cancel();
    this.fail(deadlineExceeded());
  }

  #isRecorded(bodyBytes: number): boolean {
    const { recorder } = this.options;
    if (recorder === undefined || this.hot.rpc === 'ListObjects') return false;
    return bodyBytes <= LARGE_BODY_BYTES && recorder.isNext();
  }

  #route(message: Uint8Array): void {
    this.#message = message;
    if (message.length > this.hot.bytesMax) return this.fallBack();
    const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
    const isPlain =
      this.head.format === 'json'
        ? scanJsonScope(bytes, scan)
        : scanProtoScope(bytes, this.hot.numbers, scan);
    if (!isPlain || !isTenantId(scan.tenantId)) return this.fallBack();
    const { projectId, tenantId, token } = scan;
    const { scopes } = this.credential.caller;
    // The general path says why not.
    if (!scopes.admitTenant(this.hot.rule, projectId, tenantId)) return this.fallBack();
    this.#expected = { projectId, tenantId, token };
    const scope = this.options.scopes.peek(projectId, tenantId, token, this.#deadlineMs(), this);
    if (scope === undefined) this.#park();
    else this.scopeFound(scope);
  }

  #deadlineMs(): number {
    return sharedNowMs() + this.leftMs;
  }

  /** Waits for the scope. What only the general path can tell goes there at once. */
  #park(): void {
    const { projectId, tenantId, token } = this.#expected;
    const request = { projectId, tenantId, token, deadlineMs: this.#deadlineMs(), origin: this };
    const parked = this.options.scopes.park(request, this);
    if (parked !== null) this.#running = parked;
    else if (this.#message.length > LARGE_BODY_BYTES) this.#lookAgain();
    else this.fallBack();
  }

  /** The general path parses on this thread, where a large body would hold up everybody: it is not for the first of a tenant. */
  #lookAgain(): void {
    const { scopes } = this.options;
    const { projectId, tenantId, token } = this.#expected;
    void scopes.settled(projectId, tenantId, token).then(() => {
      if (this.#isEnded) return;
      const scope = scopes.peek(projectId, tenantId, token, this.#deadlineMs(), this);
      if (scope === undefined) this.fallBack();
      else this.scopeFound(scope);
    });
  }

  scopeFound(scope: ReadScope): void {
    const { shards } = this.options;
    const running = shards.raw(
      this.hot.method,
      this.head.format,
      this.#message,
      scope,
      this.#expected,
      (answer) => this.#answered(answer),
    );
    if (running !== null) this.#running = running;
  }

  scopeUnusual(): void {
    this.fallBack();
  }

  scopeFailed(error: AppError): void {
    this.fail(error);
  }

  #answered(answer: RawAnswer): void {
    switch (answer.kind) {
      case 'allowed':
      case 'denied':
        return this.#give(answer.kind);
      case 'body':
        return this.#give(answer.body);
      case 'fallback':
        return this.fallBack();
      case 'error':
        return this.#failed(errorFromData(answer.error));
    }
  }

  #give(answer: DecisionAnswer): void {
    const { stages } = this.options;
    const sinceMs = stages === undefined ? 0 : performance.now();
    this.#end();
    this.answer(answer);
    stages?.written(sinceMs);
  }

  #failed(error: AppError): void {
    if (!this.options.scopes.isMoved(this.#expected.projectId, error)) return this.fail(error);
    // Nothing was answered yet. Once: the next one is left to the general path, which counts.
    if (error.reason === 'SHARD_BEHIND') this.#park();
    else this.fallBack();
  }

  /** Hands the call to the general path, with the body as it came. */
  protected fallBack(): void {
    if (this.head.isTimeoutStated && this.leftMs < 1) return this.fail(deadlineExceeded());
    const body = this.#lease === null ? this.body : new Uint8Array(this.body);
    this.#end();
    this.handOn(body);
  }

  protected fail(error: AppError): void {
    this.#end();
    this.refuse(error);
    this.options.meter.failed(this.hot.rpc, error);
    this.counted();
  }

  /** Counts the time of the call; once, when its answer has been given. */
  protected counted(): void {
    this.options.meter.ended(this.hot.rpc, this.#startedMs);
  }

  #end(): void {
    this.#isEnded = true;
    this.#running = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#lease?.release();
    this.#lease = null;
    this.#decompressed?.release();
    this.#decompressed = null;
    this.#message = NO_BYTES;
    this.body = NO_BYTES;
  }
}

function holdsOn(): void {
  // Never called: it waits for nobody.
}

function timedOut(call: DecisionCall): void {
  call.expire();
}
