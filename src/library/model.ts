import type { GateProblem } from '../language/gate/gate-lexer.ts';
import { gateProblems, parseGate, type ParsedGate } from '../language/gate/parse-gate.ts';
import { formatGate as formatText, printGate } from '../language/gate/print-gate-tree.ts';
import type { ModelProblem } from '../model/model-json.ts';
import { inspectModel } from '../model/namespace/namespace-model.ts';
import type { JsonObject } from '../shared/json.ts';
import { atBorder } from './border.ts';
import { checkText } from './checked-options.ts';
import { EngineError, type SourceProblem } from './engine-error.ts';
import { knownModel } from './known-models.ts';

/** A valid model, as `parseModel` returns it. Immutable. */
export type Model = {
  /** Parts of the model that are probably mistakes. */
  readonly warnings: readonly SourceProblem[];
  /** Formats the model as `.gate` text, without the comments of its source. */
  toGate(): string;
  /** Returns the model as its JSON document. */
  toJSON(): JsonObject;
};

/**
 * Parses a model: `.gate` text, the text of its JSON document, or that document. Rejects everything that the service
 * rejects. Errors: MODEL_INVALID, with every problem and its place.
 */
export function parseModel(source: string | JsonObject): Model {
  return atBorder(() => {
    const gate = typeof source === 'string' && !source.trimStart().startsWith('{');
    const parsed = gate ? parsedGate(source) : undefined;
    const json = parsed?.json ?? jsonOf(source);
    const { model, errors, warnings } = inspectModel(json);
    const placed = (problem: ModelProblem): SourceProblem => ({
      ...problem,
      ...parsed?.locate(problem.path),
    });
    if (model === undefined || errors.length > 0) throw modelInvalid(errors.map(placed));
    const made: Model = Object.freeze({
      warnings: Object.freeze(warnings.map(placed)),
      toGate: () => printGate(JSON.parse(json)),
      toJSON: () => JSON.parse(json) as JsonObject,
    });
    return knownModel(made, model);
  });
}

/**
 * Formats `.gate` text in its canonical layout and keeps comments. Errors: MODEL_INVALID, with every problem of its
 * form.
 */
export function formatGate(text: string): string {
  return atBorder(() => {
    checkText('text', text);
    refuseFaulty(text);
    return formatText(text);
  });
}

function parsedGate(text: string): ParsedGate {
  refuseFaulty(text);
  return parseGate(text);
}

function refuseFaulty(text: string): void {
  const problems = gateProblems(text);
  if (problems.length > 0) throw modelInvalid(problems.map(problemOfGate));
}

function problemOfGate({ message, hint, line, column }: GateProblem): SourceProblem {
  return { message: hint === '' ? message : `${message} (${hint})`, line, column };
}

function jsonOf(source: string | JsonObject): string {
  if (typeof source === 'string') return source;
  try {
    return JSON.stringify(source);
  } catch (cause) {
    throw new EngineError('FIELD_INVALID', 'source: is no JSON', { field: 'source', cause });
  }
}

function modelInvalid(problems: readonly SourceProblem[]): EngineError {
  const [first] = problems;
  const { message = 'is no model', path, line, column } = first ?? {};
  const place = line === undefined ? path : `line ${line}, column ${column}`;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return new EngineError('MODEL_INVALID', `${place ?? 'model'}: ${message}${more}`, { problems });
}
