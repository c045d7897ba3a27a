import type { ConnectAdapter, ConnectAdapterOptions } from '../../http/connect/adapter-options.ts';
import { internalError } from '../../http/connect/protocol/call-errors.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../../http/request-id.ts';
import type { TupleService } from '../../services/tuples/tuple-service.ts';
import type { Credential, CredentialSource } from '../callers/caller.ts';
import { mustRule } from '../callers/method-rules.ts';
import { sharedNowMs } from '../connect/call-context.ts';
import { sendConnectError } from '../connect/connect-error.ts';
import { acceptedOf, type ExchangeLimits, exchangeHeadOf } from './exchange-head.ts';
import { admitted } from './hot-methods.ts';
import { scanWrite } from './scan/write-scan.ts';

/** `timeoutMsMax`: deadline of a call; one whose caller states another goes the general path. */
export type RawWritesOptions = ExchangeLimits & {
  readonly callers: CredentialSource;
  /** The service that the general path calls, too. */
  readonly writes: Pick<TupleService, 'write'>;
  readonly general: Pick<ConnectAdapter, 'handleHttp1' | 'handleBuffered'>;
  readonly report: ConnectAdapterOptions['report'];
};

export const WRITE_PATH = '/workspace.v1.AuthzService/WriteRelationTuples';
const RPC = 'WriteRelationTuples';
const RULE = mustRule(WRITE_PATH);
/** Some thousand updates; longer ones take the general path, which reads them in slices. */
const BYTES_MAX = 524_288;
const JSON_TYPE = 'application/json';

/**
 * The hot path of WriteRelationTuples over HTTP/1.1 in JSON: no message objects, headers or signals. It
 * calls the service of the general path with the same updates. A request that is not plain goes to the
 * general path before anything was done for it.
 */
export class RawWrites {
  readonly #options: RawWritesOptions;

  constructor(options: RawWritesOptions) {
    this.#options = options;
  }

  /** Takes a request to `WRITE_PATH`, synchronously inside the listener's handler. */
  handle(exchange: HttpExchange): void {
    const { callers, general, bodyBytesMax } = this.#options;
    const head = exchangeHeadOf(exchange, this.#options);
    const isPlain = head?.protocol === 'connect' && head.format === 'json' && !head.isTimeoutStated;
    const credential = isPlain ? admitted(callers, RULE, exchange.header('authorization')) : null;
    if (head === null || credential === null) {
      general.handleHttp1(exchange);
      return;
    }
    const givenId = exchange.header(REQUEST_ID_HEADER);
    const encodings = acceptedOf(exchange, head);
    exchange.bodyOwner = credential.caller.name;
    exchange.readBody(
      bodyBytesMax,
      (body, _lease, none) => {
        const requestId = requestIdOf(givenId);
        if (none === null) this.#write(exchange, credential, requestId, encodings, body);
        else sendConnectError(exchange, none, requestId);
      },
      null,
    );
  }

  #write(
    exchange: HttpExchange,
    credential: Credential,
    requestId: string,
    encodings: string,
    body: Uint8Array,
  ): void {
    const { writes, timeoutMsMax, general } = this.#options;
    const request = body.length > BYTES_MAX ? null : scanWrite(body);
    const { name: caller, scopes } = credential.caller;
    if (request === null || !scopes.admitTenant(RULE, request.projectId, request.tenantId)) {
      const headers = new Headers({ 'content-type': JSON_TYPE });
      if (encodings !== '') headers.set('accept-encoding', encodings);
      general.handleBuffered(exchange, WRITE_PATH, headers, body, requestId, credential);
      return;
    }
    const deadlineMs = sharedNowMs() + timeoutMsMax;
    const meta = { rpc: RPC, actingUserId: null, caller, requestId, deadlineMs };
    writes.write({ ...request, meta }).then(
      // A token is letters, digits and marks that JSON leaves as they are.
      (token) =>
        exchange.send(200, JSON_TYPE, `{"consistency_token":"${token}"}`, [
          REQUEST_ID_HEADER,
          requestId,
        ]),
      (error: unknown) => this.#fail(exchange, caller, requestId, error),
    );
  }

  #fail(exchange: HttpExchange, caller: string, requestId: string, error: unknown): void {
    const shown = internalError(error);
    if (shown.reason === 'INTERNAL') {
      const rpc = WRITE_PATH.slice(1);
      this.#options.report({ requestId, rpc, caller, error: shown.cause ?? shown });
    }
    sendConnectError(exchange, shown, requestId);
  }
}
