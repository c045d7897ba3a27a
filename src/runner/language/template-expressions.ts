import type { Expr } from '@actions/expressions';
import type { Condition, Position, StepDefinition, Template } from '../model/workflow.ts';
import { EVERYTHING_AVAILABLE, parseExpression } from './expression.ts';

/** An expression of a file with its tree. */
export type FoundExpression = { readonly tree: Expr; readonly at: Position };

/** Every expression below the given parts, conditions included. What does not parse is left out. */
export function expressionsIn(
  parts: readonly (Template | Condition | undefined)[],
): readonly FoundExpression[] {
  return parts.flatMap((part) => (part === undefined ? [] : sourcesOf(part))).flatMap(parsed);
}

type SourcedText = { readonly source: string; readonly at: Position };

function sourcesOf(part: Template | Condition): readonly SourcedText[] {
  if (!('kind' in part)) {
    return [part];
  }
  switch (part.kind) {
    case 'literal':
      return [];
    case 'expression':
      return [part];
    case 'sequence':
      return part.items.flatMap(sourcesOf);
    case 'mapping':
      return part.entries.flatMap(({ key, value }) => [...sourcesOf(key), ...sourcesOf(value)]);
  }
}

function parsed({ source, at }: SourcedText): readonly FoundExpression[] {
  try {
    return [{ tree: parseExpression(source, EVERYTHING_AVAILABLE), at }];
  } catch {
    // `insert` and what its reader reported.
    return [];
  }
}

/** All parts of a step that may hold expressions. */
export function partsOfStep(step: StepDefinition): readonly (Template | Condition | undefined)[] {
  const common = [step.name, step.if, step.env, step.continueOnError, step.timeoutMinutes];
  switch (step.kind) {
    case 'run':
      return [...common, step.run, step.shell, step.workingDirectory];
    case 'uses':
      return [...common, step.with];
    case 'parallel':
      return [...common, ...step.steps.flatMap(partsOfStep)];
    default:
      return common;
  }
}
