/** The process of Node; a browser has none. */
const { process: ofNode } = globalThis as unknown as {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> };
};

/**
 * True if hot paths are asserted: each read of the engine's tables and budgets, each record of a
 * run as a whole. Set DEBUG_ASSERTIONS=1, as the tests do. It is a constant: otherwise the compiled
 * code omits the code that it guards.
 */
export const DEBUG_ASSERTIONS = ofNode?.env?.['DEBUG_ASSERTIONS'] === '1';

/**
 * Stops at a programmer error. Inside a worker a failed assertion becomes `internal` for the item
 * under evaluation, never an answer.
 * Errors: throws a plain Error with `message`. Cost: one branch; keep `message` a constant.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
