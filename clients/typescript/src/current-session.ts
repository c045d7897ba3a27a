import type { AsyncLocalStorage } from 'node:async_hooks';
import { type Session } from './session.ts';

type Hooks = { readonly AsyncLocalStorage: new () => AsyncLocalStorage<Session> };
type Host = { readonly process?: { readonly getBuiltinModule?: (id: string) => unknown } };

/** Not everywhere that has `fetch` has it: a browser gives the session with each call. */
const hooks = (globalThis as Host).process?.getBuiltinModule?.('node:async_hooks') as
  | Hooks
  | undefined;
const storage = hooks === undefined ? undefined : new hooks.AsyncLocalStorage();

/**
 * Runs `work` in a session: calls of clients within it, also after an `await`, use and extend its tokens. Errors:
 * where the runtime has no AsyncLocalStorage; give `session` with each call there.
 */
export function inSession<Result>(session: Session, work: () => Result): Result {
  if (storage === undefined) {
    throw new Error('this runtime has no AsyncLocalStorage: give the session with each call');
  }
  return storage.run(session, work);
}

/** The session that the caller runs in, if it runs in one. */
export function currentSession(): Session | undefined {
  return storage?.getStore();
}
