import type { Condition, Template } from '../model/workflow.ts';
import { type Availability, ExpressionSyntaxError, parseExpression } from './expression.ts';
import type { ProblemList } from './problems.ts';
import { literalText } from './template-access.ts';

/** An `if:`, with or without `${{ }}`; undefined when it is absent or empty, which means success(). */
export function readCondition(
  template: Template | undefined,
  available: Availability,
  problems: ProblemList,
): Condition | undefined {
  if (template?.kind === 'expression') {
    return { source: template.source, at: template.at };
  }
  const source = literalText(template)?.trim() ?? '';
  if (template === undefined || source === '') {
    return undefined;
  }
  try {
    parseExpression(source, available);
  } catch (error) {
    problems.add(
      template.at,
      error instanceof ExpressionSyntaxError ? error.message : 'Invalid expression',
    );
  }
  return { source, at: template.at };
}
