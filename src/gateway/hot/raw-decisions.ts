import { type BodyLease, BodyPool } from '../../http/body-pool.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type {
  CallOrigin,
  Cancellable,
  RawAnswer,
  RawMethod,
  RawScope,
  ReadScope,
  ShardClient,
  WireFormat,
} from '../../protocol/shard-client.ts';
import { AppError, errorFromData, type InternalReason } from '../../shared/app-error.ts';
import type { CallStages } from '../../shared/stage-times.ts';
import type { Credential, CredentialSource } from '../callers/caller.ts';
import { type MethodRule, mustRule } from '../callers/method-rules.ts';
import { gzipCompression } from '../connect/adapter-compression.ts';
import type { ConnectAdapter } from '../connect/adapter.ts';
import { REQUEST_ID_HEADER, sharedNowMs } from '../connect/call-context.ts';
import { sendConnectError } from '../connect/connect-error.ts';
import { isKnownVersion, VERSION_HEADER } from '../connect/protocol-version.ts';
import type { DecisionMeter, DecisionRpc } from '../reads/decision-meter.ts';
import type { ParkedCall } from '../reads/parked-read.ts';
import type { QuestionRecorder } from '../reads/question-recorder.ts';
import type { ReadScopes } from '../reads/read-scopes.ts';
import {
  createScopeScan,
  scanJsonScope,
  scanProtoScope,
  type ScopeFieldNumbers,
} from './scope-scan.ts';

export type RawDecisionsOptions = {
  readonly callers: CredentialSource;
  readonly shards: Pick<ShardClient, 'raw' | 'refusalBefore'>;
  readonly scopes: Pick<ReadScopes, 'peek' | 'park' | 'settled' | 'isMoved'>;
  readonly meter: Pick<DecisionMeter, 'ended' | 'failed'>;
  readonly general: Pick<ConnectAdapter, 'handleHttp1' | 'handleBuffered'>;
  /** Takes calls of gRPC-Web; false for all others. */
  readonly web?: ((exchange: HttpExchange, hot: HotMethod) => boolean) | undefined;
  readonly bodyBytesMax: number;
  /** Answers shorter than this are not compressed; the general path's own bound. */
  readonly compressMinBytes: number;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
  /** Absent where no questions are recorded: those that are go the general path, which reads them. */
  readonly recorder?: Pick<QuestionRecorder, 'isNext'> | undefined;
  /** Where stages are measured. */
  readonly stages?: CallStages | undefined;
};

/** A method that has a hot path. */
export type HotMethod = {
  readonly path: string;
  /** What a caller needs for it. */
  readonly rule: MethodRule;
  readonly method: RawMethod;
  readonly rpc: DecisionRpc;
  /** Of a request: a longer one takes the general path, which looks through it in slices. */
  readonly bytesMax: number;
  /** Field numbers of the request message in authz_service.proto. */
  readonly numbers: ScopeFieldNumbers;
};

/** The methods that the hot path serves. */
export const HOT_METHODS: readonly HotMethod[] = (
  [
    {
      path: '/workspace.v1.AuthzService/Check',
      method: 'check',
      rpc: 'Check',
      bytesMax: 65_536,
      numbers: { projectId: 7, tenantId: 8, token: 9 },
    },
    {
      path: '/workspace.v1.AuthzService/BatchCheck',
      method: 'batchCheck',
      rpc: 'BatchCheck',
      bytesMax: 2_097_152,
      numbers: { projectId: 1, tenantId: 2, token: 4 },
    },
    {
      path: '/workspace.v1.AuthzService/ListObjects',
      method: 'listObjects',
      rpc: 'ListObjects',
      bytesMax: 65_536,
      numbers: { projectId: 4, tenantId: 5, token: 6 },
    },
  ] as const
).map((hot) => ({ ...hot, rule: mustRule(hot.path) }));

const JSON_TYPE = 'application/json';
const PROTO_TYPE = 'application/proto';
const ALLOWED_JSON = Buffer.from('{"allowed":true}');
const DENIED_JSON = Buffer.from('{"allowed":false}');
const ALLOWED_PROTO = Buffer.from([0x08, 0x01]);
const DENIED_PROTO = Buffer.alloc(0);
const NO_BYTES = new Uint8Array(0);
const NO_HEADERS: readonly string[] = [];

/**
 * The hot path of Check, BatchCheck and ListObjects over HTTP/1.1 in JSON and binary: no message
 * objects, no promises, one message to a worker per tick for all requests of it. It decides nothing
 * but the plain case: whatever is unusual, refused or not known yet goes to the general path with
 * the same body, so that both answer alike.
 */
export class RawDecisions {
  readonly #options: RawDecisionsOptions;
  readonly #scan = createScopeScan();
  readonly #bodies = new BodyPool();

  constructor(options: RawDecisionsOptions) {
    this.#options = options;
  }

  /** Takes a request to `hot.path`, synchronously inside the listener's handler. */
  handle(exchange: HttpExchange, hot: HotMethod): void {
    const { callers, general, bodyBytesMax, timeoutMsMax } = this.#options;
    const format = formatOf(exchange.header('content-type'));
    const timeout = exchange.header('connect-timeout-ms');
    const timeoutMs = timeoutOf(timeout, timeoutMsMax);
    const length = exchange.header('content-length');
    const credential = callers.find(exchange.header('authorization'));
    if (
      format === null ||
      credential === null ||
      timeoutMs < 0 ||
      length === '' ||
      Number(length) > bodyBytesMax ||
      exchange.header('content-encoding') !== '' ||
      !isKnownVersion(exchange.header(VERSION_HEADER)) ||
      !credential.caller.hasRoom() ||
      !credential.caller.scopes.admitAnywhere(hot.rule) ||
      this.#isRecorded(hot, Number(length))
    ) {
      if (format === null && this.#options.web?.(exchange, hot) === true) return;
      general.handleHttp1(exchange);
      return;
    }
    credential.caller.admits();
    const call = new HotCall(this.#options, exchange, hot, credential, format, timeout, timeoutMs);
    const refusal = this.#refusalBefore(exchange, call, Number(length));
    if (refusal !== null) {
      // The listener throws away what comes of the body, at most as much as was declared.
      call.refuse(refusal);
      return;
    }
    exchange.bodyOwner = credential.caller.name;
    exchange.readBody(
      bodyBytesMax,
      (body, lease, none) => {
        if (none === null) this.#received(call, body, lease);
        else call.refuse(none);
      },
      null,
      this.#bodies,
      Number(length),
    );
    this.#options.stages?.headersRead();
  }

  /** Of a long body, by the shard that a header names for the balancer: what the body says is not known yet. */
  #refusalBefore(exchange: HttpExchange, call: HotCall, bytes: number): AppError | null {
    if (bytes <= LARGE_BODY_BYTES) return null;
    const named = shardOfHeader(exchange.header(SHARD_HEADER));
    // Of a shard that it may not reach a caller learns nothing.
    const shard = named !== undefined && call.reaches(named) ? named : undefined;
    return this.#options.shards.refusalBefore(shard, bytes, sharedNowMs() + call.timeoutMs);
  }

  #isRecorded({ rpc }: HotMethod, bodyBytes: number): boolean {
    const { recorder } = this.#options;
    if (recorder === undefined || rpc === 'ListObjects' || bodyBytes > LARGE_BODY_BYTES)
      return false;
    return recorder.isNext();
  }

  #received(call: HotCall, bytes: Uint8Array, lease: BodyLease | null): void {
    const { stages } = this.#options;
    stages?.bodyArrived();
    this.#route(call, bytes, lease);
    stages?.scanned();
  }

  #route(call: HotCall, bytes: Uint8Array, lease: BodyLease | null): void {
    const { hot } = call;
    call.lease = lease;
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const scan = this.#scan;
    call.body = body;
    if (body.length > hot.bytesMax) return call.fallBack();
    const isPlain =
      call.format === 'json' ? scanJsonScope(body, scan) : scanProtoScope(body, hot.numbers, scan);
    if (!isPlain || !isTenantId(scan.tenantId)) return call.fallBack();
    const { projectId, tenantId, token } = scan;
    call.expected = { projectId, tenantId, token };
    if (!call.reaches(scan)) return call.fallBack();
    call.deadlineMs = sharedNowMs() + call.timeoutMs;
    const scope = this.#options.scopes.peek(projectId, tenantId, token, call.deadlineMs, call);
    if (scope === undefined) call.park();
    else call.scopeFound(scope);
  }
}

/** Some hundred items, whose parse on the general path takes milliseconds. */
export const LARGE_BODY_BYTES = 32 * 1024;
const NO_SCOPE: RawScope = { projectId: '', tenantId: '', token: '' };

/** One call on the hot path, from its headers to its answer. */
class HotCall implements ParkedCall, CallOrigin {
  readonly hot: HotMethod;
  readonly credential: Credential;
  readonly format: WireFormat;
  readonly timeoutMs: number;
  body: Uint8Array = NO_BYTES;
  /** As the scan read it. */
  expected = NO_SCOPE;
  deadlineMs = 0;
  /** Of `body`, which nobody reads any more once the call has its answer or its caller has gone. */
  lease: BodyLease | null = null;
  readonly #options: RawDecisionsOptions;
  readonly #exchange: HttpExchange;
  readonly #startedMs: number;
  /** Request headers are gone once the handler has returned: kept for the general path. */
  readonly #givenId: string;
  #issuedId = '';
  readonly #acceptEncoding: string;
  readonly #timeout: string;

  constructor(
    options: RawDecisionsOptions,
    exchange: HttpExchange,
    hot: HotMethod,
    credential: Credential,
    format: WireFormat,
    timeout: string,
    timeoutMs: number,
  ) {
    this.#options = options;
    this.#exchange = exchange;
    this.hot = hot;
    this.credential = credential;
    this.format = format;
    this.timeoutMs = timeoutMs;
    this.#startedMs = performance.now();
    this.#givenId = exchange.header(REQUEST_ID_HEADER);
    this.#acceptEncoding = exchange.header('accept-encoding');
    this.#timeout = timeout;
  }

  get caller(): string {
    return this.credential.caller.name;
  }

  /** The same one each time. */
  get requestId(): string {
    if (this.#issuedId === '') this.#issuedId = requestIdOf(this.#givenId);
    return this.#issuedId;
  }

  /** Whether the scopes of the caller admit it there; the general path says why not. */
  reaches({ projectId, tenantId }: Pick<RawScope, 'projectId' | 'tenantId'>): boolean {
    return this.credential.caller.scopes.admitTenant(this.hot.rule, projectId, tenantId);
  }

  /** Waits for the scope. What only the general path can tell goes there at once. */
  park(): void {
    const { projectId, tenantId, token } = this.expected;
    const request = { projectId, tenantId, token, deadlineMs: this.deadlineMs, origin: this };
    const parked = this.#options.scopes.park(request, this);
    if (parked !== null) this.#begin(parked);
    else if (this.body.length > LARGE_BODY_BYTES) this.#lookAgain();
    else this.fallBack();
  }

  /** The general path parses on this thread, where a large body would hold up everybody: it is not for the first of a tenant. */
  #lookAgain(): void {
    const { scopes } = this.#options;
    const { projectId, tenantId, token } = this.expected;
    let hasGone = false;
    this.#begin({ cancel: () => void (hasGone = true) });
    void scopes.settled(projectId, tenantId, token).then(() => {
      if (hasGone) return;
      const scope = scopes.peek(projectId, tenantId, token, this.deadlineMs, this);
      if (scope === undefined) this.fallBack();
      else this.scopeFound(scope);
    });
  }

  scopeFound(scope: ReadScope): void {
    const { hot, format, body, expected } = this;
    const { shards } = this.#options;
    const onAnswer = (answer: RawAnswer): void => this.end(answer);
    const running = shards.raw(hot.method, format, body, scope, expected, onAnswer);
    if (running !== null) this.#begin(running);
  }

  scopeUnusual(): void {
    this.fallBack();
  }

  scopeFailed(error: AppError): void {
    this.lease?.release();
    this.#fail(error);
  }

  /** The caller may go while it waits. */
  #begin(running: Cancellable): void {
    this.#exchange.onAborted(() => {
      running.cancel();
      this.lease?.release();
    });
  }

  /** Answers before the body was received. */
  refuse(error: AppError): void {
    this.#fail(error);
  }

  /** Hands the request to the general path. The credential was checked. */
  fallBack(): void {
    const headers = new Headers({
      'content-type': this.format === 'json' ? JSON_TYPE : PROTO_TYPE,
    });
    if (this.#acceptEncoding !== '') headers.set('accept-encoding', this.#acceptEncoding);
    if (this.#timeout !== '') headers.set('connect-timeout-ms', this.#timeout);
    const { requestId } = this;
    // The general path reads it later than this.
    const body = this.lease === null ? this.body : new Uint8Array(this.body);
    this.lease?.release();
    const { general } = this.#options;
    const { path } = this.hot;
    general.handleBuffered(this.#exchange, path, headers, body, requestId, this.credential);
  }

  end(answer: RawAnswer): void {
    if (answer.kind === 'error') return this.#failed(errorFromData(answer.error));
    if (answer.kind !== 'fallback') this.lease?.release();
    const isJson = this.format === 'json';
    switch (answer.kind) {
      case 'allowed':
        return this.#send(isJson ? ALLOWED_JSON : ALLOWED_PROTO);
      case 'denied':
        return this.#send(isJson ? DENIED_JSON : DENIED_PROTO);
      case 'body':
        return this.#sendBody(answer.body);
      case 'fallback':
        return this.fallBack();
    }
  }

  #failed(error: AppError): void {
    if (this.#options.scopes.isMoved(this.expected.projectId, error)) {
      // Nothing was answered yet. Once: the next one is left to the general path, which counts.
      if (error.reason === 'SHARD_BEHIND') this.park();
      else this.fallBack();
      return;
    }
    this.lease?.release();
    this.#fail(error);
  }

  #send(body: Uint8Array, extra: readonly string[] = NO_HEADERS): void {
    const { stages } = this.#options;
    const sinceMs = stages === undefined ? 0 : performance.now();
    const { requestId } = this;
    const type = this.format === 'json' ? JSON_TYPE : PROTO_TYPE;
    const headers = [REQUEST_ID_HEADER, requestId];
    if (extra !== NO_HEADERS) headers.push(...extra);
    this.#exchange.send(200, type, body, headers);
    this.#options.meter.ended(this.hot.rpc, this.#startedMs);
    stages?.written(sinceMs);
  }

  #sendBody(body: Uint8Array): void {
    if (body.byteLength < this.#options.compressMinBytes || !acceptsGzip(this.#acceptEncoding)) {
      return this.#send(body);
    }
    gzipCompression.compress(body as Uint8Array<ArrayBuffer>).then(
      (bytes) => this.#send(bytes, ['content-encoding', 'gzip']),
      (error: unknown) =>
        this.#fail(new AppError<InternalReason>('INTERNAL', 'internal error', {}, error)),
    );
  }

  #fail(error: AppError): void {
    sendConnectError(this.#exchange, error, this.requestId);
    this.#options.meter.failed(this.hot.rpc, error);
    this.#options.meter.ended(this.hot.rpc, this.#startedMs);
  }
}

/** `<project>/<tenant>`, as docs/operations.md has it. A wrong one may only refuse the request of who sent it. */
const SHARD_HEADER = 'x-gatehouse-shard';

function shardOfHeader(value: string): Pick<RawScope, 'projectId' | 'tenantId'> | undefined {
  const slash = value.indexOf('/');
  if (slash === -1) return undefined;
  return { projectId: value.slice(0, slash), tenantId: value.slice(slash + 1) };
}

const TENANT_ID_LENGTH_MAX = 128;

/** As `checkTenantId` of model/names.ts, without an error: the general path gives it. */
export function isTenantId(tenantId: string): boolean {
  if (tenantId.length > TENANT_ID_LENGTH_MAX) return false;
  for (let i = 0; i < tenantId.length; i++) {
    const code = tenantId.charCodeAt(i);
    const isLetter = (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
    // `-`, `.`, digits and `:`; `/` lies between.
    const isOther = code === 0x2d || code === 0x2e || code === 0x5f || (code > 0x2f && code < 0x3b);
    if (!isLetter && !isOther) return false;
  }
  return true;
}

/** The format of a content type in its plainest spelling; null for every other one. */
function formatOf(contentType: string): WireFormat | null {
  if (contentType === JSON_TYPE) return 'json';
  return contentType === PROTO_TYPE ? 'proto' : null;
}

/** Milliseconds that a Connect-Timeout-Ms header allows; -1 for one that is invalid or 0. */
function timeoutOf(header: string, timeoutMsMax: number): number {
  if (header === '') return timeoutMsMax;
  if (header.length > 10) return -1;
  let timeoutMs = 0;
  for (let i = 0; i < header.length; i++) {
    const digit = header.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    timeoutMs = timeoutMs * 10 + digit;
  }
  return timeoutMs === 0 ? -1 : Math.min(timeoutMs, timeoutMsMax);
}

/** As Connect negotiates: gzip is the only encoding of ours, and it is wanted if it is named. */
function acceptsGzip(acceptEncoding: string): boolean {
  if (acceptEncoding === '') return false;
  return acceptEncoding.split(',').some((name) => name.trim() === 'gzip');
}
