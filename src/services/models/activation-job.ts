import type { Pool } from 'pg';
import { hasWriteRules } from '../../model/namespace/model-admission.ts';
import { parseModel } from '../../model/namespace/namespace-model.ts';
import { type LoopReport, reportedRun } from '../../shared/loop-report.ts';
import type { SharedWork } from '../../store/postgres/shared-work.ts';
import {
  activateModel,
  dropPendingModel,
  endActivation,
  haveEnded,
  type PendingActivation,
  saveProgress,
  selectPendingActivation,
  selectPendingProjects,
  selectTuplesAfter,
  selectWriters,
  setAwaited,
} from '../../store/sql/projects/model-activations.ts';
import {
  MODEL_ACTIVE,
  MODEL_CANCELLED,
  MODEL_REFUSED,
} from '../../store/sql/projects/model-versions.ts';
import { selectProject } from '../../store/sql/projects/projects.ts';
import { writtenModel } from '../projects/model-writes.ts';
import type { ProjectService } from '../projects/project-service.ts';
import { examine } from './examine-tuples.ts';

export type ActivationJobOptions = {
  readonly pool: Pool;
  /** Lets one instance at a time examine tuples. */
  readonly shared: SharedWork;
  readonly projects: ProjectService;
  /** Region of this instance, which does not examine tuples of projects that are pinned elsewhere. */
  readonly region: string;
  /** How often it is asked whether anything is pending. */
  readonly intervalMs: number;
  /** Tuples of one batch: the number that is parsed in one turn of the event loop. */
  readonly rowsMax: number;
  readonly metrics: ActivationMetrics;
  /** Hears of runs over all projects; a project that fails lets the others continue. */
  readonly report: LoopReport;
};

export interface ActivationMetrics {
  scanned(tuples: number): void;
  ended(outcome: 'active' | 'refused' | 'cancelled'): void;
}

/** Projects that are examined side by side, and projects that one query returns. */
const SIDE_BY_SIDE = 4;
const PROJECTS_MAX = 1_000;
/** Wait between two checks whether transactions have ended. */
const AWAIT_MS = 5;
const AWAIT_MS_MAX = 250;

/**
 * Examines the stored tuples of projects whose model is pending, and puts it into force or refuses it.
 *
 * A1 When the examination begins, every transaction that may write by the rules before has ended: a
 *    statement that writes compares the rules after it has locked a shard, so that it is seen among
 *    those that hold such locks, or sees the new rules. [staged-models.pg.test.ts]
 * A2 So from then on every tuple that comes fits, and one that has been examined stays so.
 *    [staged-models.pg.test.ts]
 * A3 It continues where the last one stopped, on whatever instance, and may run twice at once: who
 *    saves second stops. [staged-models.pg.test.ts]
 */
export class ActivationJob {
  readonly #options: ActivationJobOptions;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isAskedFor = false;

  constructor(options: ActivationJobOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.kick(), this.#options.intervalMs).unref();
  }

  /** Begins now, where nothing runs yet; else once more after it. */
  kick(): void {
    this.#isAskedFor = true;
    if (this.#stopped.signal.aborted) return;
    this.#running ??= reportedRun(this.#options.report, () => this.#runAll()).finally(
      () => (this.#running = undefined),
    );
  }

  /** Resolves when no run is under way; what is pending is left to others. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopped.abort();
    await this.#running;
  }

  async #runAll(): Promise<void> {
    const { pool, region, shared } = this.#options;
    while (this.#isAskedFor && !this.#stopped.signal.aborted) {
      this.#isAskedFor = false;
      // Most of the time nothing is: no lock is worth that.
      if ((await selectPendingProjects(pool, region, 1)).length === 0) return;
      await shared.run('activation', (lost) => this.run(lost));
    }
  }

  /** One run over all that is pending, until `lost` aborts. Errors: the first of those of single projects. */
  async run(lost: AbortSignal): Promise<void> {
    const { pool, region } = this.#options;
    const signal = AbortSignal.any([lost, this.#stopped.signal]);
    const waiting = [...(await selectPendingProjects(pool, region, PROJECTS_MAX))];
    const errors: unknown[] = [];
    const work = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        if (signal.aborted) return;
        // One of many that fail must not keep the others waiting.
        await this.#runProject(id, signal).catch((error: unknown) => errors.push(error));
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
    if (errors.length > 0) throw errors[0];
  }

  async #runProject(projectId: string, signal: AbortSignal): Promise<void> {
    const { pool, rowsMax, metrics } = this.#options;
    let pending = await selectPendingActivation(pool, projectId);
    if (pending === undefined) return;
    if (pending.modelJson === '') return await this.#finish(pending, 'cancelled');
    const model = parseModel(pending.modelJson);
    const inForce = parseModel(pending.inForceJson);
    if (!pending.isAwaited) {
      if (!(await this.#awaitOlder(signal))) return;
      await setAwaited(pool, pending);
    }
    for (;;) {
      if (signal.aborted) return;
      const rows = await selectTuplesAfter(pool, projectId, pending.lastSeen, rowsMax);
      const found = examine(inForce, model, pending, rows);
      if (rows.length > 0 && !(await saveProgress(pool, pending, found))) return;
      metrics.scanned(rows.length);
      pending = { ...pending, ...found };
      if (rows.length < rowsMax) break;
    }
    await this.#finish(pending, pending.refused > 0 && !pending.isForced ? 'refused' : 'active');
  }

  /** Whether all have ended; false: it is to stop. */
  async #awaitOlder(signal: AbortSignal): Promise<boolean> {
    const { pool } = this.#options;
    // Begun after the pending model was seen: who holds no lock yet will see it, too.
    const writers = await selectWriters(pool);
    for (let pauseMs = AWAIT_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, AWAIT_MS_MAX)) {
      if (await haveEnded(pool, writers)) return true;
      await new Promise((done) => setTimeout(done, pauseMs));
    }
    return false;
  }

  /** Ends it, unless that has been done. */
  async #finish(
    pending: PendingActivation,
    outcome: 'active' | 'refused' | 'cancelled',
  ): Promise<void> {
    const { projects, metrics } = this.#options;
    const { projectId, version, modelJson } = pending;
    await projects.change<typeof outcome | undefined>(
      projectId,
      async (client, before) => {
        const now = await selectPendingActivation(client, projectId);
        if (now?.version !== version) return [before, undefined];
        const isCurrent = Number(before.pending_version) === version;
        // Another model was put in by hand, or by an earlier release.
        const end = isCurrent ? outcome : 'cancelled';
        // The version first: what decides is always the newest that is active.
        await endActivation(client, projectId, version, STATES[end]);
        if (end === 'active') {
          await activateModel(client, projectId, modelJson, hasWriteRules(parseModel(modelJson)));
        } else if (isCurrent) {
          const hasRules = hasWriteRules(parseModel(before.model_json));
          await dropPendingModel(client, projectId, hasRules);
        }
        return [(await selectProject(client, projectId)) ?? before, end];
      },
      (state) => {
        // Another instance has ended it.
        if (state === undefined) return;
        metrics.ended(state);
        const { createdBy, rpc, requestId, isForced: force } = pending;
        const { refused: tuplesRefused, droppedNamespaces } = pending;
        const write = { modelJson, rolledBackTo: 0, force };
        const model = {
          ...writtenModel({ version, state }, write),
          tuplesRefused,
          droppedNamespaces,
        };
        projects.audit(OPERATIONS[state], projectId, { createdBy, rpc, requestId }, model);
      },
    );
  }
}

const STATES = {
  active: MODEL_ACTIVE,
  refused: MODEL_REFUSED,
  cancelled: MODEL_CANCELLED,
} as const;
const OPERATIONS = {
  active: 'activate_model',
  refused: 'refuse_model',
  cancelled: 'cancel_model',
} as const;
