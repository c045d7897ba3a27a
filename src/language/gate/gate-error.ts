import type { ModelReason } from '../../model/model-reason.ts';
import { AppError } from '../../shared/app-error.ts';

/** One thing that is wrong with a `.gate` text. */
export type GateProblem = {
  readonly message: string;
  /** What was likely meant; '' where nothing can be said. */
  readonly hint: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in characters (code points). */
  readonly column: number;
};

/**
 * MODEL_INVALID of the first problem; metadata has `field`, `line`, `column`, `hint`, and `problems`,
 * the number of all.
 */
export function gateError(problems: readonly GateProblem[]): AppError<ModelReason> {
  const [first] = problems;
  const { message, hint, line, column } = first ?? { message: '', hint: '', line: 0, column: 0 };
  const text = `gate: line ${line}, column ${column}: ${message}${hint === '' ? '' : ` (${hint})`}`;
  return new AppError<ModelReason>('MODEL_INVALID', text, {
    field: 'gate',
    line: String(line),
    column: String(column),
    hint,
    problems: String(problems.length),
  });
}
