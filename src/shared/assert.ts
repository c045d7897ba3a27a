/**
 * Stops a programmer error. Inside a worker a failed assertion becomes `internal` for the item
 * under evaluation, never an answer.
 * Errors: throws a plain Error with `message`. Cost: one branch; keep `message` a constant.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
