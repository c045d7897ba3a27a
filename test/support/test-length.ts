import { expect } from 'vitest';

/*
 * A file whose tests are partly long has two entries: x.host.test.ts, and x.long.host.test.ts, which only imports
 * it. Each test of the file then says to which of the two it belongs.
 */

const LONG_NAME = /\.long\.(?:pg\.|host\.)?test\.ts$/;

function isLongEntry(): boolean {
  return LONG_NAME.test(expect.getState().testPath ?? '');
}

/** Takes the place of `test` or `describe`, and of `each` and the like of them: registers nothing. */
const nothing: unknown = new Proxy(() => undefined, {
  get: () => nothing,
  apply: () => nothing,
});

/** `test` or `describe` in the short entry of a file; in the long one it registers nothing. */
export function inShort<Api extends object>(api: Api): Api {
  return isLongEntry() ? (nothing as Api) : api;
}

/** `test` or `describe` in the long entry of a file; in the short one it registers nothing. */
export function inLong<Api extends object>(api: Api): Api {
  return isLongEntry() ? api : (nothing as Api);
}

/** How much a test does: `long` in the long entry of its file, else `short`. */
export function byLength<Value>(short: Value, long: Value): Value {
  return isLongEntry() ? long : short;
}
