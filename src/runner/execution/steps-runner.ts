import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import {
  evaluateBoolean,
  evaluateCondition,
  evaluateNumber,
  evaluateText,
  evaluateTexts,
} from '../evaluation/evaluate.ts';
import type { ExpressionScope } from '../model/execution.ts';
import type { Conclusion } from '../model/run.ts';
import { maskedRecord } from '../step-output/masker.ts';
import { runUses } from './actions/run-uses.ts';
import { type StepFrame, frameEnv, scopeOf } from './state/job-state.ts';
import { OUTPUT_BYTES_PER_JOB_MAX, TIMER_MS_MAX } from './state/limits.ts';
import { StepLog } from './state/step-log.ts';
import { nameOfScript, type StepPlan, shortened } from './state/step-plan.ts';
import { type StepResult, StepRun } from './state/step-run.ts';
import { runScript } from './steps/run-script.ts';

const MINUTE_MS = 60_000;

/** A step about to run, with what its `env` gave. */
type ReadyStep = {
  readonly planned: StepPlan;
  readonly frame: StepFrame;
  readonly run: StepRun;
  readonly github: JsonObject;
  /** Steps of composite actions are no steps of their own in the report. */
  readonly isReported: boolean;
  readonly key: string;
  env: Readonly<Record<string, string>>;
  ownEnv: Readonly<Record<string, string>>;
  isStarted: boolean;
};

/**
 * Runs steps one after another. Each decides by its `if` whether it runs; background ones go on beside
 * the others. Never rejects: what goes wrong is a failed step.
 *
 * @param parent the step that uses the composite action whose steps these are.
 */
export async function runSteps(
  frame: StepFrame,
  steps: readonly StepPlan[],
  parent?: StepRun,
): Promise<void> {
  for (const planned of steps) {
    const ready = readyStep(frame, planned, parent);
    // A step that is to stop starts nothing more; a cancelled job's steps are asked one by one.
    const isOver = frame.job.cancelKind === 'force' || parent?.stop.kind !== undefined;
    if (isOver) end(ready, plainResult('skipped'));
    else await runStep(ready, parent);
  }
}

/** Reports all as skipped: the job ends before them. */
export function skipAll(frame: StepFrame, steps: readonly StepPlan[]): void {
  for (const planned of steps) end(readyStep(frame, planned, undefined), plainResult('skipped'));
}

/** The stages of one step share their state. */
function stateOf(frame: StepFrame, planned: StepPlan): Map<string, string> {
  const key = frame.path + planned.key;
  const known = frame.job.states.get(key);
  if (known !== undefined) return known;
  const state = new Map<string, string>();
  frame.job.states.set(key, state);
  return state;
}

function readyStep(frame: StepFrame, planned: StepPlan, parent: StepRun | undefined): ReadyStep {
  const { job } = frame;
  const { number, name, isBackground } = planned;
  const ready: ReadyStep = {
    planned,
    frame,
    run: new StepRun({
      name,
      log: parent?.log ?? new StepLog(number, job),
      environment: isBackground ? frame.environment.fork() : frame.environment,
      state: stateOf(frame, planned),
      mayGoOn: async () => (await conditionHolds(ready)) === true,
    }),
    github: { ...frame.github, action: actionName(frame, planned) },
    isReported: parent === undefined,
    key: planned.key,
    env: frameEnv(frame),
    ownEnv: {},
    isStarted: false,
  };
  return ready;
}

async function runStep(ready: ReadyStep, parent: StepRun | undefined): Promise<void> {
  const { frame, planned, run } = ready;
  frame.job.running.add(run);
  const unlink = parent?.stop.onRequest((kind) => run.stop.request(kind));
  const finish = (result: StepResult): StepResult => {
    frame.job.running.delete(run);
    unlink?.();
    return result;
  };
  const verdict = await evaluateStart(ready);
  if (verdict !== true) {
    end(ready, finish(verdict));
    return;
  }
  if (!planned.isBackground) {
    end(ready, finish(await perform(ready)));
    return;
  }
  frame.background.start({
    id: planned.key,
    run,
    async body() {
      const result = finish(await perform(ready));
      reportEnd(ready, result);
      return result;
    },
    apply(result) {
      frame.environment.apply(run.environment);
      applyResult(ready, result);
    },
  });
}

/** True when the step is to run, else what it ends with: skipped, or failed when `env` or `if` is wrong. */
async function evaluateStart(ready: ReadyStep): Promise<true | StepResult> {
  const { definition } = ready.planned;
  if (definition.env !== undefined) {
    try {
      ready.ownEnv = await evaluateTexts(definition.env, scopeOfStep(ready));
      ready.env = { ...ready.env, ...ready.ownEnv };
    } catch (error) {
      reportFailure(ready, error);
      return plainResult('failure');
    }
  }
  const holds = await conditionHolds(ready);
  if (holds === 'failure') return plainResult('failure');
  return holds ? true : plainResult('skipped');
}

async function conditionHolds(ready: ReadyStep): Promise<boolean | 'failure'> {
  try {
    return await evaluateCondition(ready.planned.definition.if, scopeOfStep(ready));
  } catch (error) {
    reportFailure(ready, error);
    return 'failure';
  }
}

/** With the status of the moment. */
function scopeOfStep(ready: ReadyStep): ExpressionScope {
  return { ...scopeOf(ready.frame, ready.env, ready.github), signal: ready.run.signal };
}

async function perform(ready: ReadyStep): Promise<StepResult> {
  const { frame, run } = ready;
  if (run.isCancelled || frame.job.cancelKind === 'force') return plainResult('cancelled');
  await nameStep(ready);
  start(ready);
  const timeoutMinutes = await evaluateTimeout(ready);
  const timer =
    timeoutMinutes > 0
      ? setTimeout(() => run.timeOut(), Math.min(timeoutMinutes * MINUTE_MS, TIMER_MS_MAX))
      : undefined;
  let outcome: Conclusion;
  try {
    outcome = await runBody(ready);
  } catch (error) {
    reportFailure(ready, error);
    outcome = 'failure';
  } finally {
    clearTimeout(timer);
  }
  if (run.isTimedOut) {
    run.log.error(`The action '${run.name}' has timed out after ${timeoutMinutes} minutes.`);
    outcome = 'failure';
  } else if (run.isCancelled || run.stop.kind !== undefined) {
    run.log.error('The operation was canceled.');
    outcome = 'cancelled';
  } else if (!keepsOutputLimit(ready)) {
    outcome = 'failure';
  }
  const { isLogLost = false } = frame.job.report;
  // Whoever reads the log must be able to trust that it is whole.
  if (isLogLost && outcome === 'success') outcome = 'failure';
  const isForgiven = !isLogLost && outcome === 'failure' && (await continuesOnError(ready));
  return {
    outcome,
    conclusion: isForgiven ? 'success' : outcome,
    outputs: Object.fromEntries(run.outputs),
  };
}

/** Says once that the step has begun: before its first line, and before any end but `skipped`. */
function start(ready: ReadyStep): void {
  if (ready.isStarted || !ready.isReported) return;
  ready.isStarted = true;
  const { report, masker } = ready.frame.job;
  report.stepStarted(ready.planned.number, masker.mask(ready.run.name));
}

async function runBody(ready: ReadyStep): Promise<Conclusion> {
  const { frame, run } = ready;
  const { definition } = ready.planned;
  const isCheckout = definition.kind === 'uses' && /^actions\/checkout@/i.test(definition.uses);
  // That one says itself what it has done; what comes before or after all steps is not looked at.
  if (!isCheckout && definition.kind !== 'stage') frame.job.isTouched = true;
  switch (definition.kind) {
    case 'run':
      return (await runScript(frame, run, definition, scopeOfStep(ready), ready))
        ? 'success'
        : 'failure';
    case 'uses':
      return (await runUses(frame, run, definition, scopeOfStep(ready), ready))
        ? 'success'
        : 'failure';
    case 'wait':
      return await waitForSteps(ready, definition.ids);
    case 'stage':
      return (await definition.body(run, ready)) ? 'success' : 'failure';
    case 'cancel':
      if (!frame.background.has(definition.target)) {
        run.log.warn(`No background step '${definition.target}' was started`);
      }
      await frame.background.cancel(definition.target);
      return 'success';
  }
}

async function waitForSteps(
  ready: ReadyStep,
  ids: readonly string[] | undefined,
): Promise<Conclusion> {
  const { frame, run } = ready;
  const wanted = ids ?? frame.background.unwaited;
  run.log.say(
    wanted.length === 0
      ? 'No background steps remain to be waited for'
      : `Waiting for ${frame.background.namesOf(wanted).join(', ')}`,
  );
  return await frame.background.wait(wanted, run);
}

async function nameStep(ready: ReadyStep): Promise<void> {
  const { definition } = ready.planned;
  const template = definition.name ?? (definition.kind === 'run' ? definition.run : undefined);
  if (template === undefined || template.kind === 'literal' || !ready.isReported) return;
  try {
    const text = await evaluateText(template, scopeOfStep(ready));
    ready.run.name = definition.name === undefined ? nameOfScript(text) : shortened(text);
  } catch (error) {
    // A step that cannot be named can still run, as on GitHub.
    if (!(error instanceof AppError)) throw error;
    if (definition.name !== undefined) {
      start(ready);
      ready.run.log.warn(`The name of the step cannot be evaluated: ${error.message}`);
    }
  }
}

/** 0: no limit. */
async function evaluateTimeout(ready: ReadyStep): Promise<number> {
  const { timeoutMinutes } = ready.planned.definition;
  if (timeoutMinutes === undefined) return 0;
  try {
    return await evaluateNumber(timeoutMinutes, scopeOfStep(ready));
  } catch (error) {
    reportFailure(ready, error);
    return 0;
  }
}

async function continuesOnError(ready: ReadyStep): Promise<boolean> {
  const { continueOnError } = ready.planned.definition;
  if (continueOnError === undefined) return false;
  try {
    return await evaluateBoolean(continueOnError, scopeOfStep(ready));
  } catch (error) {
    reportFailure(ready, error);
    return false;
  }
}

function keepsOutputLimit(ready: ReadyStep): boolean {
  const { run, frame, isReported } = ready;
  if (!isReported) return true;
  for (const [name, value] of run.outputs) {
    frame.job.outputBytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (frame.job.outputBytes <= OUTPUT_BYTES_PER_JOB_MAX) return true;
  run.outputs.clear();
  run.log.error(`The outputs of the job's steps exceed ${OUTPUT_BYTES_PER_JOB_MAX} bytes`);
  return false;
}

function plainResult(conclusion: Conclusion): StepResult {
  return { outcome: conclusion, conclusion, outputs: {} };
}

function end(ready: ReadyStep, result: StepResult): void {
  reportEnd(ready, result);
  applyResult(ready, result);
}

function reportEnd(ready: ReadyStep, result: StepResult): void {
  if (!ready.isReported) return;
  if (result.conclusion !== 'skipped') start(ready);
  const { masker, report } = ready.frame.job;
  report.stepCompleted(ready.planned.number, {
    ...result,
    outputs: maskedRecord(masker, result.outputs),
    name: masker.mask(ready.run.name),
  });
}

/** What the steps that follow see of it. */
function applyResult(ready: ReadyStep, result: StepResult): void {
  const { frame, planned } = ready;
  if (planned.id !== undefined) {
    const { outputs, outcome, conclusion } = result;
    frame.steps = { ...frame.steps, [planned.id]: { outputs, outcome, conclusion } };
  }
  if (result.conclusion === 'failure') frame.hasFailure = true;
}

/** An error that ended the step, in the words of its reason; what is internal stays inside. */
function reportFailure(ready: ReadyStep, error: unknown): void {
  const { log } = ready.run;
  start(ready);
  if (error instanceof AppError) {
    log.error(error.message);
    return;
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  log.error(code === '' ? 'The step failed by an internal error' : `The step failed: ${code}`);
  ready.frame.job.dependencies.onProblem?.(
    'step_failed_internally',
    error instanceof Error ? error : new Error(String(error)),
  );
}

/** GITHUB_ACTION: the id, or a name made from what the step does, with a number when it is taken. */
function actionName(frame: StepFrame, planned: StepPlan): string {
  const { definition } = planned;
  if (planned.id !== undefined) return planned.id;
  if (definition.kind === 'stage') return planned.key;
  const base = definition.kind === 'uses' ? nameOfUses(definition.uses) : '__run';
  const count = (frame.actionNames.get(base) ?? 0) + 1;
  frame.actionNames.set(base, count);
  return count === 1 ? base : `${base}_${count}`;
}

function nameOfUses(uses: string): string {
  if (uses.startsWith('./') || uses.startsWith('$/')) return '__self';
  return `__${(uses.split('@')[0] ?? '').replaceAll(/[^A-Za-z0-9]+/g, '_')}`;
}
