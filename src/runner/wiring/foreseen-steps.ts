import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import { builtInName } from '../execution/built-ins/built-in-inputs.ts';
import { refusalOfRepository } from '../execution/built-ins/checkout-inputs.ts';
import { pythonWish } from '../host/tools/python-version.ts';
import { referenceIn } from '../language/action-reference.ts';
import { textOfValue } from '../language/expression-data.ts';
import { entriesOf } from '../language/template-access.ts';
import type { StepDefinition } from '../model/workflow.ts';
import { valuesShown } from './foreseen-values.ts';

type ActionStep = Extract<StepDefinition, { readonly kind: 'uses' }>;

/**
 * Why a step of an action that this runner does itself will fail in one of the matrix jobs: a checkout of another
 * repository than `own`, a Python that cannot be had. Undefined where the file shows no reason.
 */
export async function builtInProblem(
  step: ActionStep,
  matrixJobs: readonly JsonObject[] | undefined,
  own: () => Promise<string>,
): Promise<string | undefined> {
  const reference = referenceIn(step.uses.trim());
  const name = reference?.kind === 'remote' ? builtInName(reference) : undefined;
  const textsOf = (input: string): Promise<readonly string[]> =>
    givenTexts(step, input, matrixJobs);
  if (name === 'actions/checkout') {
    for (const wanted of await textsOf('repository')) {
      const refusal = refusalOfRepository(wanted, await own());
      if (refusal !== undefined) return `${step.uses}: ${refusal}`;
    }
  }
  if (name !== 'actions/setup-python') return undefined;
  const isFree = (await textsOf('freethreaded')).some((text) => text.toLowerCase() === 'true');
  if (isFree) return `${step.uses}: a Python that is freethreaded cannot be had`;
  for (const version of (await textsOf('python-version')).flatMap((text) => text.split('\n'))) {
    const refusal = version.trim() === '' ? undefined : pythonRefusal(version.trim());
    if (refusal !== undefined) return `${step.uses}: ${refusal}`;
  }
  return undefined;
}

function pythonRefusal(version: string): string | undefined {
  try {
    pythonWish(version);
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

/** An input as far as the file shows it, trimmed. */
async function givenTexts(
  step: ActionStep,
  input: string,
  matrixJobs: readonly JsonObject[] | undefined,
): Promise<readonly string[]> {
  const given = entriesOf(step.with).find(({ name }) => name.toLowerCase() === input);
  const values = given === undefined ? [] : ((await valuesShown(given.value, matrixJobs)) ?? []);
  return values.map((value) => textOfValue(value).trim());
}
