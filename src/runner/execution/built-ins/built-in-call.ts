import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { JsonObject } from '../../../shared/json.ts';
import type { UsesStepDefinition } from '../../model/workflow.ts';
import type { StepFrame } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';
import { inputOf } from '../steps/step-input.ts';

/** One use of a built-in action. */
export type BuiltInCall = {
  readonly frame: StepFrame;
  readonly run: StepRun;
  /** `with:`, evaluated. */
  readonly given: Readonly<Record<string, string>>;
  readonly definition: UsesStepDefinition;
  readonly step: {
    readonly key: string;
    readonly env: Readonly<Record<string, string>>;
    readonly github: JsonObject;
  };
};

/** A path of an input: relative ones start at the workspace, `~` is the home folder. */
export function pathOf(call: BuiltInCall, text: string): string {
  const { workspace } = call.frame.job.folders;
  const home = call.frame.job.request.isolation?.home ?? homedir();
  if (text === '~' || text.startsWith('~/')) return join(home, text.slice(1));
  return resolve(workspace, text);
}

/** The lines of an input that holds a list. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Whether an action is used in this major version or a later one; a commit or branch counts as later. */
export function isFrom(uses: string, major: number): boolean {
  const named = /@v(\d+)(?:\.|$)/.exec(uses)?.[1];
  return named === undefined || Number(named) >= major;
}

/** An input that is a boolean, in any letter case. Errors: INVALID_VALUE for other text. */
export function flagOf(call: BuiltInCall, name: string, fallback = false): boolean {
  const text = inputOf(call.given, name).toLowerCase();
  if (text === '') return fallback;
  if (text === 'true' || text === 'false') return text === 'true';
  throw new AppError('INVALID_VALUE', `${name}: must be true or false`, { field: name });
}
