import type { IncomingHttpHeaders } from 'node:http2';
import type { BodyDeadlines } from '../../http/bodies/body-deadlines.ts';
import { BodyPool } from '../../http/bodies/body-pool.ts';
import type { ConnectAdapter } from '../../http/connect/adapter-options.ts';
import { isKnownVersion, VERSION_HEADER } from '../../http/connect/protocol/wire.ts';
import type { UnreadAnswers } from '../../http/exchange/unread-answers.ts';
import type { Http2RequestStream } from '../../http/http2/request-stream.ts';
import type { CredentialSource } from '../callers/caller.ts';
import { type PlainHead, callHeadOf, callTypeOf } from './call-head.ts';
import { admitted, HOT_METHODS, type HotMethod } from './hot-methods.ts';
import { LateBodies } from './late-bodies.ts';
import { StreamCall, type StreamCallOptions, type StreamCallParts } from './stream-call.ts';

export type FramedDecisionsOptions = StreamCallOptions & {
  readonly callers: CredentialSource;
  readonly general: Pick<ConnectAdapter, 'handleHttp2' | 'handleBufferedStream'>;
  /** Holder of answers that nobody reads. */
  readonly unread: UnreadAnswers;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
};

const HOT_METHOD_OF_PATH: ReadonlyMap<string, HotMethod> = new Map(
  HOT_METHODS.map((hot) => [hot.path, hot]),
);

/**
 * The hot path of HOT_METHODS over HTTP/2, in gRPC, gRPC-Web and Connect: plain calls alone, each a
 * `DecisionCall`; all else goes to the general path before anything is read of it.
 */
export class FramedDecisions {
  readonly #options: FramedDecisionsOptions;
  readonly #parts: StreamCallParts;

  constructor(options: FramedDecisionsOptions) {
    this.#options = options;
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
    const { stages, callers } = this.#options;
    stages?.arrived();
    const hot = HOT_METHOD_OF_PATH.get(headers[':path'] ?? '');
    const head = hot === undefined ? null : this.#streamHeadOf(headers);
    const credential =
      hot === undefined || head === null
        ? null
        : admitted(callers, hot.rule, headers.authorization ?? '');
    if (hot === undefined || head === null || credential === null) {
      this.#options.general.handleHttp2(stream, headers, deadlines);
      return;
    }
    // It listens to its stream, which keeps it.
    const options = this.#options;
    void new StreamCall(options, this.#parts, hot, head, credential, stream, headers, deadlines);
    stages?.headersRead();
  }

  #streamHeadOf(headers: IncomingHttpHeaders): PlainHead | null {
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
}

/** Joins a header that may come several times, like the general path does. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' || value === undefined ? value : value.join(', ');
}
