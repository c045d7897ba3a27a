import { join } from 'node:path';
import type { JsonObject } from '../../../shared/json.ts';
import type { LoadedAction, StepFrame } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';
import { createCommandFiles, takeCommandFiles } from '../steps/command-files.ts';
import { judgeExit, runStepProcess } from '../steps/step-process.ts';
import { inputVariables, processEnvironment } from '../steps/step-variables.ts';
import { nodeFor } from './node-programs.ts';

/** One use of an action: what its stages have in common. */
export type ActionUse = {
  readonly frame: StepFrame;
  readonly action: LoadedAction;
  readonly inputs: Readonly<Record<string, string>>;
  /** `env` of the step, with everything below it. */
  readonly env: Readonly<Record<string, string>>;
  readonly github: JsonObject;
};

/** Runs one script of a JavaScript action: `main`, `pre` or `post`, relative to the action's folder. */
export async function runJavaScript(
  use: ActionUse,
  run: StepRun,
  script: { readonly using: string; readonly file: string },
): Promise<boolean> {
  const { job } = use.frame;
  const files = createCommandFiles(job);
  const node = await nodeFor(job, script.using, run);
  const exit = await runStepProcess(job, run, {
    file: node,
    args: [join(use.action.dir, script.file)],
    cwd: job.folders.workspace,
    env: processEnvironment(job, run.environment, use.env, githubOf(use), {
      ...inputVariables(use.inputs),
      ...stateVariables(run.state),
      ...files.variables,
    }),
  });
  const isFine = await takeCommandFiles(job, run, files);
  return judgeExit(run, node, exit) && isFine;
}

/** The `github` context within an action. */
export function githubOf(use: Pick<ActionUse, 'action' | 'github'>): JsonObject {
  return {
    ...use.github,
    action_path: use.action.dir,
    action_repository: use.action.repository,
    action_ref: use.action.ref,
  };
}

function stateVariables(state: ReadonlyMap<string, string>): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [name, value] of state) variables[`STATE_${name}`] = value;
  return variables;
}
