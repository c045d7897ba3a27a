import type { IncomingMessage, ServerResponse } from 'node:http';
import { inSession } from '../current-session.ts';
import { type SessionCookie, sessionOfCookies, setCookieOf } from './cookie.ts';
import { bodyOf, type GuardOptions, retryAfterOf, verdictOn } from './verdict.ts';

/* Express's requests and answers are those of node:http: no type of it is needed, and Connect's middleware works too. */

type Next = (error?: unknown) => void;
type Middleware<Request extends IncomingMessage> = (
  request: Request,
  response: ServerResponse,
  next: Next,
) => void;

/** Lets a request through where the user holds what the route needs; else answers 401, 403, 500 or 503. */
export function gatehouse<Request extends IncomingMessage>(
  options: GuardOptions<Request>,
): Middleware<Request> {
  return (request, response, next) => {
    void verdictOn(options, request).then((verdict) => {
      if (verdict.status === 200) return next();
      const retryAfter = retryAfterOf(verdict);
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
      response.statusCode = verdict.status;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(bodyOf(verdict)));
    });
  };
}

/** Runs what follows in the session of the browser's cookie, so that its next request sees its own writes. */
export function gatehouseSession(cookie: SessionCookie = {}): Middleware<IncomingMessage> {
  return (request, response, next) => {
    const session = sessionOfCookies(request.headers.cookie, cookie);
    const before = session.toString();
    const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
    response.writeHead = (...args: unknown[]) => {
      const value = setCookieOf(session, before, cookie);
      if (value !== undefined && !response.headersSent) response.appendHeader('set-cookie', value);
      return writeHead(...args);
    };
    inSession(session, () => next());
  };
}
