import { inSession } from '../current-session.ts';
import type { Session } from '../session.ts';
import { type SessionCookie, sessionOfCookies, setCookieOf } from './cookie.ts';
import { bodyOf, type GuardOptions, retryAfterOf, verdictOn } from './verdict.ts';

type Reply = {
  code(status: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): unknown;
};
type Request = { readonly headers: { readonly cookie?: string | undefined } };
type Server = {
  addHook(
    name: 'onRequest',
    hook: (request: never, reply: never, done: (error?: Error) => void) => void,
  ): unknown;
  addHook(
    name: 'onSend',
    hook: (request: never, reply: never, payload: unknown, done: (error?: Error) => void) => void,
  ): unknown;
};

/** A `preHandler` hook of a route: lets a request through where the user holds what the route needs. */
export function gatehouse<Asked>(
  options: GuardOptions<Asked>,
): (request: Asked, reply: Reply) => Promise<unknown> {
  return async (request, reply) => {
    const verdict = await verdictOn(options, request);
    if (verdict.status === 200) return undefined;
    const retryAfter = retryAfterOf(verdict);
    if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
    return reply.code(verdict.status).send(bodyOf(verdict));
  };
}

/** Runs every request of a server in the session of the browser's cookie. */
export function gatehouseSession(server: Server, cookie: SessionCookie = {}): void {
  const sessions = new WeakMap<object, { readonly session: Session; readonly before: string }>();
  server.addHook('onRequest', (request: Request & object, _reply: Reply, done) => {
    const session = sessionOfCookies(request.headers.cookie, cookie);
    sessions.set(request, { session, before: session.toString() });
    inSession(session, () => done());
  });
  server.addHook('onSend', (request: Request & object, reply: Reply, _payload, done) => {
    const held = sessions.get(request);
    const value = held && setCookieOf(held.session, held.before, cookie);
    if (value !== undefined) reply.header('set-cookie', value);
    done();
  });
}
