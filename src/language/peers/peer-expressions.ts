import { asPeersRead, type PeerReading, peerReadings } from '../../model/cel/cel-readings.ts';
import { type ConditionType, parseParameterType } from '../../model/condition-type.ts';
import {
  CONDITION_EXPRESSION_MAX,
  MODEL_CONDITIONS_MAX,
  MODEL_EXPRESSIONS_MAX,
} from '../../model/conditions/model-conditions.ts';
import type { PeerCondition, PeerModel, PeerRemark } from './peer-model.ts';

/** The expressions of a peer's conditions, rewritten to decide here as they do in the peer. */
export type PeerExpressions = {
  /** Rewritten expressions by the peer's name of the condition; unchanged ones are left out. */
  readonly texts: ReadonlyMap<string, string>;
  /** Calls without an equivalent form here, with line and column. */
  readonly problems: readonly PeerRemark[];
  readonly notes: readonly PeerRemark[];
};

/**
 * Rewrites calls that cel-go, with which both peers evaluate conditions, reads differently from
 * CEL's own suite.
 *
 * Invalid expressions stay as they are. So do all expressions if they are more or longer than a
 * model allows, because a caller's text could be of any length. The model checker refuses both.
 * O(expressions).
 */
export function expressionsOf({ conditions }: PeerModel): PeerExpressions {
  const texts = new Map<string, string>();
  const problems: PeerRemark[] = [];
  const notes: PeerRemark[] = [];
  const characters = conditions.reduce((sum, { expression }) => sum + expression.length, 0);
  const isBounded =
    conditions.length <= MODEL_CONDITIONS_MAX && characters <= MODEL_EXPRESSIONS_MAX;
  for (const condition of isBounded ? conditions : []) {
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
