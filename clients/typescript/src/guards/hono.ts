import { inSession } from '../current-session.ts';
import { type SessionCookie, sessionOfCookies, setCookieOf } from './cookie.ts';
import { bodyOf, type GuardOptions, retryAfterOf, verdictOn } from './verdict.ts';

type Context = {
  readonly req: { header(name: string): string | undefined };
  header(name: string, value: string, options?: { readonly append?: boolean }): void;
  json(body: unknown, status: 401 | 403 | 500 | 503): Response;
};
type Next = () => Promise<void>;

/** Middleware of a route: lets a request through where the user holds what the route needs. */
export function gatehouse<Asked extends Context>(
  options: GuardOptions<Asked>,
): (context: Asked, next: Next) => Promise<Response | void> {
  return async (context, next) => {
    const verdict = await verdictOn(options, context);
    if (verdict.status === 200) return next();
    const retryAfter = retryAfterOf(verdict);
    if (retryAfter !== undefined) context.header('retry-after', retryAfter);
    return context.json(bodyOf(verdict), verdict.status);
  };
}

/** Middleware that runs what follows in the session of the browser's cookie. */
export function gatehouseSession(
  cookie: SessionCookie = {},
): (context: Context, next: Next) => Promise<void> {
  return async (context, next) => {
    const session = sessionOfCookies(context.req.header('cookie'), cookie);
    const before = session.toString();
    await inSession(session, next);
    const value = setCookieOf(session, before, cookie);
    if (value !== undefined) context.header('set-cookie', value, { append: true });
  };
}
