import type { GatehouseClient } from '../client.ts';
import { errorFrom } from '../errors.ts';
import type { Question, QueryOptions } from '../questions.ts';

/** What a guard asks of a request, whatever framework brings it. */
export type GuardOptions<Request> = {
  readonly client: GatehouseClient;
  /** The user's id, as the application's own sign-in found it; undefined = nobody is signed in. */
  readonly user: (request: Request) => string | undefined | Promise<string | undefined>;
  /** What the user has to hold, and on what. */
  readonly needs: (
    request: Request,
  ) => Omit<Question, 'subject'> | Promise<Omit<Question, 'subject'>>;
  /** More of the question, such as its context. */
  readonly options?: (request: Request) => QueryOptions;
};

/** What becomes of a request: `status` 200 lets it through, nothing else does. */
export type Verdict = {
  readonly status: 200 | 401 | 403 | 500 | 503;
  /** For the caller; it says nothing of what is stored. */
  readonly message: string;
  /** Why the question has no answer; for the application's log. */
  readonly error?: unknown;
};

const ALLOWED: Verdict = { status: 200, message: 'allowed' };
const NOBODY: Verdict = { status: 401, message: 'sign in first' };
const DENIED: Verdict = { status: 403, message: 'not allowed' };
/** Another try may succeed. */
const PASSING: ReadonlySet<string> = new Set([
  'unavailable',
  'resource_exhausted',
  'deadline_exceeded',
  'cancelled',
]);

/** Asks for one request. Never throws, and an error never lets a request through. */
export async function verdictOn<Request>(
  { client, user, needs, options }: GuardOptions<Request>,
  request: Request,
): Promise<Verdict> {
  try {
    const subject = await user(request);
    if (subject === undefined || subject === '') return NOBODY;
    const question = { ...(await needs(request)), subject };
    return (await client.check(question, options?.(request))) ? ALLOWED : DENIED;
  } catch (thrown) {
    const error = errorFrom(thrown);
    return PASSING.has(error.code)
      ? { status: 503, message: 'try again in a moment', error }
      : { status: 500, message: 'cannot be decided', error };
  }
}

/** The body of an answer that lets nobody through. */
export function bodyOf({ message }: Verdict): { readonly error: string } {
  return { error: message };
}

/** Seconds after which a caller may try again; undefined where that would not help. */
export function retryAfterOf({ status }: Verdict): string | undefined {
  return status === 503 ? '1' : undefined;
}
