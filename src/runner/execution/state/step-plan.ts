import type { JsonObject } from '../../../shared/json.ts';
import type {
  Condition,
  Position,
  RunStepDefinition,
  StepDefinition,
  Template,
  UsesStepDefinition,
} from '../../model/workflow.ts';
import { STEP_NAME_CHARACTERS_MAX } from './limits.ts';
import { shownTemplate } from './shown-template.ts';
import type { StepRun } from './step-run.ts';

/** Before the number of a step without id. */
const MADE_UP_KEY = '__step_';

/** A stage of an action that is a step of its own: before or after those of the workflow. */
export type StageDefinition = {
  readonly kind: 'stage';
  readonly at: Position;
  readonly id?: undefined;
  readonly name?: undefined;
  readonly if: Condition;
  readonly env?: Template | undefined;
  readonly continueOnError?: undefined;
  readonly timeoutMinutes?: undefined;
  readonly body: (
    run: StepRun,
    step: {
      readonly env: Readonly<Record<string, string>>;
      readonly ownEnv: Readonly<Record<string, string>>;
      readonly github: JsonObject;
    },
  ) => Promise<boolean>;
};

/** A step in the order shown. Parallel groups are laid out: their steps, then a wait for them. */
export type StepPlan = {
  /** From 1 within the job; steps of composite actions have that of the step that uses it. */
  readonly number: number;
  readonly definition: Exclude<StepDefinition, { kind: 'parallel' }> | StageDefinition;
  readonly id: string | undefined;
  /** By which wait and cancel steps find it: its id, or one made up. */
  readonly key: string;
  /** Before anything was evaluated. */
  readonly name: string;
  readonly isBackground: boolean;
};

/** `steps` laid out, numbered from `first`; `isFixed`: all have the number `first`. */
export function planSteps(
  steps: readonly StepDefinition[],
  first: number,
  isFixed = false,
): StepPlan[] {
  const plan: StepPlan[] = [];
  const add = (
    definition: StepPlan['definition'],
    isBackground: boolean,
    id: string | undefined = definition.id,
  ): string => {
    const key = id ?? `${MADE_UP_KEY}${plan.length + 1}`;
    plan.push({
      number: isFixed ? first : first + plan.length,
      definition,
      id,
      key,
      name: provisionalName(definition),
      isBackground,
    });
    return key;
  };
  for (const step of steps) {
    if (step.kind !== 'parallel') {
      add(step, 'background' in step && step.background);
      continue;
    }
    const keys = step.steps.map((part) => add(withCondition(part, step), true));
    add({ ...step, kind: 'wait', ids: keys }, false);
  }
  return plan;
}

/** A pre or post step; `key` is that of the step it belongs to. */
export function planStage(
  number: number,
  name: string,
  key: string,
  definition: StageDefinition,
): StepPlan {
  return { number, definition, id: undefined, key, name: shortened(name), isBackground: false };
}

/** A step of a group has the group's condition when it has none. */
function withCondition(
  part: RunStepDefinition | UsesStepDefinition,
  group: { readonly if?: StepDefinition['if'] },
): RunStepDefinition | UsesStepDefinition {
  return part.if === undefined && group.if !== undefined ? { ...part, if: group.if } : part;
}

/** What a step is called without `name:` (as on GitHub). */
function defaultName(definition: StepPlan['definition']): string {
  switch (definition.kind) {
    case 'run':
      return nameOfScript(shownTemplate(definition.run));
    case 'uses':
      return `Run ${definition.uses}`;
    case 'wait':
      if (definition.ids === undefined) return 'Wait for all background steps';
      return definition.ids.some((id) => id.startsWith(MADE_UP_KEY))
        ? 'Wait for parallel steps'
        : `Wait for ${definition.ids.join(', ')}`;
    case 'cancel':
      return `Cancel ${definition.target}`;
    case 'stage':
      return '';
  }
}

function provisionalName(definition: StepPlan['definition']): string {
  const given = definition.name === undefined ? undefined : shownTemplate(definition.name);
  return shortened(given ?? defaultName(definition));
}

/** The name of a step that is a script, from its text. */
export function nameOfScript(script: string): string {
  return shortened(`Run ${firstLine(script)}`.trim());
}

function firstLine(text: string): string {
  return text.trimStart().split('\n', 1)[0]?.trim() ?? '';
}

/** Names are one line of bounded length. */
export function shortened(name: string): string {
  const line = name.replaceAll(/\s*[\r\n]+\s*/g, ' ');
  return line.length <= STEP_NAME_CHARACTERS_MAX
    ? line
    : `${line.slice(0, STEP_NAME_CHARACTERS_MAX - 1)}…`;
}
