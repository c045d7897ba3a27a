/*
 * Descriptors of connections flow into this folder, requests and answers in the form of ../exchange out of it. `uws-*` is
 * uWebSockets.js, for connections that begin with a plain head; `node-*` is node:http, for all others.
 */
import type { HeaderFields } from '../exchange/header-fields.ts';
import { type RawResponse, refusedMessageBody, statusLine } from '../exchange/raw-message.ts';
import { type HttpLimits, UNSENT_BYTES } from '../http-limits.ts';
import type { SocketPeek } from '../socket-peek.ts';
import { AdoptedSockets } from './adopted-sockets.ts';
import type { UwsApp, UwsModule, UwsRawResponse } from './uws-binary.ts';
import { UwsRequest } from './uws-request.ts';
import { type UwsAnswerForm, type UwsAnswers, UwsResponse } from './uws-response.ts';

export type UwsListenerOptions = {
  readonly limits: HttpLimits;
  readonly fields: HeaderFields;
  readonly peek: SocketPeek;
  /** Takes a request whose fields were read, by its method and path. */
  readonly take: UwsHandler;
  /** Routes without parameters: uWebSockets.js finds them, which costs less than asking it for method and path. */
  readonly routes: Iterable<UwsRoute>;
};

type UwsHandler = (res: RawResponse, request: UwsRequest) => void;
export type UwsRoute = {
  readonly method: keyof typeof NAME_OF;
  readonly path: string;
  readonly take: UwsHandler;
};

/** Idle time in s that answers state for builds without a setter, which close a connection after 8 to 12 s. */
const IDLE_SECONDS_FIXED = 8;
/** Seconds of a step of the timer of uWebSockets.js. Its first step may be short, and it wraps around after 240 steps. */
const STEP_SECONDS = 4;
const IDLE_SECONDS_MIN = 4;
const IDLE_SECONDS_MAX = 900;
const CLOSE = 'close';
const NAME_OF = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const;
const BARE: UwsAnswerForm = {
  isHead: false,
  hasBody: false,
  isCoded: false,
  isClosedByUws: false,
  closes: false,
};
const WITH_BODY: UwsAnswerForm = { ...BARE, hasBody: true };

/**
 * Connections of HTTP/1.1 on uWebSockets.js, each adopted once its first head was found plain. Refuses messages that the
 * parser lets pass and another reader could end elsewhere; docs/operations.md has what it does not do.
 */
export class UwsListener {
  readonly #app: UwsApp;
  readonly #options: UwsListenerOptions;
  readonly #request = new UwsRequest();
  readonly #answers: UwsAnswers;
  readonly #adopted: AdoptedSockets;
  /** Open connections. */
  connectionCount = 0;

  constructor(module: UwsModule, options: UwsListenerOptions) {
    this.#options = options;
    this.#adopted = new AdoptedSockets(options.peek);
    const app = (this.#app = module.App());
    const { discardBytesMax, http1IdleMs } = options.limits;
    const kept = `timeout=${setIdle(app, http1IdleMs)}`;
    this.#answers = { kept, keptField: `\r\nkeep-alive: ${kept}`, discardBytesMax };
    app.filter((_res, change) => {
      this.connectionCount += change;
    });
    for (const { method, path, take } of options.routes) {
      app[NAME_OF[method]](path, (res, req) =>
        this.#arrived(res, this.#request.of(req, method), take),
      );
    }
    app.any('/*', (res, req) => {
      const request = this.#request.of(req, req.getCaseSensitiveMethod());
      this.#arrived(res, request, options.take);
    });
  }

  /** Adopts a connection whose bytes are still unread, and begin with a plain head. */
  takeDescriptor(fd: number): void {
    const { peek } = this.#options;
    this.#adopted.add(fd);
    peek.boundUnsent(fd, UNSENT_BYTES);
    this.#app.adoptSocket(fd);
  }

  /** Number of open connections that `closeIdle` can end once they have no open request. */
  get closableCount(): number {
    return this.#adopted.canEnd ? this.connectionCount : 0;
  }

  /** Closes connections on which nothing has arrived. Call it only while no request is open. */
  closeIdle(): void {
    this.#adopted.endUnasked();
  }

  /** Drops all connections. */
  destroy(): void {
    this.#app.close();
  }

  #arrived(raw: UwsRawResponse, request: UwsRequest, take: UwsHandler): void {
    const { fields } = this.#options;
    const problem = fields.read(request);
    const method = request.getCaseSensitiveMethod();
    const isPlain = fields.connection === '' && !fields.isChunked && method !== 'HEAD';
    const plain = fields.contentLength > 0 ? WITH_BODY : BARE;
    const form = isPlain ? plain : formOf(method, fields);
    const response = new UwsResponse(raw, form, this.#answers);
    if (problem !== '') response.refuse(statusLine(400), refusedMessageBody(problem));
    else if (fields.expectation !== '' && fields.expectation !== '100-continue') {
      const body = refusedMessageBody('Expect may be 100-continue alone');
      response.refuse(statusLine(417), body);
    } else if (method === 'CONNECT') {
      response.refuse(statusLine(405), refusedMessageBody('Method Not Allowed'));
    } else {
      response.isCorked = true;
      take(response, request);
      response.isCorked = false;
    }
  }
}

function formOf(method: string, fields: HeaderFields): UwsAnswerForm {
  // uWebSockets.js takes any first value of five letters for "close".
  const isClosedByUws = fields.get('connection').length === CLOSE.length;
  const isCoded = fields.isChunked;
  const closes = isClosedByUws || isCoded || fields.hasConnectionOption(CLOSE);
  const hasBody = isCoded || fields.contentLength > 0;
  return { isHead: method === 'HEAD', hasBody, isCoded, isClosedByUws, closes };
}

/** Sets the idle timeout. Returns the seconds that answers state. */
function setIdle(app: UwsApp, idleMs: number): number {
  if (app.setIdleTimeout === undefined) return IDLE_SECONDS_FIXED;
  const wanted = Math.round(idleMs / 1_000);
  const seconds = Math.min(Math.max(wanted, IDLE_SECONDS_MIN), IDLE_SECONDS_MAX);
  app.setIdleTimeout(seconds + STEP_SECONDS);
  app.setResponseTimeout?.(seconds + STEP_SECONDS);
  return seconds;
}
