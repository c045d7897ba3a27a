/** An evaluation that cannot be finished; the text is for the author of the workflow. */
export class ExpressionEvaluationError extends Error {}
