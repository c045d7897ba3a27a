import { AppError } from '../../shared/app-error.ts';
import { reportedRun } from '../../shared/loop-report.ts';
import type { LogQuery, RunFilter, RunService, StartRequest } from '../model/ports.ts';
import type { Annotation, Artifact, RunStatus, WorkflowRun } from '../model/run.ts';
import type { RecoveredRun } from '../model/storage.ts';
import { ActiveRun, closeRun, type SchedulerShared } from './active-run.ts';
import { Cancellation } from './cancellation.ts';
import { ConcurrencyGroups } from './concurrency-groups.ts';
import { removeJobLeftovers } from './job-leftovers.ts';
import { FairPermits } from './permits.ts';
import { hasLog, runLogText, stepLogText } from './run-log-text.ts';
import { isoTime, replayRecords, RunRecorder, type StatePair } from './run-recorder.ts';
import { RunRegistry } from './run-registry.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import { prepareStart } from './start-request.ts';
import type { RunRecord } from './state/journal-records.ts';
import { jobsToRerun, type RerunRequest } from './state/rerun-selection.ts';
import { applyRecord } from './state/run-state-reducer.ts';
import { runView, snapshotOf, type RunState } from './state/run-state.ts';
import { workflowOfRun } from './workflow-of-run.ts';

const RETENTION_PERIOD_MS = 60 * 60 * 1000;

/** Runs as the API sees them, and how they end. */
export type Scheduler = RunService & {
  /** Runs that were refused since too many waited. */
  readonly refusedCount: number;
  /**
   * Starts nothing more, cancels what is in progress and waits for it; queued runs stay queued and go on
   * after the next start. What takes longer than the limit is killed. Idempotent.
   */
  shutdown(): Promise<void>;
};

/**
 * Recovers the runs of the project and goes on with those that are queued.
 * Errors: those of RunStore.recover.
 */
export async function createRunService(options: SchedulerOptions): Promise<Scheduler> {
  const service = new SchedulingRunService(options);
  await service.recover();
  return service;
}

class SchedulingRunService implements Scheduler {
  readonly #options: SchedulerOptions;
  readonly #shared: SchedulerShared;
  readonly #registry: RunRegistry;
  readonly #active = new Map<string, ActiveRun>();
  /** Each until all that its run held is free. */
  readonly #lives = new Map<string, Promise<void>>();
  readonly #retention: NodeJS.Timeout;
  /** Finished runs whose rerun is on its way to the disk. */
  readonly #reviving = new Set<string>();
  /** Starts that are being checked. They have a place in the queue already. */
  #starting = 0;
  #refusedCount = 0;
  #shutdown: Promise<void> | undefined;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#shared = {
      options,
      jobSlots: new FairPermits(options.limits.jobsInProgressMax),
      runSlots: new FairPermits(options.limits.runsInProgressMax),
      projectLock: new FairPermits(1),
      projectJobs: new FairPermits(1),
      groups: new ConcurrencyGroups(),
      idOfRun: (text) => this.#registry.find(text)?.run.id,
      stopping: new Cancellation(),
    };
    this.#registry = new RunRegistry(options);
    this.#retention = setInterval(() => void this.#retain(), RETENTION_PERIOD_MS);
    this.#retention.unref();
  }

  async recover(): Promise<void> {
    const { store, sandboxes, projectDir } = this.#options;
    const recovered = await store.recover();
    await removeJobLeftovers(projectDir);
    const waiting: StatePair[] = [];
    const closing: Promise<void>[] = [];
    for (const run of recovered) {
      const states = this.#replay(run);
      if (states === undefined) continue;
      this.#registry.add(states.visible);
      if (states.live.phase === 'finished') continue;
      if (states.live.phase === 'queued') waiting.push(states);
      else closing.push(this.#closeInterrupted(states));
    }
    await this.#registry.readLastNumbers();
    await Promise.all(closing);
    waiting.sort((a, b) => (a.live.queuedAt < b.live.queuedAt ? -1 : 1));
    const living = new Set(waiting.map(({ live }) => live.run.id));
    await sandboxes.cleanUp({ live: living, known: this.#registry.ids() });
    for (const states of waiting) await this.#resume(states);
    await this.#retain();
  }

  async start(
    request: StartRequest,
  ): Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }> {
    this.#assertCapacity(request.fork?.needsApproval === true);
    this.#starting += 1;
    try {
      const { store, sandboxes } = this.#options;
      await Promise.all([store.assertDiskSpace(), sandboxes.assertDiskSpace()]);
      const prepared = await prepareStart(this.#options, request, (file) =>
        this.#registry.nextNumbers(file),
      );
      const { workflow, sources, record, warnings } = prepared;
      const { id, trigger } = record.run;
      try {
        await (request.at === undefined
          ? sandboxes.hold(id, trigger, record.request.strategy)
          : sandboxes.adopt(id, request.at.commit));
        await Promise.all([store.keepWorkflow(id, sources), this.#registry.keepNumericIds()]);
        await store.append(id, record);
      } catch (error) {
        await sandboxes.forget(id);
        throw error;
      }
      const states = {
        live: applyRecord(undefined, record),
        visible: applyRecord(undefined, record),
      };
      this.#registry.add(states.visible);
      // The answer shows the run as it was made, whatever it has become since.
      const run = runView(states.visible);
      this.#launch(new ActiveRun(this.#shared, this.#recorder(states), workflow));
      return { run, warnings };
    } finally {
      this.#starting -= 1;
    }
  }

  async rerun(id: string, which: RerunRequest): Promise<WorkflowRun> {
    const state = this.#registry.must(id);
    await this.#mustBeFinished(state);
    this.#assertCapacity();
    const { store, clock, sandboxes } = this.#options;
    const workflow = await workflowOfRun(this.#options, state.run, state.request);
    const reset = jobsToRerun(state, workflow, which);
    await Promise.all([store.assertDiskSpace(), sandboxes.assertDiskSpace()]);
    // Another rerun may have come first; nothing is awaited from here to the reservation.
    this.#assertOver(state);
    const record: RunRecord = { type: 'run.rerun', at: isoTime(clock), reset };
    const live = cloneState(state);
    applyRecord(live, record);
    const states = { live, visible: state };
    this.#reviving.add(id);
    try {
      const { strategy, isAdopted } = state.request;
      // The project may not have what came with an event.
      if (isAdopted !== true) await sandboxes.hold(id, state.run.trigger, strategy);
      await store.append(id, record);
    } catch (error) {
      await this.#release(id);
      throw error;
    } finally {
      this.#reviving.delete(id);
    }
    applyRecord(state, record);
    const run = runView(state);
    this.#launch(new ActiveRun(this.#shared, this.#recorder(states), workflow));
    return run;
  }

  async approve(id: string): Promise<WorkflowRun> {
    const state = this.#registry.must(id);
    const active = this.#active.get(id);
    if (active === undefined) {
      throw new AppError('RUN_NOT_WAITING', `The run does not wait: it is ${state.run.status}`, {
        id,
      });
    }
    active.approve();
    await active.recorder.settled();
    const { fork } = state.request;
    if (fork?.authorId !== undefined) await this.#options.onApproved?.(fork.authorId);
    return runView(state);
  }

  isForkRunning(): boolean {
    return this.#options.isolation?.isInUse ?? false;
  }

  async cancel(id: string): Promise<{
    readonly id: string;
    readonly status: RunStatus;
    readonly cancelRequestedAt: string;
  }> {
    const state = this.#registry.must(id);
    const active = this.#active.get(id);
    if (active === undefined || active.isFinished) {
      throw new AppError('RUN_NOT_CANCELLABLE', `The run is ${state.run.status}`, { id });
    }
    active.cancel();
    await active.recorder.settled();
    const { status, cancelRequestedAt, updatedAt } = state.run;
    return { id, status, cancelRequestedAt: cancelRequestedAt ?? updatedAt };
  }

  list(filter: RunFilter): readonly WorkflowRun[] {
    return this.#registry.list(filter);
  }

  get(id: string): WorkflowRun | undefined {
    const state = this.#registry.find(id);
    return state === undefined ? undefined : runView(state);
  }

  async getWithLogs(id: string): Promise<WorkflowRun> {
    const run = runView(this.#registry.must(id));
    const { store, limits } = this.#options;
    const budget = { bytes: limits.runLogBytesMax };
    const jobs = [];
    for (const job of run.jobs) {
      const steps = [];
      for (const step of job.steps) {
        const log = hasLog(step)
          ? await stepLogText(store, id, job.id, step.number, limits.stepLogBytesMax, budget)
          : '';
        steps.push({ ...step, log });
      }
      jobs.push({ ...job, steps });
    }
    return { ...run, jobs };
  }

  async *logs(id: string, query: LogQuery): AsyncGenerator<Uint8Array | string> {
    yield* runLogText(this.#options.store, runView(this.#registry.must(id)), query);
  }

  annotations(id: string): readonly Annotation[] {
    return [...this.#registry.must(id).annotations];
  }

  summary(id: string): string {
    const { summaries, jobs } = this.#registry.must(id);
    const places = new Map([...jobs.keys()].map((jobId, index) => [jobId, index]));
    return summaries
      .toSorted((a, b) => {
        const [first, second] = [places.get(a.jobId) ?? 0, places.get(b.jobId) ?? 0];
        return first - second || a.number - b.number;
      })
      .map(({ jobId, number }) => this.#options.store.readSummary(id, jobId, number))
      .map((text) => (text === '' || text.endsWith('\n') ? text : `${text}\n`))
      .join('');
  }

  artifacts(id: string): readonly Artifact[] {
    this.#registry.must(id);
    return this.#options.artifacts
      .list(id)
      .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  async remove(id: string): Promise<void> {
    await this.#mustBeFinished(this.#registry.must(id));
    await this.#registry.remove(id);
  }

  get refusedCount(): number {
    return this.#refusedCount;
  }

  counts(): { readonly queued: number; readonly inProgress: number } {
    let [queued, inProgress] = [0, 0];
    for (const { recorder } of this.#active.values()) {
      if (recorder.live.phase === 'finished') continue;
      if (recorder.live.run.startedAt === undefined) queued += 1;
      else inProgress += 1;
    }
    return { queued, inProgress };
  }

  waitingForApproval(): number {
    const runs = [...this.#active.values()];
    return runs.filter(({ recorder }) => recorder.live.run.waitingFor !== undefined).length;
  }

  shutdown(): Promise<void> {
    this.#shutdown ??= this.#stop();
    return this.#shutdown;
  }

  async #stop(): Promise<void> {
    clearInterval(this.#retention);
    this.#shared.stopping.cancel('cancel', 'run');
    for (const run of this.#active.values()) {
      if (run.recorder.live.run.startedAt !== undefined) run.cancel('runner stopped');
    }
    const timer = setTimeout(() => {
      for (const run of this.#active.values()) run.kill();
    }, this.#options.limits.shutdownTimeoutMs);
    while (this.#lives.size > 0) await Promise.all(this.#lives.values());
    clearTimeout(timer);
  }

  /** Those that wait for approval have places of their own: they keep nobody else from starting. */
  #assertCapacity(isWaiting = false): void {
    if (this.#shutdown !== undefined) {
      throw new AppError('SHUTTING_DOWN', 'The runner is shutting down');
    }
    const { queuedRunsMax } = this.#options.limits;
    const waiting = this.waitingForApproval();
    const taken = isWaiting ? waiting : this.counts().queued - waiting;
    if (taken + this.#starting >= queuedRunsMax) {
      this.#refusedCount += 1;
      throw new AppError('QUEUE_FULL', `${queuedRunsMax} runs are queued already`);
    }
  }

  /** Waits for what a run that has ended still holds. Errors: RUN_NOT_FINISHED, RUN_NOT_FOUND. */
  async #mustBeFinished(state: RunState): Promise<void> {
    if (state.phase === 'finished') await this.#lives.get(state.run.id);
    this.#assertOver(this.#registry.must(state.run.id));
  }

  #assertOver(state: RunState): void {
    const { id, status } = state.run;
    const isOver = state.phase === 'finished' && !this.#lives.has(id) && !this.#reviving.has(id);
    if (!isOver) throw new AppError('RUN_NOT_FINISHED', `The run is ${status}`, { id });
  }

  #recorder(states: StatePair): RunRecorder {
    const { store, events, clock, report } = this.#options;
    const { id } = states.live.run;
    return new RunRecorder({
      states,
      store,
      events,
      clock,
      onBroken: (error) => {
        report('runner.journal', error);
        const run = this.#active.get(id);
        run?.annotate({ level: 'error', message: 'Stopped: the journal could not be written' });
        run?.kill();
      },
    });
  }

  #launch(run: ActiveRun): void {
    const { id } = run.recorder.live.run;
    this.#active.set(id, run);
    const life = this.#liveAndForget(id, run).finally(() => this.#lives.delete(id));
    this.#lives.set(id, life);
  }

  async #liveAndForget(id: string, run: ActiveRun): Promise<void> {
    await run.live();
    // One that the shutdown parked is still queued.
    if (!run.isFinished) return;
    this.#active.delete(id);
    await this.#release(id);
    await this.#compact(run.recorder.visible);
    await this.#retain();
  }

  /** What the project's repository keeps for a run goes with its end. */
  async #release(id: string): Promise<void> {
    const { sandboxes, report } = this.#options;
    try {
      await sandboxes.release(id);
    } catch (error) {
      report('runner.sandbox', error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** The journal of a finished run is one record: the next start reads less. */
  async #compact(state: RunState): Promise<void> {
    const { store, report } = this.#options;
    const { id, updatedAt: at } = state.run;
    try {
      await store.compact(id, { type: 'snapshot', at, state: snapshotOf(state) });
    } catch (error) {
      report('runner.compact', error instanceof Error ? error : new Error(String(error)));
    }
  }

  #replay(run: RecoveredRun): StatePair | undefined {
    return replayRecords(run.records, (error) => this.#options.report('runner.replay', error));
  }

  /** A run that was in progress when the process ended (§2.1). */
  async #closeInterrupted(states: StatePair): Promise<void> {
    const recorder = this.#recorder(states);
    const annotation: Annotation = { level: 'error', message: 'runner restarted' };
    recorder.record({ type: 'annotation', annotation });
    recorder.record({ type: 'run.cancelRequested' });
    closeRun(recorder, 'cancelled');
    await recorder.settled();
    await this.#compact(states.visible);
  }

  async #resume(states: StatePair): Promise<void> {
    const recorder = this.#recorder(states);
    try {
      const workflow = await workflowOfRun(this.#options, states.live.run, states.live.request);
      this.#launch(new ActiveRun(this.#shared, recorder, workflow));
    } catch (error) {
      const message = error instanceof AppError ? error.message : 'The workflow cannot be read';
      recorder.record({ type: 'annotation', annotation: { level: 'error', message } });
      closeRun(recorder, 'failure');
      await recorder.settled();
      await this.#compact(states.visible);
    }
  }

  async #retain(): Promise<void> {
    await reportedRun(this.#options.retention, () =>
      this.#registry.retain((id) => this.#active.has(id) || this.#reviving.has(id)),
    );
  }
}

/** Its own maps and lists; what lies in them is never changed. */
function cloneState(state: RunState): RunState {
  return {
    ...state,
    jobs: new Map(state.jobs),
    annotations: [...state.annotations],
    summaries: [...state.summaries],
  };
}
