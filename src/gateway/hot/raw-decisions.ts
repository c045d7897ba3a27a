import { BodyPool } from '../../http/bodies/body-pool.ts';
import type { ConnectAdapter } from '../../http/connect/adapter-options.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import type { RawScope, ShardClient } from '../../protocol/shard-client.ts';
import type { AppError } from '../../shared/app-error.ts';
import type { CredentialSource } from '../callers/caller.ts';
import { ExchangeCall, type ExchangeCallOptions } from './exchange-call.ts';
import { bodyBytesMaxOf, exchangeHeadOf } from './exchange-head.ts';
import { admitted, type HotMethod, LARGE_BODY_BYTES } from './hot-methods.ts';

export type RawDecisionsOptions = ExchangeCallOptions & {
  readonly callers: CredentialSource;
  readonly shards: Pick<ShardClient, 'raw' | 'refusalBefore'>;
  readonly general: Pick<ConnectAdapter, 'handleHttp1' | 'handleBuffered'>;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
};

/**
 * The hot path of HOT_METHODS over HTTP/1.1, in Connect and gRPC-Web: plain calls alone, each a
 * `DecisionCall`; all else goes to the general path before anything is read of it.
 */
export class RawDecisions {
  readonly #options: RawDecisionsOptions;
  readonly #bodies = new BodyPool();

  constructor(options: RawDecisionsOptions) {
    this.#options = options;
  }

  /** Takes a request to `hot.path`, synchronously inside the listener's handler. */
  handle(exchange: HttpExchange, hot: HotMethod): void {
    const { callers, general, stages } = this.#options;
    const head = exchangeHeadOf(exchange, this.#options);
    const credential =
      head === null ? null : admitted(callers, hot.rule, exchange.header('authorization'));
    if (head === null || credential === null) {
      general.handleHttp1(exchange);
      return;
    }
    const bytes = Number(exchange.header('content-length'));
    const call = new ExchangeCall(this.#options, hot, head, credential, exchange);
    const refusal = this.#refusalBefore(exchange, call, bytes);
    if (refusal !== null) {
      // The listener throws away what comes of the body, at most as much as was declared.
      call.fail(refusal);
      return;
    }
    call.receive(this.#bodies, bodyBytesMaxOf(head, this.#options), bytes);
    stages?.headersRead();
  }

  /** The refusal of a long body by the shard that a header names for the balancer: the body itself is not read yet. */
  #refusalBefore(exchange: HttpExchange, call: ExchangeCall, bytes: number): AppError | null {
    if (bytes <= LARGE_BODY_BYTES) return null;
    const named = shardOfHeader(exchange.header(SHARD_HEADER));
    // A caller learns nothing about a shard outside its scope.
    const isReached = named !== undefined && call.reaches(named.projectId, named.tenantId);
    return this.#options.shards.refusalBefore(
      isReached ? named : undefined,
      bytes,
      call.deadlineMs,
    );
  }
}

/** `<project>/<tenant>`, as docs/operations.md has it. A wrong one may only refuse the request of who sent it. */
const SHARD_HEADER = 'x-gatehouse-shard';

function shardOfHeader(value: string): Pick<RawScope, 'projectId' | 'tenantId'> | undefined {
  const slash = value.indexOf('/');
  if (slash === -1) return undefined;
  return { projectId: value.slice(0, slash), tenantId: value.slice(slash + 1) };
}
