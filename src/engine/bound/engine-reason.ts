/** Why an evaluation ends without an answer. */
export type EngineReason = 'BUDGET_EXHAUSTED' | 'RESULT_TOO_LARGE';
