/** A browser has none. */
const { process: ofNode } = globalThis as unknown as {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> };
};

/**
 * Whether assertions on hot paths are made: each read of the engine's tables and budgets, each
 * record of a run as a whole. Set DEBUG_ASSERTIONS=1, as the tests do. A constant: the code that it
 * guards is left out of the compiled code otherwise.
 */
export const DEBUG_ASSERTIONS = ofNode?.env?.['DEBUG_ASSERTIONS'] === '1';

/**
 * Stops a programmer error. Inside a worker a failed assertion becomes `internal` for the item
 * under evaluation, never an answer.
 * Errors: throws a plain Error with `message`. Cost: one branch; keep `message` a constant.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
