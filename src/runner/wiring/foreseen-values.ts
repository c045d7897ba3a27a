import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { evaluateTemplate } from '../evaluation/evaluate.ts';
import { ContextAccess, walkExpression } from '../language/expression.ts';
import { expandMatrix } from '../language/matrix.ts';
import { hasExpression, jsonFromTemplate } from '../language/template-access.ts';
import { expressionsIn } from '../language/template-expressions.ts';
import type { Template } from '../model/workflow.ts';

/**
 * The matrix jobs that a file shows; one without a matrix has a single empty one. Undefined for a matrix that
 * only the run knows. Errors: INVALID_WORKFLOW for one that cannot be.
 */
export function matrixJobsShown(matrix: Template | undefined): readonly JsonObject[] | undefined {
  if (matrix === undefined) return [{}];
  return hasExpression(matrix) ? undefined : expandMatrix(jsonFromTemplate(matrix));
}

/**
 * The value of a template in each of some matrix jobs. Undefined where something else than the matrix decides, or
 * it cannot be evaluated: the run says why.
 */
export async function valuesShown(
  template: Template,
  matrixJobs: readonly JsonObject[] | undefined,
): Promise<readonly JsonValue[] | undefined> {
  if (!hasExpression(template)) return (matrixJobs ?? [{}]).map(() => jsonFromTemplate(template));
  if (matrixJobs === undefined || !isOfMatrixAlone(template)) return undefined;
  try {
    return await Promise.all(
      matrixJobs.map((matrix) => evaluateTemplate(template, { contexts: { matrix } })),
    );
  } catch {
    return undefined;
  }
}

function isOfMatrixAlone(template: Template): boolean {
  let isAlone = true;
  for (const { tree } of expressionsIn([template])) {
    walkExpression(tree, (node) => {
      if (node instanceof ContextAccess) isAlone &&= node.name.lexeme.toLowerCase() === 'matrix';
    });
  }
  return isAlone;
}
