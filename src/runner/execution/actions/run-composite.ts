import { AppError } from '../../../shared/app-error.ts';
import { evaluateText } from '../../evaluation/evaluate.ts';
import type { StepDefinition } from '../../model/workflow.ts';
import { BackgroundSteps } from '../state/background-steps.ts';
import { type StepFrame, frameEnv, scopeOf } from '../state/job-state.ts';
import { COMPOSITE_DEPTH_MAX } from '../state/limits.ts';
import { planSteps } from '../state/step-plan.ts';
import type { StepRun } from '../state/step-run.ts';
import { type ActionUse, githubOf } from './run-javascript.ts';

/**
 * Runs the steps of a composite action within the step that uses it: with inputs, steps and status of
 * their own, and its log. `ownEnv`: what the step's own `env` says.
 * Errors: INVALID_WORKFLOW when actions use each other too deeply.
 */
export async function runComposite(
  use: ActionUse,
  run: StepRun,
  steps: readonly StepDefinition[],
  place: { readonly key: string; readonly ownEnv: Readonly<Record<string, string>> },
): Promise<boolean> {
  const inner = compositeFrame(use, run, place);
  run.isComposite = true;
  await use.frame.job.runSteps(inner, planSteps(steps, run.log.number, true), run);
  const worst = await inner.background.wait(inner.background.unwaited, run);
  if (worst === 'failure') inner.hasFailure = true;
  const scope = scopeOf(inner, frameEnv(inner));
  for (const [name, template] of use.action.definition.outputs) {
    if (template !== undefined) run.outputs.set(name, await evaluateText(template, scope));
  }
  return !inner.hasFailure;
}

/** The frame of the action's steps. */
export function compositeFrame(
  use: ActionUse,
  run: StepRun,
  place: { readonly key: string; readonly ownEnv: Readonly<Record<string, string>> },
): StepFrame {
  const { frame, action } = use;
  if (frame.depth >= COMPOSITE_DEPTH_MAX) {
    const text = `Composite actions are nested more than ${COMPOSITE_DEPTH_MAX} deep`;
    throw new AppError('INVALID_WORKFLOW', text, { field: 'uses' });
  }
  const { strategy, matrix } = frame.contexts;
  return {
    job: frame.job,
    depth: frame.depth + 1,
    path: `${frame.path}${place.key}/`,
    environment: run.environment,
    overrides: { ...frame.overrides, ...place.ownEnv },
    github: githubOf(use),
    contexts: { inputs: use.inputs, strategy, matrix },
    defaults: [],
    inputVariables: {},
    repositoryRoot: action.isLocal ? frame.repositoryRoot : action.root,
    steps: {},
    actionNames: new Map(),
    background: new BackgroundSteps(),
    hasFailure: false,
  };
}
