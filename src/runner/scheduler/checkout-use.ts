import type { StepDefinition, Template, UsesStepDefinition } from '../model/workflow.ts';

const CHECKOUT = /^actions\/checkout@/i;
/** Actions of GitHub's own that are known to check nothing out. */
const HARMLESS = /^(?:actions\/(?!checkout)|docker:\/\/)/i;

/** What a job does with actions/checkout, as far as its file says. */
type CheckoutUse = {
  /** One of its steps is that action. Within other actions it is not seen. */
  readonly isThere: boolean;
  /** All of them check out into another folder: the workspace itself begins empty. */
  readonly isElsewhere: boolean;
  /** It may come when the job has changed its workspace already, or for a second time. */
  readonly mayComeLate: boolean;
};

/** O(steps). */
export function checkoutUse(steps: readonly StepDefinition[]): CheckoutUse {
  const uses = steps
    .flatMap((step): readonly StepDefinition[] => (step.kind === 'parallel' ? step.steps : [step]))
    .filter((step) => step.kind === 'uses');
  const checkouts = uses.filter((step) => CHECKOUT.test(step.uses));
  const isThere = checkouts.length > 0;
  const [first] = steps;
  const isFirst = first?.kind === 'uses' && CHECKOUT.test(first.uses) && isAtRoot(first);
  const later = isFirst ? uses.filter((step) => step !== first) : uses;
  return {
    isThere,
    isElsewhere: isThere && !checkouts.some(isAtRoot),
    mayComeLate: later.some((step) => !HARMLESS.test(step.uses)),
  };
}

/** A path that is an expression is taken for another folder. */
function isAtRoot({ with: given }: UsesStepDefinition): boolean {
  if (given === undefined) return true;
  if (given.kind !== 'mapping') return false;
  const paths = given.entries.filter(({ key }) => textOf(key)?.toLowerCase() === 'path');
  return paths.every(({ value }) => ['', '.', './'].includes(textOf(value) ?? 'elsewhere'));
}

function textOf(template: Template): string | undefined {
  return template.kind === 'literal' ? String(template.value ?? '') : undefined;
}
