import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../shared/json.ts';
import { evaluateText } from '../../evaluation/evaluate.ts';
import type { ExpressionScope } from '../../model/execution.ts';
import type { RunDefaults, RunStepDefinition, Template } from '../../model/workflow.ts';
import type { StepFrame } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';
import { createCommandFiles, takeCommandFiles } from './command-files.ts';
import { resolveShell } from './shells.ts';
import { judgeExit, runStepProcess } from './step-process.ts';
import { processEnvironment } from './step-variables.ts';
import { mustWorkingFolder } from './working-folder.ts';

let scriptCounter = 0;

/** Runs a `run:` step. Returns whether it succeeded. Errors: those of evaluation and resolveShell. */
export async function runScript(
  frame: StepFrame,
  run: StepRun,
  definition: RunStepDefinition,
  scope: ExpressionScope,
  step: { readonly env: Readonly<Record<string, string>>; readonly github: JsonObject },
): Promise<boolean> {
  const { job } = frame;
  const script = await evaluateText(definition.run, scope);
  const shellName = await firstText(definition.shell, frame, (defaults) => defaults.shell, scope);
  const folder = await firstText(
    definition.workingDirectory,
    frame,
    (defaults) => defaults.workingDirectory,
    scope,
  );
  const cwd = mustWorkingFolder(job, folder ?? '');
  const files = createCommandFiles(job);
  const env = processEnvironment(job, run.environment, step.env, step.github, {
    ...frame.inputVariables,
    ...files.variables,
  });
  const shell = resolveShell(shellName, env['PATH'] ?? '', job.finder);
  scriptCounter += 1;
  const path = join(job.folders.scripts, `${scriptCounter}${shell.extension}`);
  // An earlier step may have guessed the name and put a link there.
  rmSync(path, { force: true });
  // Where the job is kept apart another user has to read it.
  const mode = job.request.isolation === undefined ? 0o700 : 0o755;
  writeFileSync(path, shell.contents(script.replaceAll('\r\n', '\n')), { mode, flag: 'wx' });
  const exit = await runStepProcess(job, run, {
    file: shell.file,
    args: shell.args.map((arg) => arg.replaceAll('{0}', path)),
    cwd,
    env,
  });
  const isFine = await takeCommandFiles(job, run, files);
  return judgeExit(run, shell.file, exit) && isFine;
}

/** The step's own value, else that of the nearest defaults. */
async function firstText(
  own: Template | undefined,
  frame: StepFrame,
  pick: (defaults: RunDefaults) => Template | undefined,
  scope: ExpressionScope,
): Promise<string | undefined> {
  const template = own ?? frame.defaults.map(pick).find((candidate) => candidate !== undefined);
  return template === undefined ? undefined : await evaluateText(template, scope);
}
