import { Session } from '../session.ts';

/** Where a browser keeps the tokens of what it has written and seen. */
export type SessionCookie = {
  /** The cookie's name. Default `gatehouse_session`. */
  readonly name?: string;
  /** Sent over HTTPS only. Default true. */
  readonly secure?: boolean;
  /** Seconds that it lives; left out = until the browser closes. */
  readonly maxAgeSeconds?: number;
};

const NAME_DEFAULT = 'gatehouse_session';

/** The session of a `Cookie` header. */
export function sessionOfCookies(
  header: string | null | undefined,
  { name = NAME_DEFAULT }: SessionCookie,
): Session {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const found = pairs.find((pair) => pair.startsWith(`${name}=`));
  return Session.from(found?.slice(name.length + 1));
}

/** The `Set-Cookie` that the session needs, or undefined where the browser has all of it. */
export function setCookieOf(
  session: Session,
  before: string,
  { name = NAME_DEFAULT, secure = true, maxAgeSeconds }: SessionCookie,
): string | undefined {
  const value = session.toString();
  if (value === before) return undefined;
  const parts = [`${name}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  if (secure) parts.push('Secure');
  if (maxAgeSeconds !== undefined) parts.push(`Max-Age=${maxAgeSeconds}`);
  return parts.join('; ');
}
