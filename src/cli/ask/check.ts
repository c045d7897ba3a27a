import { usage } from '../../command-line/parse-words.ts';
import { AppError } from '../../shared/app-error.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf, scopeOf } from '../core/connection.ts';
import {
  type CliReason,
  decisionExit,
  type DecisionJson,
  decisionWord,
  EXIT_NO,
  EXIT_OK,
  EXIT_UNAVAILABLE,
  EXIT_UNDECIDED,
  EXIT_USAGE,
} from '../core/exit-codes.ts';
import { fileError, readText } from '../core/files.ts';
import { showAnswer } from '../core/rows.ts';
import { type TupleJson, tupleJson } from '../core/tuple-json.ts';

type CheckJson = DecisionJson & {
  readonly unknown_relation?: boolean;
  readonly consistency_token: string;
};
type BatchResultJson = DecisionJson & {
  readonly error?: string;
  readonly error_reason?: string;
  readonly unknown_relation?: boolean;
};
type AskedText = { readonly text: string; readonly question: TupleJson };

/** Exit codes from best to worst; of several answers the worst counts. */
const SEVERITY = [EXIT_OK, EXIT_NO, EXIT_UNDECIDED, EXIT_USAGE, EXIT_UNAVAILABLE];
/**
 * Reasons of items that another attempt, or a larger budget, may answer. All others are errors of
 * the item itself.
 */
const PASSING_REASONS = new Set(['BUDGET_EXHAUSTED', 'INTERNAL']);

/** `check`: calls Check for one item, BatchCheck for several. */
export async function check(line: CliLine): Promise<number> {
  const asked = questionsOf(line);
  const connection = await connectionOf(line);
  const scope = scopeOf(line, connection);
  const [first, ...more] = asked;
  if (first !== undefined && more.length === 0) {
    const body = { scope, question: first.question };
    const answer = await call<CheckJson>(connection, 'gatehouse.v1.QueryService/Check', body);
    showAnswer(line, answer, () => [decisionWord(answer)]);
    noteUnknown(line, [{ text: first.text, result: answer }]);
    return decisionExit(answer);
  }
  const body = { scope, items: asked.map(({ question }) => ({ question })) };
  const { results } = await call<{ readonly results: readonly BatchResultJson[] }>(
    connection,
    'gatehouse.v1.QueryService/BatchCheck',
    body,
  );
  if (results.length !== asked.length) {
    const problem = `${connection.url} answered ${results.length} of ${asked.length} questions`;
    throw new AppError<CliReason>('UNAVAILABLE', problem);
  }
  const rows = asked.map(({ text }, index) => ({ text, result: results[index] ?? {} }));
  showAnswer(
    line,
    rows.map(({ text, result }) => ({ question: text, ...result })),
    () => rows.map(({ text, result }) => `${wordOf(result).padEnd(9)}  ${text}`),
  );
  noteUnknown(line, rows);
  return (
    SEVERITY[Math.max(...rows.map(({ result }) => SEVERITY.indexOf(exitOf(result))))] ??
    EXIT_UNAVAILABLE
  );
}

function questionsOf(line: CliLine): readonly AskedText[] {
  const path = line.text('file');
  const words = line.words.map((text) => ({ text, question: tupleJson(text) }));
  if (path === undefined) {
    if (words.length > 0) return words;
    throw usage('what is asked? check doc:plan#viewer@user:ann');
  }
  if (words.length > 0) {
    throw usage('--file: comes instead of questions');
  }
  const lines = readText(path)
    .split('\n')
    .map((text) => text.trim());
  const asked = lines.flatMap((text, index) => {
    if (text === '' || text.startsWith('#')) return [];
    try {
      return [{ text, question: tupleJson(text) }];
    } catch (error) {
      if (error instanceof AppError) throw fileError(`${path}:${index + 1}`, error.message);
      throw error;
    }
  });
  if (asked.length === 0) throw fileError(path, 'holds no question');
  return asked;
}

function wordOf(result: BatchResultJson): string {
  return isError(result) ? `error: ${result.error}` : decisionWord(result);
}

function exitOf(result: BatchResultJson): number {
  if (!isError(result)) return decisionExit(result);
  return PASSING_REASONS.has(result.error_reason ?? '') ? EXIT_UNAVAILABLE : EXIT_USAGE;
}

function isError({ error }: BatchResultJson): boolean {
  return error !== undefined && error !== '';
}

function noteUnknown(
  { screens }: CliLine,
  rows: readonly { readonly text: string; readonly result: BatchResultJson }[],
): void {
  for (const { text, result } of rows) {
    if (result.unknown_relation === true) {
      screens.notes.line(screens.notes.foreign(`${text}: the model has no such relation`));
    }
  }
}
