import type { Operation } from './history.ts';
import { isAlwaysEffective } from './modes.ts';

/** A rule that was broken, and by which operations. */
export type BrokenRule = { readonly rule: string; readonly operations: readonly Operation[] };

/**
 * What holds of the tokens of one shard's writes whatever was stored: one that was sent after another had
 * been acknowledged never names an earlier position, and a later one if it inserts something; no two
 * that insert share one. Cost: O(n log n).
 */
export function checkTokens(operations: readonly Operation[]): readonly BrokenRule[] {
  const broken: BrokenRule[] = [];
  const written = operations.flatMap((operation) => {
    const { action } = operation;
    if (action.kind !== 'write' || action.reached === undefined) return [];
    const { epoch, revision } = action.reached;
    const inserts = isAlwaysEffective(action.updates);
    // An epoch may be any number of 32 bits.
    return [{ operation, position: (BigInt(epoch) << 48n) + BigInt(revision), inserts }];
  });
  const holders = new Map<bigint, Operation>();
  for (const { operation, position, inserts } of written) {
    if (!inserts) continue;
    const other = holders.get(position);
    if (other !== undefined) {
      broken.push({ rule: 'two writes have the same position', operations: [other, operation] });
    }
    holders.set(position, operation);
  }
  const byReturn = written.toSorted((a, b) => a.operation.returned - b.operation.returned);
  let next = 0;
  let highest = byReturn[0];
  for (const one of written.toSorted((a, b) => a.operation.called - b.operation.called)) {
    for (; ; next++) {
      const earlier = byReturn[next];
      if (earlier === undefined || earlier.operation.returned > one.operation.called) break;
      if (next === 0 || earlier.position > (highest?.position ?? -1n)) highest = earlier;
    }
    if (next === 0 || highest === undefined) continue;
    const isBehind = one.inserts
      ? one.position <= highest.position
      : one.position < highest.position;
    if (isBehind) {
      const rule = 'a later write has an earlier position';
      broken.push({ rule, operations: [highest.operation, one.operation] });
    }
  }
  return broken;
}

/** Refusals that the run gives no reason for: of a token that was handed out, and failures inside. */
export function checkRefusals(operations: readonly Operation[]): readonly BrokenRule[] {
  const firstFailover = Math.min(
    ...operations.flatMap(({ action, called }) => (action.kind === 'failover' ? [called] : [])),
  );
  return operations.flatMap((operation) => {
    const { error = '' } = operation;
    // Tokens of a history that was lost are refused, as they should be.
    if (error.includes('TOKEN_INVALID') && operation.returned < firstFailover) {
      return [{ rule: 'a token that was handed out was refused', operations: [operation] }];
    }
    if (error.startsWith('internal')) {
      return [{ rule: 'a call failed with an internal error', operations: [operation] }];
    }
    if (error.startsWith('not_found')) {
      return [{ rule: 'a project that exists was not found', operations: [operation] }];
    }
    return [];
  });
}
