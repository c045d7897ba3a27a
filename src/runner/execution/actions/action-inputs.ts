import { emptyRecord } from '../../../shared/record.ts';
import { evaluateText } from '../../evaluation/evaluate.ts';
import type { Scope } from '../../model/execution.ts';
import type { ActionDefinition } from '../../model/workflow.ts';
import type { ValidInputs } from '../steps/warn-of-inputs.ts';

/** Every container action takes these beside its own, in the words of the official runner. */
const OF_CONTAINERS: readonly string[] = ['entryPoint', 'args'];

/**
 * The inputs of an action by the names it declares: what the step gives, else the defaults. Given ones
 * that it does not declare are kept, as on GitHub.
 */
export async function resolveActionInputs(
  definition: ActionDefinition,
  given: Readonly<Record<string, string>>,
  scope: Scope,
): Promise<Record<string, string>> {
  const inputs = emptyRecord<string>();
  const declared = new Map([...definition.inputs.keys()].map((name) => [name.toLowerCase(), name]));
  for (const [name, value] of Object.entries(given)) {
    inputs[declared.get(name.toLowerCase()) ?? name] = value;
  }
  for (const [name, input] of definition.inputs) {
    if (Object.hasOwn(inputs, name)) continue;
    inputs[name] = input.default === undefined ? '' : await evaluateText(input.default, scope);
  }
  return inputs;
}

/** The inputs that an action's own file declares. */
export function declaredInputs({ inputs, runs }: ActionDefinition): ValidInputs {
  const deprecated = new Map<string, string>();
  for (const [name, { deprecationMessage }] of inputs) {
    if (deprecationMessage !== undefined) deprecated.set(name, deprecationMessage);
  }
  const names = [...(runs.kind === 'docker' ? OF_CONTAINERS : []), ...inputs.keys()];
  return { names, deprecated };
}
