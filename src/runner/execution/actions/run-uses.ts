import { AppError } from '../../../shared/app-error.ts';
import type { Scope } from '../../model/execution.ts';
import type { JsonObject } from '../../model/run.ts';
import type { UsesStepDefinition } from '../../model/workflow.ts';
import type { Frame } from '../job-state.ts';
import type { StepRun } from '../steps/step-run.ts';

/** Runs a `uses:` step. */
export async function runUses(
  frame: Frame,
  run: StepRun,
  definition: UsesStepDefinition,
  scope: Scope,
  step: { readonly env: Readonly<Record<string, string>>; readonly github: JsonObject },
): Promise<boolean> {
  await Promise.resolve([frame, run, scope, step]);
  throw new AppError('METHOD_UNIMPLEMENTED', `${definition.uses}: actions are not run yet`);
}
