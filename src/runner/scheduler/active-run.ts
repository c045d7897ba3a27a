import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import { evaluateTexts } from '../evaluation/evaluate.ts';
import { secretsReferencedBy } from '../language/references.ts';
import type { Annotation, Conclusion } from '../model/run.ts';
import type { PreparedSandbox } from '../model/storage.ts';
import type { StepsJobDefinition, Workflow } from '../model/workflow.ts';
import { createMasker } from '../step-output/masker.ts';
import { Cancellation } from './cancellation.ts';
import { CheckoutNotice } from './checkout-notice.ts';
import { groupKey, type ConcurrencyGroups, type ConcurrencySetting } from './concurrency-groups.ts';
import { githubContext, identityOf, runIdOf, type RunFacts } from './github-context.ts';
import { namedOf, openedSecrets } from './given-values.ts';
import { evaluateConcurrency } from './job-settings.ts';
import { Omissions } from './omissions.ts';
import type { FairPermits, Release } from './permits.ts';
import { prepareActions } from './prepare-actions.ts';
import { NO_SECRETS, type RunContext, type SecretProvider } from './run-context.ts';
import { runGraph } from './run-graph.ts';
import { RunMasks } from './run-masks.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import { TOP } from './state/run-plan.ts';
import { conclusionOf } from './state/run-state-reducer.ts';

const TOKEN_NAME = 'GITHUB_TOKEN';

/** Refers to nothing: with it only the workflow itself is looked at. */
const NO_JOB: StepsJobDefinition = {
  kind: 'steps',
  key: '',
  at: { line: 1, column: 1 },
  needs: [],
  runsOn: { kind: 'literal', value: '', at: { line: 1, column: 1 } },
  defaults: {},
  outputs: new Map(),
  steps: [],
};

/** What the runs of one service share. */
export type SchedulerShared = {
  readonly options: SchedulerOptions;
  readonly jobSlots: FairPermits;
  readonly runSlots: FairPermits;
  /** Held by runs in the project's own folder: one at a time, unless their concurrency says otherwise. */
  readonly projectLock: FairPermits;
  /** Held by jobs there, also of runs that their concurrency lets overlap. */
  readonly projectJobs: FairPermits;
  readonly groups: ConcurrencyGroups;
  /** The id of a run of the project, given that or its number. */
  readonly idOfRun: (text: string) => string | undefined;
  /** From then on nothing starts; what is queued stays queued. */
  readonly stopping: Cancellation;
};

/** A run from its queueing to its end. */
export class ActiveRun {
  readonly recorder: RunRecorder;
  readonly #shared: SchedulerShared;
  readonly #workflow: Workflow;
  readonly #cancellation = new Cancellation();
  /** Also cancelled when nothing is to start any more. */
  readonly #waiting = new Cancellation();
  /** The line for a slot, which it leaves for one out of turn when runs with slots wait for it. */
  readonly #line = new Cancellation();
  readonly #kept: ReadonlySet<string>;
  readonly #approval = Promise.withResolvers<void>();
  readonly #releases: Release[] = [];
  readonly #variables = new Map<string, Promise<JsonObject>>();
  /** Secrets that came with the start; opened before the first job needs one. */
  #given: Readonly<Record<string, string>> = {};
  #droppedAnnotations = 0;

  constructor(shared: SchedulerShared, recorder: RunRecorder, workflow: Workflow) {
    this.#shared = shared;
    this.recorder = recorder;
    this.#workflow = workflow;
    const { jobs } = recorder.live;
    this.#kept = new Set(
      Array.from(jobs.values()).flatMap(({ job }) => (job.status === 'completed' ? [job.id] : [])),
    );
  }

  get isQueued(): boolean {
    return this.recorder.live.phase === 'queued';
  }

  get isFinished(): boolean {
    return this.recorder.live.phase === 'finished';
  }

  /**
   * Waits for its turn and runs. Resolves when its end is emitted and all it held is free, or, when
   * the service stops before its turn, with the run still queued. Never rejects.
   */
  async live(): Promise<void> {
    const { stopping } = this.#shared;
    const leaveStopping = stopping.onCancel(() => this.#waiting.cancel('cancel', 'run'));
    const leaveOwn = this.#cancellation.onCancel((kind, cause) =>
      this.#waiting.cancel(kind, cause),
    );
    let sandbox: PreparedSandbox | undefined;
    try {
      sandbox = await this.#waitForTurn();
      if (sandbox !== undefined && !this.#waiting.isCancelled) {
        await this.#runJobs(sandbox);
      }
    } catch (error) {
      this.#abandon(error);
    } finally {
      leaveStopping();
      leaveOwn();
    }
    await this.recorder.settled();
    for (const release of this.#releases.toReversed()) release();
    try {
      await sandbox?.release();
    } catch (error) {
      this.#report('runner.sandbox', error);
    }
  }

  /**
   * A queued run ends at once; one in progress is asked to stop, and the second time killed.
   * Nothing happens to a finished one.
   */
  cancel(annotation?: string): void {
    if (this.isFinished) return;
    if (annotation !== undefined) this.annotate({ level: 'error', message: annotation });
    const isSecond = this.recorder.live.run.cancelRequestedAt !== undefined;
    this.recorder.record({ type: 'run.cancelRequested' });
    // Nothing was started of a run that is in no folder yet.
    if (this.recorder.live.run.startedAt === undefined) this.#close('cancelled');
    this.#cancellation.cancel(isSecond ? 'force' : 'cancel', 'run');
  }

  /** Errors: RUN_NOT_WAITING. */
  approve(): void {
    if (this.recorder.live.run.waitingFor === undefined || !this.isQueued) {
      const { id, status } = this.recorder.live.run;
      throw new AppError('RUN_NOT_WAITING', `The run does not wait: it is ${status}`, { id });
    }
    this.recorder.record({ type: 'run.approved' });
    this.#approval.resolve();
  }

  /** Kills what runs, without a further record. */
  kill(): void {
    this.#cancellation.cancel('force', 'run');
  }

  annotate(annotation: Annotation): void {
    const { options } = this.#shared;
    const { annotations, phase } = this.recorder.live;
    if (phase === 'finished') return;
    const max = options.limits.annotationsPerRunMax;
    if (annotations.length >= max) {
      this.#droppedAnnotations += 1;
      if (this.#droppedAnnotations > 1) return;
      const message = `More than ${max} annotations: the others are left out`;
      this.recorder.record({ type: 'annotation', annotation: { level: 'warning', message } });
      return;
    }
    const file = annotation.file ?? this.#workflow.path;
    const title = annotation.title ?? this.#titleOf(annotation);
    this.recorder.record({ type: 'annotation', annotation: { ...annotation, file, title } });
  }

  #titleOf({ jobId }: Annotation): string {
    const { jobs, run } = this.recorder.live;
    return jobId === undefined ? run.name : (jobs.get(jobId)?.job.name ?? jobId);
  }

  /** Its turn came, unless `#waiting` is cancelled. What is answered is to be released either way. */
  async #waitForTurn(): Promise<PreparedSandbox | undefined> {
    const { options, projectLock } = this.#shared;
    const { live } = this.recorder;
    if (live.run.waitingFor !== undefined && !(await this.#waitForApproval())) return undefined;
    const setting = await this.#concurrency();
    if (setting !== undefined && !(await this.#enterGroup(setting))) return undefined;
    const { strategy, hasExplicitRef } = live.request;
    const mayPush = options.allowPush === true || live.request.allowPush === true;
    const isAlone = setting === undefined;
    if (strategy === 'none' && isAlone && !(await this.#acquire(projectLock))) return undefined;
    if (!(await this.#acquireSlot())) return undefined;
    const { id: runId, trigger } = live.run;
    return await options.sandboxes.prepare({
      runId,
      trigger,
      strategy,
      hasExplicitRef,
      isAdopted: live.request.isAdopted,
      // Each job of a fork checks them out for itself, without filters of the user.
      isWithoutFiles: live.request.fork !== undefined,
      mayPush,
    });
  }

  async #waitForApproval(): Promise<boolean> {
    const left = Promise.withResolvers<void>();
    const unfollow = this.#waiting.onCancel(() => left.resolve());
    await Promise.race([this.#approval.promise, left.promise]);
    unfollow();
    return !this.#waiting.isCancelled;
  }

  async #acquire(permits: FairPermits): Promise<boolean> {
    const release = await permits.acquire('', this.#waiting);
    if (release !== undefined) this.#releases.push(release);
    return release !== undefined;
  }

  async #acquireSlot(): Promise<boolean> {
    const { runSlots } = this.#shared;
    const leave = this.#waiting.onCancel((kind, cause) => this.#line.cancel(kind, cause));
    const granted = await runSlots.acquire('', this.#line);
    leave();
    if (granted === undefined && this.#waiting.isCancelled) return false;
    this.#releases.push(granted ?? runSlots.overtake());
    return true;
  }

  async #concurrency(): Promise<ConcurrencySetting | undefined> {
    if (this.#workflow.concurrency === undefined) return undefined;
    return await evaluateConcurrency(this.#workflow.concurrency, {
      contexts: {
        github: githubContext({ ...this.#facts(), hasToken: false }),
        inputs: this.recorder.live.request.inputs,
        vars: await this.#variablesOf(''),
      },
    });
  }

  async #enterGroup(setting: ConcurrencySetting): Promise<boolean> {
    const entered = Promise.withResolvers<boolean>();
    const leave = this.#shared.groups.join(setting, {
      enter: () => entered.resolve(true),
      urge: () => this.#line.cancel('cancel', 'group'),
      evict: (why) => {
        if (this.recorder.live.run.cancelRequestedAt === undefined) this.cancel(why);
      },
    });
    this.#releases.push(leave);
    const unfollow = this.#waiting.onCancel(() => entered.resolve(false));
    const isIn = await entered.promise;
    unfollow();
    return isIn && !this.#waiting.isCancelled;
  }

  async #runJobs(prepared: PreparedSandbox): Promise<void> {
    const { options, groups, jobSlots, projectJobs } = this.#shared;
    const { recorder } = this;
    const { sealed } = recorder.live.request;
    this.#given = await openedSecrets(options.sealer, recorder.runId, sealed);
    await this.#recordEnv();
    // It may have been cancelled meanwhile, or is to stay queued.
    if (this.#waiting.isCancelled) return;
    recorder.record({ type: 'run.started', sandbox: prepared.sandbox });
    await prepareActions(options, recorder, this.#workflow, prepared.source, (annotation) =>
      this.annotate(annotation),
    );
    const context: RunContext = {
      options,
      recorder,
      groups,
      slots: jobSlots,
      cancellation: this.#cancellation,
      sandbox: prepared,
      projectJobs,
      facts: this.#facts(),
      kept: this.#kept,
      variablesOf: (environment) => this.#variablesOf(environment),
      masks: new RunMasks(options.secrets, this.#workflow, this.#given),
      annotate: (annotation) => this.annotate(annotation),
      checkoutNotice: new CheckoutNotice(this.#workflow),
      idOfRun: this.#shared.idOfRun,
      workflow: this.#workflow,
      omissions: new Omissions(),
    };
    const setting = await this.#concurrency();
    await runGraph(context, {
      workflow: this.#workflow,
      place: TOP,
      inputs: recorder.live.request.inputs,
      secrets: this.#secrets(),
      cancellation: this.#cancellation,
      // Who gives one wants it to be used.
      hasToken: this.#workflow.permissions !== undefined || TOKEN_NAME in this.#given,
      heldGroups: new Set(setting === undefined ? [] : [groupKey(setting.group)]),
    });
    this.#closeLeftovers();
    recorder.record({ type: 'run.completed', conclusion: this.#conclude(context.omissions) });
  }

  /** What its jobs come to; a run of nothing is a failure, which is said. */
  #conclude(omissions: Omissions): Conclusion {
    const conclusion = conclusionOf(this.recorder.live);
    const message = omissions.reasonAgainst(conclusion);
    if (message === undefined) return conclusion;
    this.annotate({ level: 'error', message });
    return 'failure';
  }

  #facts(): Omit<RunFacts, 'hasToken'> {
    const { run, request } = this.recorder.live;
    const { runNumber, attempt, trigger } = run;
    const own = identityOf(this.#shared.options);
    const identity = { ...own, token: this.#given[TOKEN_NAME] ?? own.token };
    return {
      runId: runIdOf(run),
      runNumber,
      attempt,
      workflow: this.#workflow.name ?? this.#workflow.path,
      trigger,
      request,
      workflowPath: this.#workflow.path,
      // A token that can only read is not ours to make: a fork gets none.
      identity: request.fork === undefined ? identity : { ...identity, token: '' },
    };
  }

  #secrets(): SecretProvider {
    const { secrets } = this.#shared.options;
    const { runId } = this.recorder;
    // As GitHub does for a pull request from another repository.
    if (this.recorder.live.request.fork !== undefined) return () => Promise.resolve(NO_SECRETS);
    return async (request) => {
      const kept = await secrets.secretsFor({ runId, ...request });
      return { byName: { ...kept, ...namedOf(this.#given, request.names) }, masks: [] };
    };
  }

  /** Read once a run and environment: a run sees one state of them. */
  #variablesOf(environment: string): Promise<JsonObject> {
    let variables = this.#variables.get(environment);
    if (variables === undefined) {
      const { variables: given } = this.recorder.live.request;
      variables = this.#shared.options.secrets
        .variablesFor(environment)
        .then((kept) => ({ ...kept, ...given }));
      this.#variables.set(environment, variables);
    }
    return variables;
  }

  /** What cannot be evaluated fails the jobs, each with its own annotation. */
  async #recordEnv(): Promise<void> {
    const { env } = this.#workflow;
    if (env === undefined) return;
    try {
      const names = secretsReferencedBy(this.#workflow, NO_JOB);
      const { byName: secrets } =
        names?.length === 0
          ? NO_SECRETS
          : await this.#secrets()({ jobId: '', environment: '', names });
      const values = await evaluateTexts(env, {
        contexts: {
          github: githubContext({ ...this.#facts(), hasToken: false }),
          inputs: this.recorder.live.request.inputs,
          vars: await this.#variablesOf(''),
          secrets,
        },
      });
      const masker = createMasker();
      for (const secret of Object.values(secrets)) masker.add(secret);
      const masked = Object.entries(values).map(([name, value]) => [name, masker.mask(value)]);
      if (this.isFinished) return;
      this.recorder.record({ type: 'run.env', env: Object.fromEntries(masked) });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.annotate({ level: 'warning', message: `env: ${error.message}` });
    }
  }

  /** The run could not be started, or not be brought to its end. */
  #abandon(error: unknown): void {
    if (!(error instanceof AppError)) this.#report('runner.run', error);
    if (this.isFinished) return;
    const message = error instanceof AppError ? error.message : 'The runner failed to run this';
    this.annotate({ level: 'error', message });
    this.#cancellation.cancel('force', 'run');
    this.#close('failure');
  }

  /** Jobs of the record that the workflow of today no longer has. */
  #closeLeftovers(): void {
    for (const { job } of this.recorder.live.jobs.values()) {
      if (job.status === 'completed') continue;
      const message = 'Skipped: the workflow no longer has this job';
      this.annotate({ level: 'warning', message, jobId: job.id });
      completeOpenJob(this.recorder, job.id, 'skipped');
    }
  }

  #close(conclusion: Conclusion): void {
    closeRun(this.recorder, conclusion);
  }

  #report(event: string, error: unknown): void {
    this.#shared.options.report(event, error instanceof Error ? error : new Error(String(error)));
  }
}

/** Completes the run as it is: its open steps and jobs as cancelled, itself with `conclusion`. */
export function closeRun(recorder: RunRecorder, conclusion: Conclusion): void {
  for (const { job } of recorder.live.jobs.values()) {
    if (job.status !== 'completed') completeOpenJob(recorder, job.id, 'cancelled');
  }
  recorder.record({ type: 'run.completed', conclusion });
}

function completeOpenJob(recorder: RunRecorder, jobId: string, conclusion: Conclusion): void {
  for (const { number, name, status } of recorder.live.jobs.get(jobId)?.job.steps ?? []) {
    if (status === 'completed') continue;
    const ended = status === 'in_progress' ? 'cancelled' : 'skipped';
    recorder.record({
      type: 'step.completed',
      jobId,
      number,
      name,
      conclusion: ended,
      outcome: ended,
      outputs: {},
    });
  }
  const outputs = {};
  recorder.record({ type: 'job.completed', jobId, conclusion, result: conclusion, outputs });
}
