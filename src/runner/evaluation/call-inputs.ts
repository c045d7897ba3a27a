import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { emptyRecord } from '../../shared/record.ts';
import { textOfValue } from '../language/expression-data.ts';
import type { ExpressionScope } from '../model/execution.ts';
import type { CallJobDefinition, InputType } from '../model/workflow.ts';
import { evaluateTemplate } from './evaluate.ts';

/**
 * The `inputs` context of a called workflow: the evaluated `with:` of its caller (in `callerScope`) over
 * the declared defaults (in `calledScope`: its github and vars), each of the declared type. An unset
 * boolean is false, an unset number 0, an unset text ''.
 * Errors: INVALID_INPUTS with one metadata entry an input; INVALID_WORKFLOW from evaluation.
 */
export async function resolveCallInputs(
  job: CallJobDefinition,
  callerScope: ExpressionScope,
  calledScope: ExpressionScope,
): Promise<JsonObject> {
  const given =
    job.with === undefined ? {} : objectFrom(await evaluateTemplate(job.with, callerScope));
  const valueOfLower = new Map(
    Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const problems = emptyRecord<string>();
  const entries: [string, JsonValue][] = [];
  for (const [name, input] of job.called.call?.inputs ?? []) {
    let value = valueOfLower.get(name.toLowerCase());
    valueOfLower.delete(name.toLowerCase());
    if (value === undefined && input.required === true) {
      problems[name] = 'is required';
    }
    if (value === undefined && input.defaultTemplate !== undefined) {
      value = await evaluateTemplate(input.defaultTemplate, calledScope);
    }
    const typed = typedValue(value, input.type);
    if (typed === undefined) {
      problems[name] = `must be a ${input.type ?? 'string'}`;
    }
    entries.push([name, typed ?? null]);
  }
  for (const name of valueOfLower.keys()) {
    problems[name] = 'is not an input of the called workflow';
  }
  if (Object.keys(problems).length > 0) {
    const text = Object.entries(problems)
      .map(([name, problem]) => `${name} ${problem}`)
      .join('; ');
    throw new AppError('INVALID_INPUTS', `${job.key}: ${text}`, problems);
  }
  return Object.fromEntries(entries);
}

/** undefined where the value does not have the type, by GitHub's rules: texts take every scalar. */
function typedValue(
  value: JsonValue | undefined,
  type: InputType | undefined,
): JsonValue | undefined {
  const isUnset = value === undefined || value === null;
  switch (type) {
    case 'boolean':
      return isUnset ? false : typeof value === 'boolean' ? value : undefined;
    case 'number':
      return isUnset ? 0 : typeof value === 'number' && Number.isFinite(value) ? value : undefined;
    default:
      return typeof value === 'object' && value !== null ? undefined : textOfValue(value);
  }
}

function objectFrom(value: JsonValue): JsonObject {
  if (value === null) {
    return {};
  }
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new AppError('INVALID_WORKFLOW', 'with: A mapping was expected');
  }
  return value as JsonObject;
}
