import { data } from '@actions/expressions';
import type { ExpressionData } from './expression-data.ts';
import { foldCase } from './ordered-object.ts';

/**
 * Whether two values are equal: texts without regard to case, values of other kinds as numbers, objects and
 * arrays if they are the same one. NaN equals nothing.
 * Source: actions/runner, EvaluationResult.AbstractEqual.
 */
export function areEqual(left: ExpressionData, right: ExpressionData): boolean {
  if (left.kind !== right.kind) return numberOf(left) === numberOf(right);
  if (left instanceof data.StringData && right instanceof data.StringData) {
    // What is folded keeps its length.
    const isSameLength = left.value.length === right.value.length;
    return isSameLength && foldCase(left.value) === foldCase(right.value);
  }
  if (left.primitive) return left.number() === right.number();
  return left === right;
}

/** Whether `left` is less than `right`; always false for objects and arrays. Source: as of `areEqual`. */
export function isLess(left: ExpressionData, right: ExpressionData): boolean {
  if (left instanceof data.StringData && right instanceof data.StringData) {
    return foldCase(left.value) < foldCase(right.value);
  }
  if (left.kind === right.kind && (!left.primitive || left instanceof data.Null)) return false;
  return numberOf(left) < numberOf(right);
}

/** NaN for objects and arrays. */
function numberOf(value: ExpressionData): number {
  return value.primitive ? value.number() : Number.NaN;
}
