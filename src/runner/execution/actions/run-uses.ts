import { AppError } from '../../../shared/app-error.ts';
import type { JsonObject } from '../../../shared/json.ts';
import { emptyRecord } from '../../../shared/record.ts';
import { evaluateText, evaluateTexts } from '../../evaluation/evaluate.ts';
import { parseUses } from '../../language/action-reference.ts';
import type { ExpressionScope } from '../../model/execution.ts';
import type {
  ActionDefinition,
  Condition,
  StepDefinition,
  UsesStepDefinition,
} from '../../model/workflow.ts';
import { runBuiltIn } from '../built-ins/built-in-actions.ts';
import { builtInInputs, builtInName } from '../built-ins/built-in-inputs.ts';
import { addPostStep, type LoadedAction, scopeOf, type StepFrame } from '../state/job-state.ts';
import { COMPOSITE_DEPTH_MAX } from '../state/limits.ts';
import { type StepPlan, planStage, planSteps, type StageDefinition } from '../state/step-plan.ts';
import type { StepRun } from '../state/step-run.ts';
import { type ValidInputs, warnOfInputs } from '../steps/step-input.ts';
import { findAction, loadAction } from './action-source.ts';
import { compositeFrame, runComposite } from './run-composite.ts';
import { runDockerAction, runImage } from './run-docker.ts';
import { type ActionUse, githubOf, runJavaScript } from './run-javascript.ts';

/** Every container action takes these beside its own, in the words of the official runner. */
const OF_CONTAINERS: readonly string[] = ['entryPoint', 'args'];

/**
 * The inputs of an action by the names it declares: what the step gives, else the defaults. Given ones
 * that it does not declare are kept, as on GitHub.
 */
export async function resolveActionInputs(
  definition: ActionDefinition,
  given: Readonly<Record<string, string>>,
  scope: ExpressionScope,
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

/** What a `uses:` step brings along. */
export type UsesStep = {
  /** Unique within the frame. */
  readonly key: string;
  readonly env: Readonly<Record<string, string>>;
  /** What the step's own `env` says. */
  readonly ownEnv: Readonly<Record<string, string>>;
  readonly github: JsonObject;
};

/** An image that a step runs without an action around it. */
const NO_ACTION: LoadedAction = {
  dir: '',
  definition: {
    name: '',
    inputs: new Map(),
    outputs: new Map(),
    runs: { kind: 'docker', image: '' },
  },
  isLocal: true,
  repository: '',
  ref: '',
  root: '',
};
const ALWAYS: Omit<Condition, 'at'> = { source: 'always()' };

/** Runs a `uses:` step. Returns whether it succeeded. Errors: those of loading and of evaluation. */
export async function runUses(
  frame: StepFrame,
  run: StepRun,
  definition: UsesStepDefinition,
  scope: ExpressionScope,
  step: UsesStep,
): Promise<boolean> {
  const reference = parseUses(definition.uses);
  const given = await evaluateTexts(definition.with, scope);
  if (reference.kind === 'image') {
    const use = { frame, action: NO_ACTION, inputs: given, env: step.env, github: step.github };
    return await runImage(use, run, reference.image);
  }
  const builtIn = reference.kind === 'remote' ? builtInName(reference) : undefined;
  if (
    reference.kind === 'remote' &&
    builtIn !== undefined &&
    (await findAction(frame.job, reference)) === undefined
  ) {
    warnOfInputs(builtInInputs(builtIn, definition.uses), given, run.log);
    return await runBuiltIn(reference, { frame, run, given, definition, step });
  }
  const action = await loadAction(frame, reference);
  // The step itself says it, once, whatever stages the action has.
  warnOfInputs(declaredInputs(action.definition), given, run.log);
  const use = await useOf(frame, action, given, step);
  const { runs } = action.definition;
  switch (runs.kind) {
    case 'composite':
      return await runComposite(use, run, runs.steps, step);
    case 'javascript':
      addPost(use, definition, { key: step.key, name: run.name });
      return await runJavaScript(use, run, { using: runs.using, file: runs.main });
    case 'docker':
      return await runDockerAction(use, run);
  }
}

async function useOf(
  frame: StepFrame,
  action: LoadedAction,
  given: Readonly<Record<string, string>>,
  step: Pick<UsesStep, 'env' | 'github'>,
): Promise<ActionUse> {
  const github = githubOf({ action, github: step.github });
  const scope = scopeOf(frame, step.env, github);
  const inputs = await resolveActionInputs(action.definition, given, scope);
  return { frame, action, inputs, env: step.env, github: step.github };
}

/** Errors: BACKEND_UNAVAILABLE, for jobs in containers and services: steps run on the host. */
export function noContainers(what: string): AppError {
  const text = `'${what}' needs a container, and this runner executes steps on its host only`;
  return new AppError('BACKEND_UNAVAILABLE', text, { field: 'container' });
}

/** Leaves the post script of a JavaScript action to the end of the job; once for each step. */
function addPost(
  use: ActionUse,
  definition: UsesStepDefinition,
  step: { readonly key: string; readonly name: string },
): void {
  const { runs } = use.action.definition;
  if (runs.kind !== 'javascript' || runs.post === undefined) return;
  const { using, post, postIf } = runs;
  addPostStep(use.frame, step.key, {
    name: `Post ${step.name}`,
    definition: {
      kind: 'stage',
      at: definition.at,
      if: postIf ?? { ...ALWAYS, at: definition.at },
      env: definition.env,
      body: (postRun, stage) =>
        runJavaScript({ ...use, env: stage.env }, postRun, { using, file: post }),
    },
  });
}

/**
 * What is to run before the job's own steps for one of them: `pre` of a remote JavaScript action, or of
 * those that a remote composite action uses. Local actions have none, as on GitHub.
 */
export async function preStageOf(
  frame: StepFrame,
  planned: StepPlan,
): Promise<StageDefinition | undefined> {
  const { definition } = planned;
  if (definition.kind !== 'uses' || !(await hasPre(frame, definition.uses, 0))) return undefined;
  const action = await loadRemoteQuietly(frame, definition.uses);
  const { runs } = action?.definition ?? {};
  if (action === undefined || runs === undefined || runs.kind === 'docker') return undefined;
  const always: Condition = { ...ALWAYS, at: definition.at };
  return {
    kind: 'stage',
    at: definition.at,
    if: runs.kind === 'javascript' ? (runs.preIf ?? always) : always,
    env: definition.env,
    body: async (run, step) => {
      const scope = scopeOf(frame, step.env, step.github);
      const given = await evaluateTexts(definition.with, scope);
      const use = await useOf(frame, action, given, step);
      if (runs.kind === 'composite') return await runInnerPre(use, run, runs.steps, planned, step);
      addPost(use, definition, planned);
      return await runJavaScript(use, run, { using: runs.using, file: runs.pre ?? '' });
    },
  };
}

/** Whether an action, or one that it uses, has a `pre`. */
async function hasPre(frame: StepFrame, uses: string, depth: number): Promise<boolean> {
  const action = await loadRemoteQuietly(frame, uses);
  if (action === undefined || depth > COMPOSITE_DEPTH_MAX) return false;
  const { runs } = action.definition;
  if (runs.kind !== 'composite') return runs.kind === 'javascript' && runs.pre !== undefined;
  for (const step of runs.steps) {
    if (step.kind === 'uses' && (await hasPre(frame, step.uses, depth + 1))) return true;
  }
  return false;
}

async function runInnerPre(
  use: ActionUse,
  run: StepRun,
  steps: readonly StepDefinition[],
  planned: StepPlan,
  step: Pick<UsesStep, 'ownEnv'>,
): Promise<boolean> {
  const inner = compositeFrame(use, run, { key: planned.key, ownEnv: step.ownEnv });
  run.isComposite = true;
  const stages: StepPlan[] = [];
  for (const part of planSteps(steps, run.log.number, true)) {
    const stage = await preStageOf(inner, part);
    if (stage !== undefined) stages.push(planStage(part.number, part.name, part.key, stage));
  }
  await use.frame.job.runSteps(inner, stages, run);
  return !inner.hasFailure;
}

/** A remote action that is here. What is wrong with it is said by the step that uses it. */
async function loadRemoteQuietly(
  frame: StepFrame,
  uses: string,
): Promise<LoadedAction | undefined> {
  try {
    const reference = parseUses(uses);
    if (reference.kind !== 'remote') return undefined;
    const isHere = (await findAction(frame.job, reference)) !== undefined;
    return isHere ? await loadAction(frame, reference) : undefined;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
