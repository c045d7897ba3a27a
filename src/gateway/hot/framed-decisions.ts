import type { IncomingHttpHeaders } from 'node:http2';
import type { BodyDeadlines } from '../../http/body-deadlines.ts';
import { BodyPool } from '../../http/body-pool.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import type { Http2RequestStream } from '../../http/http2/request-stream.ts';
import type { UnreadAnswers } from '../../http/unread-answers.ts';
import type { CallStages, Carrier } from '../../shared/stage-times.ts';
import type { Credential, CredentialSource } from '../callers/caller.ts';
import type { ConnectAdapter } from '../connect/adapter.ts';
import { isKnownVersion, VERSION_HEADER } from '../connect/protocol-version.ts';
import { type CallHead, callHeadOf, callTypeOf } from './call-head.ts';
import { ENVELOPE_BYTES } from './envelope.ts';
import { LateBodies } from './late-bodies.ts';
import { HOT_METHODS, type HotMethod } from './raw-decisions.ts';
import { StreamCall, type StreamCallOptions, type StreamCallParts } from './stream-call.ts';
import { WebCall, type WebCallOptions } from './web-call.ts';

export type FramedDecisionsOptions = StreamCallOptions &
  WebCallOptions & {
    readonly callers: CredentialSource;
    readonly general: Pick<
      ConnectAdapter,
      'handleHttp1' | 'handleHttp2' | 'handleBuffered' | 'handleBufferedStream'
    >;
    /** Where answers are held that nobody reads. */
    readonly unread: UnreadAnswers;
    /** Deadline of a call whose caller states none, and the longest that one may state. */
    readonly timeoutMsMax: number;
    /** Where stages are measured. */
    readonly carriers?: Readonly<Record<Carrier, CallStages>> | undefined;
  };

const HOT_METHOD_OF_PATH: ReadonlyMap<string, HotMethod> = new Map(
  HOT_METHODS.map((hot) => [hot.path, hot]),
);

/**
 * The hot path of Check, BatchCheck and ListObjects over HTTP/2, in gRPC, gRPC-Web and Connect, and of gRPC-Web over
 * HTTP/1.1. What it is to Connect over HTTP/1.1 `RawDecisions` says: plain calls alone, all else goes to the
 * general path with the same body, so that both answer alike.
 */
export class FramedDecisions {
  readonly #options: FramedDecisionsOptions;
  readonly #parts: StreamCallParts;
  readonly #ofStreams: StreamCallOptions;
  readonly #ofWeb: WebCallOptions;

  constructor(options: FramedDecisionsOptions) {
    this.#options = options;
    this.#ofStreams = { ...options, stages: options.carriers?.http2 };
    this.#ofWeb = { ...options, stages: options.carriers?.http1 };
    this.#parts = {
      bodies: new BodyPool(),
      budget: options.bodyBudget,
      late: new LateBodies(),
      unread: options.unread,
    };
  }

  /** Hot. Takes any HTTP/2 request of a POST. */
  handleStream(
    stream: Http2RequestStream,
    headers: IncomingHttpHeaders,
    deadlines: BodyDeadlines,
  ): void {
    const { stages } = this.#ofStreams;
    stages?.arrived();
    const hot = HOT_METHOD_OF_PATH.get(headers[':path'] ?? '');
    const head = hot === undefined ? null : this.#streamHeadOf(headers);
    const credential =
      hot === undefined || head === null ? null : this.#admitted(hot, headers.authorization ?? '');
    if (hot === undefined || head === null || credential === null) {
      this.#options.general.handleHttp2(stream, headers, deadlines);
      return;
    }
    // It listens to its stream, which keeps it.
    const options = this.#ofStreams;
    void new StreamCall(options, this.#parts, hot, head, credential, stream, headers, deadlines);
    stages?.headersRead();
  }

  /**
   * Counts the call of a caller who is known, within the rate, and may make it somewhere; of all others the general path
   * tells what is wrong.
   */
  #admitted({ rule }: HotMethod, authorization: string): Credential | null {
    const credential = this.#options.callers.find(authorization);
    if (credential === null || !credential.caller.hasRoom()) return null;
    if (!credential.caller.scopes.admitAnywhere(rule)) return null;
    credential.caller.admits();
    return credential;
  }

  #streamHeadOf(headers: IncomingHttpHeaders): CallHead | null {
    const type = callTypeOf(headers['content-type']);
    if (type === undefined) return null;
    const isConnect = type.protocol === 'connect';
    const { timeoutMsMax, bodyBytesMax } = this.#options;
    const head = callHeadOf(
      type,
      single(headers[isConnect ? 'content-encoding' : 'grpc-encoding']),
      single(headers[isConnect ? 'accept-encoding' : 'grpc-accept-encoding']),
      single(headers[isConnect ? 'connect-timeout-ms' : 'grpc-timeout']),
      timeoutMsMax,
    );
    if (head === null) return null;
    if (Number(headers['content-length'] ?? 0) > bodyBytesMax) return null;
    if (isConnect && !isKnownVersion(single(headers[VERSION_HEADER]) ?? '')) return null;
    return head;
  }

  /**
   * Takes a request to `hot.path` over HTTP/1.1, synchronously inside the listener's handler, if it is a plain one of
   * gRPC-Web; else returns false, and nothing was read of it.
   */
  handleWeb(exchange: HttpExchange, hot: HotMethod): boolean {
    const type = callTypeOf(exchange.header('content-type'));
    if (type === undefined || type.protocol !== 'grpc-web') return false;
    const { timeoutMsMax, bodyBytesMax } = this.#options;
    const head = callHeadOf(
      type,
      stated(exchange.header('grpc-encoding')),
      stated(exchange.header('grpc-accept-encoding')),
      stated(exchange.header('grpc-timeout')),
      timeoutMsMax,
    );
    const length = exchange.header('content-length');
    if (head === null || length === '' || !(Number(length) <= bodyBytesMax + ENVELOPE_BYTES)) {
      return false;
    }
    const credential = this.#admitted(hot, exchange.header('authorization'));
    if (credential === null) return false;
    const { bodies } = this.#parts;
    void new WebCall(this.#ofWeb, bodies, hot, head, credential, exchange, Number(length));
    this.#ofWeb.stages?.headersRead();
    return true;
  }
}

/** Of a header that may come several times, as the general path joins them. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' || value === undefined ? value : value.join(', ');
}

function stated(value: string): string | undefined {
  return value === '' ? undefined : value;
}
