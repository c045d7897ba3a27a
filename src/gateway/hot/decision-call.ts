import { type BodyBudget, type BodyHold, notEvictable } from '../../http/bodies/body-budget.ts';
import type { BodyLease } from '../../http/bodies/body-pool.ts';
import { gunzipCounted } from '../../http/bodies/gunzip-counted.ts';
import { gzipped } from '../../http/bodies/gzip.ts';
import { deadlineExceeded, internalError } from '../../http/connect/protocol/call-errors.ts';
import { requestIdOf } from '../../http/request-id.ts';
import { isTenantId } from '../../model/names.ts';
import type {
  CallOrigin,
  Cancellable,
  RawAnswer,
  RawScope,
  ReadScope,
  ShardClient,
} from '../../protocol/shard-client.ts';
import { fillTokenSpace } from '../../protocol/token-space.ts';
import { AppError, errorFromData } from '../../shared/app-error.ts';
import type { CallStages } from '../../shared/time/stage-times.ts';
import type { Credential } from '../callers/caller.ts';
import type { DecisionMeter, DecisionRpc } from '../reads/decision-meter.ts';
import type { ScopeWaiter } from '../reads/pending-read.ts';
import type { QueryRecorder } from '../reads/query-recorder.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import { type DecisionAnswer, framedAnswer, isSentPlain, preparedAnswer } from './answer-frames.ts';
import { isCompressedMessage, messageOf, type PlainHead } from './call-head.ts';
import type { DecisionReader } from './decision-reader.ts';
import { type HotMethod, LARGE_BODY_BYTES } from './hot-methods.ts';
import { createScopeScan } from './scan/scope-scan.ts';

/** Versions of models that the workers have. */
export interface ModelVersions {
  /** Number by which a scope names the version that a query names; undefined: not every worker has it. Hot. */
  peek(projectId: string, version: number): number | undefined;
}

/** Parts that decision calls of every carrier need. */
export type DecisionCallOptions = {
  readonly shards: Pick<ShardClient, 'raw'>;
  readonly scopes: Pick<
    ReadScopes,
    'peek' | 'enqueue' | 'settled' | 'isMoved' | 'tokenOf' | 'projectIdOf'
  >;
  readonly meter: Pick<DecisionMeter, 'ended' | 'failed'>;
  /** Largest message, compressed and not. */
  readonly bodyBytesMax: number;
  /** Budget of all request bodies of the process. */
  readonly bodyBudget: BodyBudget;
  /** Answers shorter than this are not compressed; the general path's own bound. */
  readonly compressMinBytes: number;
  /** Absent where no queries are recorded: those that are go the general path, which reads them. */
  readonly recorder?: Pick<QueryRecorder, 'isNext'> | undefined;
  /** Versions of models that queries name. */
  readonly versions: ModelVersions;
  /** Reads what is refused before a worker has. */
  readonly reader: Pick<DecisionReader, 'isPlain' | 'read'>;
  /** Callback for the reason of each error of a worker. */
  readonly onRefused?: ((reason: string) => void) | undefined;
  /** Measures the stages of calls. */
  readonly stages?: CallStages | undefined;
};

const NO_BYTES = new Uint8Array(0);
const NO_SCOPE: RawScope = { projectId: '', tenantId: '', token: '' };
const scan = createScopeScan();
/** Read once: a getter that costs more than the clock itself. */
const { timeOrigin } = performance;

/**
 * One call on the hot path, from its headers to its one answer, whatever carries it: no message objects, no promises, one
 * message to a worker per tick for all calls of it. It reads the scope alone of a body, and the worker decodes the rest. A call
 * whose scope it cannot read, does not know or may not reach goes to the general path with the same body. Its carrier
 * (`ExchangeCall` over HTTP/1.1, `StreamCall` over HTTP/2) sends the answer or the error, leads to the general path, and calls
 * `gone` when the caller has gone.
 */
export abstract class DecisionCall implements ScopeWaiter, CallOrigin {
  readonly hot: HotMethod;
  readonly head: PlainHead;
  readonly credential: Credential;
  readonly #options: DecisionCallOptions;
  readonly #startedMs = performance.now();
  /** The whole body, envelope included, until the answer. */
  #body: Uint8Array = NO_BYTES;
  #message: Uint8Array = NO_BYTES;
  #lease: BodyLease | null = null;
  #decompressed: BodyHold | null = null;
  #expected = NO_SCOPE;
  #running: Cancellable | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;
  #issuedId = '';
  /** The method by which it is counted. */
  #rpc: DecisionRpc;

  constructor(
    options: DecisionCallOptions,
    hot: HotMethod,
    head: PlainHead,
    credential: Credential,
  ) {
    this.#options = options;
    this.hot = hot;
    this.#rpc = hot.rpc;
    this.head = head;
    this.credential = credential;
    // The time that a caller states runs from its headers on, whatever becomes of the body.
    if (head.isTimeoutStated) this.#timer = setTimeout(timedOut, head.timeoutMs, this);
  }

  /** Whether nothing is to be done any more: answered, handed on, or the caller has gone. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Absolute, on the clock that all threads share. */
  get deadlineMs(): number {
    return timeOrigin + this.#startedMs + this.head.timeoutMs;
  }

  /** Milliseconds left of what the caller stated. */
  protected get leftMs(): number {
    return this.#startedMs + this.head.timeoutMs - performance.now();
  }

  /** The same one each time. */
  get requestId(): string {
    if (this.#issuedId === '') this.#issuedId = requestIdOf(this.givenId);
    return this.#issuedId;
  }

  get caller(): string {
    return this.credential.caller.name;
  }

  /** Whether the scopes of the caller admit it there; if not, the general path answers why. */
  reaches(projectId: string, tenantId: string): boolean {
    return this.credential.caller.scopes.admitTenant(this.hot.rule, projectId, tenantId);
  }

  /** The request id that the caller gave, '' for none. */
  protected abstract readonly givenId: string;
  /** Whether `send` needs the bytes after it has returned. */
  protected abstract readonly keepsAnswer: boolean;
  /**
   * Watches the caller while the call continues elsewhere: from now on, at the latest, the carrier calls `gone` when the caller
   * goes.
   */
  protected abstract watchCaller(): void;
  /** Sends the body of a good answer, framed already, and counts it. */
  protected abstract send(body: Uint8Array, isCompressed: boolean): void;
  protected abstract refuse(error: AppError): void;
  /** Hands the call to the general path. `body` is nobody else's. */
  protected abstract handOn(body: Uint8Array): void;

  /** Takes the whole body; `lease` is of its memory. */
  protected receiveBody(body: Uint8Array, lease: BodyLease | null): void {
    if (this.#isEnded) {
      lease?.release();
      return;
    }
    this.#body = body;
    this.#lease = lease;
    const { stages } = this.#options;
    stages?.bodyArrived();
    this.#opened(body);
    stages?.scanned();
  }

  #opened(body: Uint8Array): void {
    const message = messageOf(this.head, body, this.#options.bodyBytesMax);
    if (message === null || this.#isRecorded(body.length)) return this.fallBack();
    if (isCompressedMessage(this.head, body)) this.#decompress(message);
    else this.#route(message);
  }

  #decompress(compressed: Uint8Array): void {
    const { bodyBudget, bodyBytesMax } = this.#options;
    const hold = bodyBudget.open(this.caller, notEvictable);
    this.#decompressed = hold;
    this.watchCaller();
    gunzipCounted(compressed, bodyBytesMax, hold).then(
      (message) => {
        if (this.#isEnded) hold.release();
        else this.#route(message);
      },
      (error: unknown) => {
        hold.release();
        if (this.#isEnded) return;
        const isFull = error instanceof AppError && error.reason === 'BODY_MEMORY_EXHAUSTED';
        // A bomb, or no gzip: the general path finds which.
        if (isFull) this.fail(error);
        else this.fallBack();
      },
    );
  }

  /** The caller has gone: what is under way stops, and its memory is released. */
  gone(): void {
    if (this.#isEnded) return;
    const running = this.#running;
    this.#close();
    running?.cancel();
  }

  /** The time that the caller stated has passed. */
  expire(): void {
    if (this.#isEnded) return;
    this.#running?.cancel();
    this.fail(deadlineExceeded());
  }

  #isRecorded(bodyBytes: number): boolean {
    const { recorder } = this.#options;
    if (recorder === undefined || !this.hot.isRecorded) return false;
    return bodyBytes <= LARGE_BODY_BYTES && recorder.isNext();
  }

  #route(message: Uint8Array): void {
    this.#message = message;
    const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
    const isPlain = this.hot.scan[this.head.format](bytes, scan);
    if (!isPlain || !isTenantId(scan.tenantId)) return this.fallBack();
    const { projectId, tenantId, token, modelVersion } = scan;
    if (scan.namesSet && this.hot.rpc === 'Check') this.#rpc = 'CheckSet';
    if (!this.reaches(projectId, tenantId)) return this.fallBack();
    this.#expected = { projectId, tenantId, token, modelVersion };
    const scope = this.#peek(this.#expected);
    if (scope === undefined) this.#enqueue();
    else this.scopeFound(scope);
  }

  #peek({ projectId, tenantId, token }: RawScope): ReadScope | undefined {
    const { scopes } = this.#options;
    const { isTimeoutStated } = this.head;
    return scopes.peek(projectId, tenantId, token, this.deadlineMs, isTimeoutStated, this);
  }

  /** Waits for the scope. A call that only the general path can answer goes there at once. */
  #enqueue(): void {
    const { deadlineMs } = this;
    const { isTimeoutStated: isDeadlineStated } = this.head;
    const { projectId, tenantId, token } = this.#expected;
    const request = { projectId, tenantId, token, deadlineMs, isDeadlineStated, origin: this };
    const pending = this.#options.scopes.enqueue(request, this);
    if (pending !== null) this.#begin(pending);
    else if (this.#message.length > LARGE_BODY_BYTES) this.#retryScope();
    else this.fallBack();
  }

  /** The general path parses on this thread, where a large body would hold up everybody: it is not for the first of a tenant. */
  #retryScope(): void {
    const { scopes } = this.#options;
    const { projectId, tenantId, token } = this.#expected;
    this.watchCaller();
    void scopes.settled(projectId, tenantId, token).then(() => {
      if (this.#isEnded) return;
      const scope = this.#peek(this.#expected);
      if (scope === undefined) this.fallBack();
      else this.scopeFound(scope);
    });
  }

  scopeFound(found: ReadScope): void {
    const { modelVersion: named = 0 } = this.#expected;
    if (named === 0) return this.#evaluate(found);
    const modelVersion = this.#options.versions.peek(found.projectId, named);
    // The general path gives the version to the workers.
    if (modelVersion === undefined) return this.fallBack();
    this.#evaluate({ ...found, modelVersion });
  }

  #evaluate(scope: ReadScope): void {
    const { shards } = this.#options;
    const running = shards.raw(
      this.hot.method,
      this.head.format,
      this.#message,
      scope,
      this.#expected,
      (answer) => this.#answered(answer, scope),
    );
    if (running !== null) this.#begin(running);
  }

  #begin(running: Cancellable): void {
    this.#running = running;
    this.watchCaller();
  }

  needsGeneralPath(): void {
    this.fallBack();
  }

  scopeFailed(error: AppError): void {
    this.#refuseUnread(error);
  }

  /** Nobody has read the body yet: one that is wrong is refused for that, whatever else speaks against it. */
  #refuseUnread(error: AppError): void {
    const { reader, scopes } = this.#options;
    const projectIdOf = (projectId: string): string => scopes.projectIdOf(projectId);
    const { method } = this.hot;
    const { format } = this.head;
    if (reader.isPlain(method, format, this.#message)) return this.fail(error);
    this.watchCaller();
    reader.read(method, format, this.#message, projectIdOf).then(
      () => this.#failIfOpen(error),
      (problem: unknown) => this.#failIfOpen(internalError(problem)),
    );
  }

  #failIfOpen(error: AppError): void {
    if (!this.#isEnded) this.fail(error);
  }

  #answered(answer: RawAnswer, scope: ReadScope): void {
    switch (answer.kind) {
      case 'allowed':
      case 'denied':
        return this.#answer(answer.kind);
      case 'body':
        return this.#answer(this.hot.isQuery ? this.#withToken(answer.body, scope) : answer.body);
      case 'error':
        return this.#failed(errorFromData(answer.error));
    }
  }

  #withToken(body: Uint8Array, scope: ReadScope): Uint8Array {
    const { scopes } = this.#options;
    return fillTokenSpace(body, (revision) => scopes.tokenOf(scope, revision));
  }

  #answer(answer: DecisionAnswer): void {
    const { stages } = this.#options;
    const sinceMs = stages === undefined ? 0 : performance.now();
    this.#close();
    if (typeof answer === 'string') this.send(preparedAnswer(this.head, answer), false);
    else if (isSentPlain(this.head, answer, this.#options.compressMinBytes)) {
      this.send(framedAnswer(this.head, answer, false, this.keepsAnswer), false);
    } else this.#compress(answer);
    stages?.written(sinceMs);
  }

  #compress(answer: Uint8Array): void {
    gzipped(answer).then(
      (bytes) => this.send(framedAnswer(this.head, bytes, true, false), true),
      (error: unknown) => this.fail(internalError(error)),
    );
  }

  #failed(error: AppError): void {
    this.#options.onRefused?.(error.reason);
    // A long one is refused before it comes where the queue is full: then it is not read for it either.
    const isShort = this.#message.length <= LARGE_BODY_BYTES;
    if (error.reason === 'QUEUE_FULL' && isShort) return this.#refuseUnread(error);
    if (!this.#options.scopes.isMoved(this.#expected.projectId, error)) return this.fail(error);
    // Nothing was answered yet. Once: the next one is left to the general path, which counts.
    if (error.reason === 'SHARD_BEHIND') this.#enqueue();
    else this.fallBack();
  }

  /** Hands the call to the general path, with the body as it came. The credential was checked. */
  protected fallBack(): void {
    if (this.head.isTimeoutStated && this.leftMs < 1) return this.fail(deadlineExceeded());
    // The general path reads it later than this.
    const body = this.#lease === null ? this.#body : new Uint8Array(this.#body);
    this.#close();
    this.handOn(body);
  }

  /** Answers with an error, also before the body was received. */
  fail(error: AppError): void {
    this.#close();
    this.refuse(error);
    this.#options.meter.failed(this.#rpc, error);
    this.counted();
  }

  /** Counts the time of the call; once, when its answer has been given. */
  protected counted(): void {
    this.#options.meter.ended(this.#rpc, this.#startedMs);
  }

  #close(): void {
    this.#isEnded = true;
    this.#running = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#lease?.release();
    this.#lease = null;
    this.#decompressed?.release();
    this.#decompressed = null;
    this.#message = NO_BYTES;
    this.#body = NO_BYTES;
  }
}

function timedOut(call: DecisionCall): void {
  call.expire();
}
