import { AppError } from '../../shared/app-error.ts';
import { mustBeVariables } from '../model/given-variables.ts';
import type { StartRequest } from '../model/ports.ts';
import { BodyFields } from './body-fields.ts';

/** Characters of names and values of all inputs together (GitHub's limit of the payload). */
const INPUT_CHARACTERS_MAX = 65_535;
const INPUTS_MAX = 25;
const NAME_LENGTH_MAX = 1_000;
const REF_LENGTH_MAX = 1_000;
const JOBS_MAX = 256;
/** Secrets, variables, and values of one key of a matrix. */
const VALUES_MAX = 100;
const VALUE_LENGTH_MAX = 48 * 1024;
/** Fields of `sandbox`, and of the body, for who puts them into the other one. */
const OF_SANDBOX = new Map(
  ['strategy', 'ref', 'allowPush'].map((name) => [name, `sandbox.${name}`]),
);
const OF_BODY = new Map(
  ['inputs', 'event', 'payload', 'force', 'jobs', 'matrix', 'secrets', 'variables', 'env'].map(
    (name) => [name, `${name}, beside sandbox`],
  ),
);
const STRATEGIES = ['worktree', 'copy', 'none'] as const;

/**
 * The body of POST /api/runs. Whether the workflow has these inputs, and whether the event would start it, is judged later.
 * Errors: INVALID_REQUEST for the form, INVALID_INPUTS for values that are no text, number or boolean,
 * and for too many of them.
 */
export function parseStart(json: unknown): StartRequest {
  const fields = new BodyFields(json);
  const workflow = fields.requiredText('workflow', NAME_LENGTH_MAX);
  const inputs = fields.any('inputs');
  const event = fields.text('event', NAME_LENGTH_MAX);
  const payload = fields.any('payload');
  const isForced = fields.flag('force');
  const jobs = fields.texts('jobs', JOBS_MAX, NAME_LENGTH_MAX);
  const matrix = fields.object('matrix')?.listsOfTexts(VALUES_MAX, NAME_LENGTH_MAX);
  const secrets = fields.object('secrets')?.allTexts(VALUES_MAX, VALUE_LENGTH_MAX);
  const variables = fields.object('variables')?.allTexts(VALUES_MAX, VALUE_LENGTH_MAX);
  const env = parseVariables(fields.any('env'));
  const sandboxFields = fields.object('sandbox');
  fields.end(OF_SANDBOX);
  const sandbox =
    sandboxFields === undefined
      ? undefined
      : {
          strategy: sandboxFields.choice('strategy', STRATEGIES),
          ref: sandboxFields.text('ref', REF_LENGTH_MAX),
          allowPush: sandboxFields.flag('allowPush'),
        };
  sandboxFields?.end(OF_BODY);
  const given = env === undefined ? {} : { env };
  return {
    ...given,
    workflow,
    inputs: inputs === undefined ? undefined : parseInputs(inputs),
    event,
    payload,
    isForced,
    jobs,
    matrix,
    secrets,
    variables,
    sandbox,
  };
}

/** Errors: INVALID_REQUEST. */
function parseVariables(value: unknown): StartRequest['env'] {
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new AppError('INVALID_REQUEST', 'env: must be a JSON object', { field: 'env' });
  }
  return mustBeVariables(Object.entries(value));
}

function parseInputs(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new AppError('INVALID_REQUEST', 'inputs: must be a JSON object', { field: 'inputs' });
  }
  const entries = Object.entries(value as Readonly<Record<string, unknown>>);
  if (entries.length > INPUTS_MAX) {
    throw new AppError('INVALID_INPUTS', `inputs: more than ${INPUTS_MAX} inputs are given`);
  }
  const problems: [string, string][] = [];
  let characters = 0;
  const texts = entries.map(([name, given]): [string, string] => {
    const text = typeof given === 'string' ? given : textOf(given);
    if (text === undefined) {
      problems.push([name.slice(0, NAME_LENGTH_MAX), 'must be a string, a number or a boolean']);
    }
    characters += name.length + (text?.length ?? 0);
    return [name, text ?? ''];
  });
  if (problems.length > 0) {
    throw new AppError(
      'INVALID_INPUTS',
      'inputs have the wrong type',
      Object.fromEntries(problems),
    );
  }
  if (characters > INPUT_CHARACTERS_MAX) {
    const text = `inputs: have more than ${INPUT_CHARACTERS_MAX} characters together`;
    throw new AppError('INVALID_INPUTS', text);
  }
  return Object.fromEntries(texts);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'boolean' || typeof value === 'number' ? String(value) : undefined;
}
