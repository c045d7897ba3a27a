import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import { emptyRecord } from '../../shared/record.ts';
import { evaluateNumber, evaluateTemplate, evaluateText } from '../evaluation/evaluate.ts';
import type { Supervisor } from '../host/process/supervision.ts';
import { sweepProcesses } from '../host/process/sweep.ts';
import { stepsReferencedBy } from '../language/references.ts';
import type {
  CancelKind,
  JobExecutor,
  JobOutcome,
  JobReport,
  JobRequest,
} from '../model/execution.ts';
import type { StepDefinition, Template } from '../model/workflow.ts';
import { noContainers, preStageOf } from './actions/run-uses.ts';
import { createFrame, createState, makeFolders, removeCommandFiles } from './job-setup.ts';
import {
  type ExecutorDependencies,
  frameEnv,
  type JobState,
  scopeOf,
  type StepFrame,
} from './state/job-state.ts';
import {
  CANCEL_TIMEOUT_MS,
  OUTPUT_BYTES_PER_JOB_MAX,
  STEPS_MAX,
  TIMER_MS_MAX,
} from './state/limits.ts';
import { type StepPlan, planStage, planSteps } from './state/step-plan.ts';
import { runSteps, skipAll } from './steps-runner.ts';

const MINUTE_MS = 60_000;

/**
 * One job from its first step to its last. SPEC: setting up → steps → post steps → ended; a cancel may
 * come at any time.
 * J1: `run` never rejects. J2: post steps run in the reverse order of the steps that left them. J3: after
 * `cancel`, steps run only if their condition holds; after `force`, none. J4: no process of the job is
 * left when `run` has resolved. J5: nothing is reported after that.
 */
export class JobRun {
  readonly #job: JobState;
  #cancelTimeoutMs = CANCEL_TIMEOUT_MS;
  #isOver = false;
  #timers: NodeJS.Timeout[] = [];
  #known: { number: number; name: string; id?: string | undefined }[] = [];

  constructor(request: JobRequest, report: JobReport, dependencies: ExecutorDependencies) {
    this.#job = createState(request, report, dependencies);
  }

  async run(): Promise<JobOutcome> {
    const job = this.#job;
    let frame: StepFrame | undefined;
    const acquiring = job.dependencies.supervision?.acquire();
    try {
      for (const value of [...job.request.masks, ...job.hidden]) job.masker.add(value);
      makeFolders(job);
      this.#after(job.request.timeoutMs, () => this.#timeOut());
      frame = await createFrame(job);
      job.supervisor = await acquiring;
      await this.#evaluateCancelTimeout(frame);
      await this.#runAll(frame);
      return await this.#conclude(frame);
    } catch (error) {
      this.#report(error);
      return { ...this.#conclusion(true), outputs: {} };
    } finally {
      this.#isOver = true;
      for (const timer of this.#timers) clearTimeout(timer);
      this.#timers = [];
      await this.#endProcesses(await acquiring);
      removeCommandFiles(job);
    }
  }

  cancel(kind: CancelKind): void {
    const job = this.#job;
    const isFirst = job.cancelKind === undefined;
    if (this.#isOver || (!isFirst && kind !== 'force')) return;
    const wasTimeout = job.cancelKind === 'timeout';
    job.hasTimedOut ||= kind === 'timeout' || wasTimeout;
    job.cancelKind = kind;
    if (kind === 'force') {
      for (const run of job.running) {
        run.isCancelled = true;
        run.stop.request('kill');
      }
      return;
    }
    this.#after(this.#cancelTimeoutMs, () => this.cancel('force'));
    for (const run of job.running) void run.reconsider();
  }

  async #evaluateCancelTimeout(frame: StepFrame): Promise<void> {
    const template = this.#job.request.job.cancelTimeoutMinutes;
    if (template === undefined) return;
    this.#cancelTimeoutMs = MINUTE_MS * (await evaluateNumber(template, scopeOf(frame, {})));
  }

  #after(ms: number, callback: () => void): void {
    this.#timers.push(setTimeout(callback, Math.min(ms, TIMER_MS_MAX)));
  }

  #timeOut(): void {
    const minutes = this.#job.request.timeoutMs / MINUTE_MS;
    this.#job.annotate(
      'error',
      `The job has exceeded the maximum execution time of ${minutes} minutes`,
    );
    this.cancel('timeout');
  }

  async #runAll(frame: StepFrame): Promise<void> {
    const { steps } = this.#job.request.job;
    refuseTooMany(steps);
    const pre = await this.#preSteps(frame, planSteps(steps, 1));
    const plan = [...pre, ...planSteps(steps, pre.length + 1)];
    this.#emit(plan);
    await this.#refuseContainers(frame, plan);
    await runSteps(frame, plan);
    const worst = await frame.background.wait(frame.background.unwaited);
    if (worst === 'failure') frame.hasFailure = true;
    await this.#runPosts(frame);
  }

  async #preSteps(frame: StepFrame, plan: readonly StepPlan[]): Promise<StepPlan[]> {
    const pre: StepPlan[] = [];
    for (const planned of plan) {
      const stage = await preStageOf(frame, planned);
      if (stage === undefined) continue;
      pre.push(planStage(pre.length + 1, `Pre ${planned.name}`, planned.key, stage));
    }
    return pre;
  }

  /** A job in a container, or with services, fails before its first step. */
  async #refuseContainers(frame: StepFrame, plan: readonly StepPlan[]): Promise<void> {
    const { container, services } = this.#job.request.job;
    for (const [name, template] of Object.entries({ container, services })) {
      if (template === undefined) continue;
      const value = await evaluateTemplate(template, scopeOf(frame, frameEnv(frame)));
      if (value === null || value === '') continue;
      skipAll(frame, plan);
      throw noContainers(name);
    }
  }

  #emit(steps: readonly Pick<StepPlan, 'number' | 'name' | 'id'>[]): void {
    const { masker, report } = this.#job;
    for (const { number, name, id } of steps) {
      this.#known.push({ number, name: masker.mask(name), ...(id === undefined ? {} : { id }) });
    }
    report.stepsKnown([...this.#known]);
  }

  /** In the reverse order of the steps that left them; each sees the status of the job. */
  async #runPosts(root: StepFrame): Promise<void> {
    const posts = this.#job.posts.toReversed();
    if (posts.length === 0) return;
    const first = (this.#known.at(-1)?.number ?? 0) + 1;
    const plan = posts.map((post, index) =>
      planStage(first + index, post.name, post.key.slice(post.frame.path.length), post.definition),
    );
    this.#emit(plan);
    for (const [index, planned] of plan.entries()) {
      const frame: StepFrame = { ...(posts[index]?.frame ?? root), hasFailure: root.hasFailure };
      await runSteps(frame, [planned]);
      root.hasFailure = frame.hasFailure;
    }
  }

  async #conclude(frame: StepFrame): Promise<JobOutcome> {
    const { outputs, environmentUrl } = await this.#evaluateResults(frame);
    return {
      ...this.#conclusion(frame.hasFailure),
      outputs,
      ...(environmentUrl === undefined ? {} : { environmentUrl }),
    };
  }

  #conclusion(hasFailure: boolean): Pick<JobOutcome, 'conclusion' | 'hasTimedOut'> {
    if (this.#job.hasTimedOut) return { conclusion: 'cancelled', hasTimedOut: true };
    if (this.#job.isCancelled) return { conclusion: 'cancelled' };
    return { conclusion: hasFailure ? 'failure' : 'success' };
  }

  async #evaluateResults(
    frame: StepFrame,
  ): Promise<Pick<JobOutcome, 'outputs' | 'environmentUrl'>> {
    const { masker, request } = this.#job;
    const scope = scopeOf(frame, frameEnv(frame));
    const outputs = emptyRecord<string>();
    let bytes = 0;
    for (const [name, template] of request.job.outputs) {
      try {
        const value = await evaluateText(template, scope);
        bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
        if (masker.contains(value)) {
          this.#warnOfOutput(name, template);
        } else if (bytes > OUTPUT_BYTES_PER_JOB_MAX) {
          this.#job.annotate('error', `Output '${name}' is left out: all exceed 1 MiB`);
          frame.hasFailure = true;
        } else if (value !== '') {
          outputs[name] = value;
        }
      } catch (error) {
        this.#report(error);
        frame.hasFailure = true;
      }
    }
    return { outputs, environmentUrl: await this.#environmentUrl(scope) };
  }

  /** Warns at the step that the output is of, as far as its template names one. */
  #warnOfOutput(name: string, template: Template): void {
    const ids = stepsReferencedBy(template);
    const step = this.#known.find(({ id }) => id !== undefined && ids.has(id.toLowerCase()));
    const empty = 'jobs that need it find it empty';
    const message = `Output '${name}' is left out, since it may hold a secret: ${empty}`;
    this.#job.annotate('warning', message, step?.number);
  }

  async #environmentUrl(scope: ReturnType<typeof scopeOf>): Promise<string | undefined> {
    const { environment } = this.#job.request.job;
    const hasUrl = environment?.kind === 'mapping' || environment?.kind === 'expression';
    if (environment === undefined || !hasUrl) return undefined;
    try {
      const value = await evaluateTemplate(environment, scope);
      const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
      const url = isObject ? (value as JsonObject)['url'] : undefined;
      return typeof url === 'string' && url !== '' ? this.#job.masker.mask(url) : undefined;
    } catch (error) {
      this.#report(error);
      return undefined;
    }
  }

  /** The supervisor knows all of them; without one, and where it was ended, their environment says. */
  async #endProcesses(supervisor: Supervisor | undefined): Promise<void> {
    try {
      const released = await supervisor?.release();
      const isSure = released?.isSure === true;
      const swept = isSure ? 0 : await sweepProcesses(this.#job.trackingId);
      const count = (released?.killed ?? 0) + swept;
      if (count > 0) {
        const processes = count === 1 ? '1 process was' : `${count} processes were`;
        this.#job.annotate('notice', `${processes} left behind and ended`);
      }
      if (released !== undefined && !isSure) {
        const text = 'It is not sure that all processes of the job have ended';
        this.#job.annotate('warning', `${text}: another user's cannot be killed`);
      }
    } catch (error) {
      this.#problem(error);
    }
  }

  #report(error: unknown): void {
    if (error instanceof AppError) {
      this.#job.annotate('error', error.message);
      return;
    }
    this.#job.annotate('error', 'The job failed by an internal error');
    this.#problem(error);
  }

  #problem(error: unknown): void {
    this.#job.dependencies.onProblem?.(
      'job_failed_internally',
      error instanceof Error ? error : new Error(String(error)),
    );
  }
}

function refuseTooMany(steps: readonly StepDefinition[]): void {
  let count = 0;
  for (const step of steps) count += step.kind === 'parallel' ? step.steps.length + 1 : 1;
  if (count > STEPS_MAX) {
    throw new AppError(
      'INVALID_WORKFLOW',
      `A job has at most ${STEPS_MAX} steps, this one ${count}`,
    );
  }
}

/**
 * Runs jobs on this host, each in its own folder, with real processes. See JobExecutor for what it
 * promises; one executor serves any number of jobs at once.
 */
export function createJobExecutor(dependencies: ExecutorDependencies): JobExecutor {
  return {
    execute(request, report) {
      const run = new JobRun(request, report, dependencies);
      return { outcome: run.run(), cancel: (kind) => run.cancel(kind) };
    },
  };
}
