import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { JsonObject } from '../../model/run.ts';
import type { UsesStepDefinition } from '../../model/workflow.ts';
import type { StepFrame } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';

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
