import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { emptyRecord } from '../../shared/record.ts';
import type { Workflow, WorkflowInput } from '../model/workflow.ts';
import { INPUTS_CHARACTERS_MAX, INPUTS_MAX } from './limits.ts';

/** Inputs as the `inputs` context has them, and all of them as texts for `github.event.inputs`. */
export type ResolvedInputs = {
  readonly typed: JsonObject;
  readonly texts: Readonly<Record<string, string>>;
};

/**
 * The inputs of a manual start: given values over defaults, each of its declared type. Names compare
 * without case. An unset boolean is false, an unset number 0, an unset choice its first option, an unset
 * text ''. `environments` are the known ones; without any, every name will do.
 * Errors: INVALID_INPUTS with one metadata entry an input that is wrong.
 */
export function resolveDispatchInputs(
  workflow: Workflow,
  given: Readonly<Record<string, string>>,
  environments: readonly string[],
): ResolvedInputs {
  const problems = emptyRecord<string>();
  const values = givenByName(workflow, given, problems);
  const typed = emptyRecord<JsonValue>();
  const texts = emptyRecord<string>();
  for (const [name, input] of workflow.dispatchInputs) {
    const value = values.get(name);
    const text = value ?? input.default ?? unsetText(input);
    const isMissing = input.required === true && (value ?? input.default ?? '') === '';
    const problem = isMissing
      ? 'is required'
      : problemOf(text, input, value !== undefined, environments);
    if (problem !== undefined) {
      problems[name] = problem;
    }
    typed[name] = typedValue(text, input);
    texts[name] = text;
  }
  throwProblems(problems);
  return { typed, texts };
}

function givenByName(
  workflow: Workflow,
  given: Readonly<Record<string, string>>,
  problems: Record<string, string>,
): Map<string, string> {
  const names = Object.keys(given);
  const characters = names.reduce((sum, name) => sum + name.length + (given[name] ?? '').length, 0);
  if (names.length > INPUTS_MAX) {
    throw inputsError({ inputs: `at most ${INPUTS_MAX} inputs` });
  }
  if (characters > INPUTS_CHARACTERS_MAX) {
    throw inputsError({ inputs: `at most ${INPUTS_CHARACTERS_MAX} characters together` });
  }
  const nameOfLower = new Map(
    [...workflow.dispatchInputs.keys()].map((name) => [name.toLowerCase(), name]),
  );
  const values = new Map<string, string>();
  for (const name of names) {
    const declared = nameOfLower.get(name.toLowerCase());
    if (declared === undefined) {
      problems[name] = 'is not an input of this workflow';
    } else if (values.has(declared)) {
      problems[name] = 'is given more than once';
    } else {
      values.set(declared, given[name] ?? '');
    }
  }
  return values;
}

function unsetText(input: WorkflowInput): string {
  switch (input.type) {
    case 'boolean':
      return 'false';
    case 'number':
      return '0';
    case 'choice':
      return input.options?.[0] ?? '';
    default:
      return '';
  }
}

function problemOf(
  text: string,
  input: WorkflowInput,
  isGiven: boolean,
  environments: readonly string[],
): string | undefined {
  switch (input.type) {
    case 'boolean':
      return text === 'true' || text === 'false' ? undefined : 'must be true or false';
    case 'number':
      return isNumberText(text) ? undefined : 'must be a number';
    case 'choice':
      return (input.options ?? []).includes(text)
        ? undefined
        : `must be one of ${(input.options ?? []).join(', ')}`;
    case 'environment':
      return isGiven &&
        text !== '' &&
        environments.length > 0 &&
        !environments.some((name) => name.toLowerCase() === text.toLowerCase())
        ? 'is not a known environment'
        : undefined;
    default:
      return undefined;
  }
}

/** A decimal number as JSON writes it, with an optional sign; no infinity. */
export function isNumberText(text: string): boolean {
  return (
    /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i.test(text) && Number.isFinite(Number(text))
  );
}

function typedValue(text: string, input: WorkflowInput): JsonValue {
  if (input.type === 'boolean') {
    return text === 'true';
  }
  return input.type === 'number' ? Number(text) : text;
}

function throwProblems(problems: Readonly<Record<string, string>>): void {
  if (Object.keys(problems).length > 0) {
    throw inputsError(problems);
  }
}

function inputsError(problems: Readonly<Record<string, string>>): AppError {
  const text = Object.entries(problems)
    .map(([name, problem]) => `${name} ${problem}`)
    .join('; ');
  return new AppError('INVALID_INPUTS', text, problems);
}
