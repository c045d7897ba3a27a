import { parseContext } from './conditions.ts';

/** The inputs of the built-in conditions; of several one is enough. */
const BUILT_IN_INPUTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['consent_granted', ['consent']],
  ['age_at_least', ['age']],
  ['ip_in_cidrs', ['ip']],
  ['not_after', ['now']],
  ['scope_in', ['scope', 'scopes']],
]);

/**
 * The inputs of a condition that neither the tuple nor the request gives, sorted; empty where all are
 * there and it is undecided for another reason. `declared`: the parameters of one that the model
 * declares. undefined: no such condition is known.
 */
export function missingInputs(
  condition: string,
  paramsJson: string,
  contextJson: string,
  declared?: Iterable<string>,
): readonly string[] | undefined {
  const context = parseContext(contextJson) ?? {};
  if (declared !== undefined) {
    const params = parseContext(paramsJson) ?? {};
    return [...declared]
      .filter((name) => !Object.hasOwn(params, name) && !Object.hasOwn(context, name))
      .sort();
  }
  const inputs = BUILT_IN_INPUTS.get(condition);
  if (inputs === undefined) return undefined;
  return inputs.some((name) => Object.hasOwn(context, name)) ? [] : inputs;
}
