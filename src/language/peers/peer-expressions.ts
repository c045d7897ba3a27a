import { asPeersRead, type PeerReading, peerReadings } from '../../model/cel-readings.ts';
import { type ConditionType, parseParameterType } from '../../model/condition-type.ts';
import { CONDITION_EXPRESSION_MAX } from '../../model/model-conditions.ts';
import type { PeerCondition, PeerModel, PeerRemark } from './peer-model.ts';

/** The expressions of a peer's conditions as they decide here what they decide there. */
export type PeerExpressions = {
  /** Expressions by the peer's name of the condition; those that are as they were are left out. */
  readonly texts: ReadonlyMap<string, string>;
  /** Calls without a form here that means the same, with line and column. */
  readonly problems: readonly PeerRemark[];
  readonly notes: readonly PeerRemark[];
};

/**
 * Rewrites what cel-go, which both peers evaluate conditions with, reads otherwise than CEL's own suite.
 * Expressions that are too long or not valid stay as they are: the model checker says so. O(expressions).
 */
export function expressionsOf({ conditions }: PeerModel): PeerExpressions {
  const texts = new Map<string, string>();
  const problems: PeerRemark[] = [];
  const notes: PeerRemark[] = [];
  for (const condition of conditions) {
    const { name, place, expression } = condition;
    const readings = readingsOf(condition);
    for (const reading of readings) {
      const { replacement, difference } = reading;
      const at = `line ${reading.line}, column ${reading.column} of the expression`;
      const text =
        replacement === undefined
          ? `${at}: ${reading.name} of a value that may be a duration has no form here: ${difference}`
          : `${at}: ${reading.name} is ${replacement} here: ${difference}`;
      (replacement === undefined ? problems : notes).push({ place, text });
    }
    if (readings.length > 0) texts.set(name, asPeersRead(expression, readings));
  }
  return { texts, problems, notes };
}

function readingsOf({ parameters, expression }: PeerCondition): readonly PeerReading[] {
  if (expression.length > CONDITION_EXPRESSION_MAX) return [];
  const types = new Map<string, ConditionType>();
  for (const [name, text] of parameters) {
    const type = parseParameterType(text);
    if (type !== undefined) types.set(name, type);
  }
  return peerReadings(expression, types);
}
