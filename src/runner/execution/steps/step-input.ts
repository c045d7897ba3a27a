import type { StepLog } from '../state/step-log.ts';

/** An input that a step gives, by its name in any letter case, trimmed; `fallback` for an empty one, too. */
export function inputOf(
  given: Readonly<Record<string, string>>,
  name: string,
  fallback = '',
): string {
  for (const [key, value] of Object.entries(given)) {
    if (key.toLowerCase() === name) return value.trim() === '' ? fallback : value.trim();
  }
  return fallback;
}

/** What an action declares. */
export type ValidInputs = {
  readonly names: readonly string[];
  /** What to say of those that should not be used any more, by their names. */
  readonly deprecated: ReadonlyMap<string, string>;
};

/**
 * Warns of inputs that are deprecated, each, and of those that the action does not have, together. Letter case
 * does not count. Source: actions/runner, Worker, ActionRunner.RunAsync.
 */
export function warnOfInputs(
  { names, deprecated }: ValidInputs,
  given: Readonly<Record<string, string>>,
  log: StepLog,
): void {
  const valid = new Set(names.map((name) => name.toLowerCase()));
  const messages = new Map([...deprecated].map(([name, text]) => [name.toLowerCase(), text]));
  for (const name of Object.keys(given)) {
    const message = messages.get(name.toLowerCase());
    if (message === undefined) continue;
    log.warn(`Input '${name}' has been deprecated with message: ${message}`);
  }
  const unexpected = Object.keys(given).filter((name) => !valid.has(name.toLowerCase()));
  if (unexpected.length === 0) return;
  const list = [unexpected, names].map((some) => `'${some.join("', '")}'`);
  log.warn(`Unexpected input(s) ${list[0]}, valid inputs are [${list[1]}]`);
}
