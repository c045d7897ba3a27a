import { evaluateText } from '../../evaluation/evaluate.ts';
import type { Scope } from '../../model/execution.ts';
import type { ActionDefinition } from '../../model/workflow.ts';
import type { StepLog } from '../state/step-log.ts';

/**
 * The inputs of an action by the names it declares: what the step gives, else the defaults. Given ones
 * that it does not declare are kept, with a warning, as on GitHub.
 */
export async function resolveActionInputs(
  definition: ActionDefinition,
  given: Readonly<Record<string, string>>,
  scope: Scope,
  log: StepLog,
): Promise<Record<string, string>> {
  const inputs: Record<string, string> = {};
  const declared = new Map([...definition.inputs.keys()].map((name) => [name.toLowerCase(), name]));
  const unexpected: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    const own = declared.get(name.toLowerCase());
    if (own === undefined) unexpected.push(name);
    inputs[own ?? name] = value;
  }
  const isOpen = definition.runs.kind === 'docker';
  const unknown = unexpected.filter(
    (name) => !(isOpen && ['args', 'entrypoint'].includes(name.toLowerCase())),
  );
  if (unknown.length > 0) {
    const list = [...declared.values()].map((name) => `'${name}'`).join(', ');
    const names = unknown.map((name) => `'${name}'`).join(', ');
    log.warn(`Unexpected input(s) ${names}, valid inputs are [${list}]`);
  }
  for (const [name, input] of definition.inputs) {
    if (Object.hasOwn(inputs, name)) {
      if (input.deprecationMessage !== undefined) {
        log.warn(`Input '${name}' has been deprecated with message: ${input.deprecationMessage}`);
      }
    } else {
      inputs[name] = input.default === undefined ? '' : await evaluateText(input.default, scope);
    }
  }
  return inputs;
}
