import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import type { HttpServer } from '../../http/listener/http-server.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../../http/request-id.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Access } from './access.ts';
import { emptyAnswer, writeAnswer, type Answer, type AnswerFrame } from './answer.ts';
import {
  headerOf,
  parseJson,
  requireJson,
  requirePlainEncoding,
  type Actor,
  type ApiCall,
} from './call.ts';
import { errorAnswer } from './error-answer.ts';
import { Router, type BodyRule, type ApiRoute } from './router.ts';

/** Version of the API, in every answer; a change that breaks callers raises it. */
const API_VERSION = '1';
/** What probes ask. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/health', '/readyz']);
const NO_BODY: BodyRule = { kind: 'none' };
const NO_BYTES = new Uint8Array(0);
/** Who has the token, or needs none: there is one of it. */
const CALLER = 'caller';
const HEADER_TEXT_MAX = 512;

/** One finished request, for the log. The query is left out: it may hold a token. */
export type AccessRecord = {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly actor: Actor;
  readonly durationMs: number;
  /** '' when it went well, else the code of the error. */
  readonly failure: string;
};

export type ApiOptions = {
  readonly routes: readonly ApiRoute[];
  readonly access: Access;
  /** Paths below /api that authenticate callers on their own: the inbox with its signature. */
  readonly openPaths: ReadonlySet<string>;
  /** Paths where `?access_token=` counts: those that an EventSource opens. */
  readonly queryTokenPaths: ReadonlySet<string>;
  readonly maxBodyBytes: number;
  readonly onFault: (error: unknown, requestId: string) => void;
  readonly onRequest: (record: AccessRecord) => void;
};

/** Everything of a request that can be read only at once. */
type Request = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  readonly actor: Actor;
  readonly requestId: string;
  readonly startMs: number;
};

/**
 * Serves the routes on `server`: access, CORS, preflights, HEAD, 404 and 405, bodies, entity tags
 * and errors are the same for all of them. `port` is that of the listener, for the Host header.
 */
export function serveApi(server: HttpServer, options: ApiOptions, port: () => number): void {
  const api = new Api(options, port);
  server.fallback((exchange) => api.serve(exchange));
}

class Api {
  readonly #options: ApiOptions;
  readonly #port: () => number;
  readonly #router: Router;

  constructor(options: ApiOptions, port: () => number) {
    this.#options = options;
    this.#port = port;
    this.#router = new Router(options.routes);
  }

  serve(exchange: HttpExchange): void {
    const requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
    let common: readonly string[] = [
      REQUEST_ID_HEADER,
      requestId,
      'x-runner-api-version',
      API_VERSION,
      'x-content-type-options',
      'nosniff',
    ];
    let request: Request | undefined;
    let extra: readonly string[] = [];
    try {
      request = readRequest(exchange, requestId);
      const { headers, method, path } = request;
      const { access } = this.#options;
      // A health check of HTTP/1.0 has no Host; no page can send such a request.
      const isNameless = HEALTH_PATHS.has(path) && (headers.get('host') ?? '') === '';
      if (!isNameless) access.requireHost(headers, this.#port());
      access.requireOrigin(headers, isApiPath(path));
      common = [...common, ...access.corsHeaders(headers)];
      if (method === 'OPTIONS') {
        const preflight = emptyAnswer(204, access.preflightHeaders(headers));
        return this.#write(exchange, request, preflight, common);
      }
      this.#requireToken(request);
      const match = this.#router.match(method, path);
      if (match.kind === 'none') throw new AppError('NOT_FOUND', 'no such path');
      if (match.kind === 'wrong_method') {
        extra = ['allow', match.allow];
        throw new AppError('METHOD_NOT_ALLOWED', `${method} is not possible here`);
      }
      this.#readBody(exchange, request, match.route, match.parameters, common);
    } catch (error) {
      this.#fail(exchange, request, requestId, error, common, extra);
    }
  }

  #requireToken({ method, path, headers, query }: Request): void {
    const { openPaths, queryTokenPaths, access } = this.#options;
    if (openPaths.has(path)) return;
    const queryToken = queryTokenPaths.has(path) ? query.get('access_token') : null;
    access.requireToken(method, headers, queryToken, isApiPath(path));
  }

  #readBody(
    exchange: HttpExchange,
    request: Request,
    route: ApiRoute,
    parameters: Readonly<Record<string, string>>,
    common: readonly string[],
  ): void {
    const rule = route.body ?? NO_BODY;
    const run = (json: unknown, bytes: Uint8Array): void => {
      const isHead = request.method === 'HEAD';
      const call: ApiCall = { ...request, parameters, json, bytes, isHead };
      this.#run(exchange, request, route, call, common);
    };
    if (rule.kind === 'none') return run(undefined, NO_BYTES);
    const { headers, requestId } = request;
    const maxBytes = rule.maxBytes ?? this.#options.maxBodyBytes;
    if (rule.kind === 'bytes') requirePlainEncoding(headers);
    else if (rule.isRequired || headerOf(headers, 'content-type') !== '') requireJson(headers);
    // What anybody may send has the share of those whom nobody knows.
    if (!this.#options.openPaths.has(request.path)) exchange.bodyOwner = CALLER;
    exchange.readBody(
      maxBytes,
      (bytes) => {
        try {
          if (rule.kind === 'bytes') return run(undefined, bytes);
          if (bytes.byteLength > 0) requireJson(headers);
          const isAbsent = bytes.byteLength === 0 && !rule.isRequired;
          run(isAbsent ? undefined : parseJson(bytes), NO_BYTES);
        } catch (error) {
          this.#fail(exchange, request, requestId, error, common, []);
        }
      },
      (refusal) => {
        const error =
          refusal ?? new AppError('BODY_TOO_LARGE', `the body exceeds ${maxBytes} bytes`);
        this.#fail(exchange, request, requestId, error, common, []);
      },
    );
  }

  #run(
    exchange: HttpExchange,
    request: Request,
    route: ApiRoute,
    call: ApiCall,
    common: readonly string[],
  ): void {
    const work = async (): Promise<void> => {
      const answer = await route.handle(call);
      await writeAnswer(exchange, answer, frameOf(request, common));
    };
    work().then(
      () => this.#record(request, ''),
      (error: unknown) => this.#fail(exchange, request, request.requestId, error, common, []),
    );
  }

  #write(
    exchange: HttpExchange,
    request: Request | undefined,
    answer: Answer,
    common: readonly string[],
  ): void {
    writeAnswer(exchange, answer, frameOf(request, common)).then(
      () => (request === undefined ? undefined : this.#record(request, '')),
      (error: unknown) => this.#options.onFault(error, request?.requestId ?? ''),
    );
  }

  #fail(
    exchange: HttpExchange,
    request: Request | undefined,
    requestId: string,
    error: unknown,
    common: readonly string[],
    extra: readonly string[],
  ): void {
    const { answer, code, isFault } = errorAnswer(error, requestId, extra);
    if (isFault) this.#options.onFault(error, requestId);
    const frame = { ...frameOf(request, common), ifNoneMatch: '' };
    writeAnswer(exchange, answer, frame).then(
      () => (request === undefined ? undefined : this.#record(request, code)),
      (late: unknown) => this.#options.onFault(late, requestId),
    );
  }

  #record(request: Request, failure: string): void {
    const { requestId, method, path, actor, startMs } = request;
    const durationMs = Math.round((performance.now() - startMs) * 1000) / 1000;
    this.#options.onRequest({ requestId, method, path, actor, durationMs, failure });
  }
}

function readRequest(exchange: HttpExchange, requestId: string): Request {
  const startMs = performance.now();
  const headers = headersOf(exchange);
  return {
    method: exchange.method(),
    path: exchange.path(),
    query: new URLSearchParams(exchange.query()),
    headers,
    actor: {
      ip: exchange.remoteAddress(),
      origin: headerOf(headers, 'origin').slice(0, HEADER_TEXT_MAX),
      userAgent: headerOf(headers, 'user-agent').slice(0, HEADER_TEXT_MAX),
    },
    requestId,
    startMs,
  };
}

/** Errors: INVALID_REQUEST for a header that no header may be. */
function headersOf(exchange: HttpExchange): Headers {
  try {
    return exchange.headers();
  } catch (error) {
    throw new AppError('INVALID_REQUEST', 'a header is malformed', {}, error);
  }
}

function frameOf(request: Request | undefined, common: readonly string[]): AnswerFrame {
  const ifNoneMatch = request === undefined ? '' : headerOf(request.headers, 'if-none-match');
  return { isHead: request?.method === 'HEAD', ifNoneMatch, common };
}

function isApiPath(path: string): boolean {
  return path === '/api' || path.startsWith('/api/');
}
