import type { ClientBase, Pool } from 'pg';
import { dropsRules } from '../../model/namespace/dropped-namespace.ts';
import { hasWriteRules } from '../../model/namespace/model-admission.ts';
import { isTyped } from '../../model/namespace/model-references.ts';
import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import { parseModel } from '../../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import {
  type ActivationRow,
  activateModel,
  cancelActivations,
  dropPendingModel,
  endActivation,
  selectActivation,
  selectPendingActivation,
  selectTuplesAfter,
  setPendingModel,
} from '../../store/sql/projects/model-activations.ts';
import {
  ignoreMisfits,
  insertModelVersion,
  MODEL_ACTIVE,
  MODEL_CANCELLED,
  MODEL_PENDING,
  MODEL_REFUSED,
  type StoredModelState,
} from '../../store/sql/projects/model-versions.ts';
import { selectProject } from '../../store/sql/projects/projects.ts';
import {
  type LockedProject,
  type ModelActivation,
  type ModelAuthor,
  type ModelWrite,
  type ModelWrites,
  type PutModel,
  type RefusedTuple,
  writtenModel,
} from '../projects/model-writes.ts';
import type { ProjectService } from '../projects/project-service.ts';
import type { SettingsSource } from '../projects/settings-source.ts';
import { examine, type Finding, NOTHING_FOUND } from './examine-tuples.ts';

export type StagedModelsOptions = {
  readonly pool: Pool;
  readonly settingsSource: SettingsSource;
  /** Asked when a call changes or reads a project: it is made with this. */
  readonly projects: () => ProjectService;
  /** Called when a version has become pending: the job that examines its tuples may begin at once. */
  readonly onPending: (projectId: string) => void;
  /** Until when the end of an activation is waited for at most, from its commit. */
  readonly waitMaxMs: number;
};

/** Stored tuples that are parsed in one turn of the event loop. */
export const ACTIVATION_ROWS = 1_000;
/** The first poll of the state of a version, and the longest wait between two. */
const POLL_MS = 5;
const POLL_MS_MAX = 250;
/** Part of a deadline that is left for the answer. */
const ANSWER_MS = 250;

const STATES: Readonly<Record<StoredModelState, ModelActivation['state']>> = {
  [MODEL_PENDING]: 'pending',
  [MODEL_ACTIVE]: 'active',
  [MODEL_REFUSED]: 'refused',
  [MODEL_CANCELLED]: 'cancelled',
};

/**
 * The ways of a model into force. A model without subject types that keeps every namespace and
 * relation of the one in force decides from its commit on. Any other is pending at first: from its
 * commit on tuples must fit both it and the model in force. It decides when no stored tuple is
 * found that does not fit (ActivationJob).
 */
export class StagedModels implements ModelWrites {
  readonly #options: StagedModelsOptions;

  constructor(options: StagedModelsOptions) {
    this.#options = options;
  }

  async put(client: ClientBase, before: LockedProject, write: ModelWrite): Promise<PutModel> {
    const { id } = before;
    const model = parseModel(write.modelJson);
    const state = needsPoll(parseModel(before.model_json), model) ? MODEL_PENDING : MODEL_ACTIVE;
    await cancelActivations(client, id);
    const version = await insertModelVersion(client, id, write, state);
    if (state === MODEL_ACTIVE) {
      await activateModel(client, id, write.modelJson, hasWriteRules(model));
      return { version, state: 'active' };
    }
    const { modelJson, force: isForced, author } = write;
    await setPendingModel(client, { projectId: id, version, modelJson, isForced, ...author });
    return { version, state: 'pending' };
  }

  async settled(
    projectId: string,
    version: number,
    deadlineMs: number,
    signal?: AbortSignal,
  ): Promise<ModelActivation> {
    const { settingsSource, onPending, waitMaxMs } = this.#options;
    const untilMs = Math.min(deadlineMs - ANSWER_MS, nowMs() + waitMaxMs);
    for (let pauseMs = POLL_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MS_MAX)) {
      const activation = await this.#activation(projectId, version);
      if (activation.state !== 'pending') {
        // Wherever it was ended: the answer must not come before it is in force here.
        await settingsSource.atLeast(projectId, 0);
        return activation;
      }
      if (nowMs() >= untilMs || signal?.aborted === true) return activation;
      onPending(projectId);
      await new Promise((done) => setTimeout(done, pauseMs));
    }
  }

  /**
   * The outcome if a model were written now, as `settled` would return it. `pending` where that is
   * not known by the deadline, or this instance does not examine the project's tuples. Nothing is
   * changed, and nothing is kept from being written meanwhile. Errors: those of
   * `SettingsSource.settings`, STORE_UNAVAILABLE.
   */
  async rehearse(
    projectId: string,
    modelJson: string,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<ModelActivation> {
    const { pool, waitMaxMs, projects, settingsSource } = this.#options;
    const settings = await settingsSource.settings(projectId);
    const model = parseModel(modelJson);
    // Read anew: the cached settings may be older.
    const inForce = parseModel((await projects().get(settings.projectId)).modelJson);
    const untilMs = Math.min(deadlineMs - ANSWER_MS, nowMs() + waitMaxMs);
    const row = (finding: Finding, state: StoredModelState): ModelActivation =>
      activationFromRow({
        version: '0',
        state,
        scanned: String(finding.scanned),
        refused: String(finding.refused),
        examples: finding.examples,
        dropped_namespaces: finding.droppedNamespaces,
      });
    if (!needsPoll(inForce, model)) return row(NOTHING_FOUND, MODEL_ACTIVE);
    if (!settings.regionServed) return row(NOTHING_FOUND, MODEL_PENDING);
    for (let finding = NOTHING_FOUND; ;) {
      if (nowMs() >= untilMs || signal.aborted) return row(finding, MODEL_PENDING);
      const rows = await selectTuplesAfter(
        pool,
        settings.projectId,
        finding.lastSeen,
        ACTIVATION_ROWS,
      ).catch((error: unknown) => {
        throw storeError(error);
      });
      finding = examine(inForce, model, finding, rows);
      if (rows.length === ACTIVATION_ROWS) continue;
      return row(finding, finding.refused > 0 ? MODEL_REFUSED : MODEL_ACTIVE);
    }
  }

  /** State of the newest version of a project. Errors: those of `SettingsSource.settings`. */
  async activation(projectId: string): Promise<ModelActivation> {
    const settings = await this.#options.settingsSource.settings(projectId);
    return await this.#activation(settings.projectId, 0);
  }

  /**
   * Gives up the pending version of a project: the model in force stays. Errors: those of `activation`,
   * MODEL_NOT_PENDING, STORE_UNAVAILABLE.
   */
  async cancel(projectId: string, author: ModelAuthor): Promise<ModelActivation> {
    const projects = this.#options.projects();
    const { projectId: id } = await this.#options.settingsSource.settings(projectId);
    const { value } = await projects.change(
      id,
      async (client, before) => {
        const pending = await selectPendingActivation(client, id);
        if (pending === undefined) {
          throw new AppError<AuthzReason>(
            'MODEL_NOT_PENDING',
            `no version of the model of project ${id} is pending`,
            { project_id: id },
          );
        }
        await endActivation(client, id, pending.version, MODEL_CANCELLED);
        await dropPendingModel(client, id, hasWriteRules(parseModel(before.model_json)));
        const row = await selectProject(client, id);
        return [row ?? before, pending];
      },
      ({ version, modelJson, isForced }) => {
        const write = { modelJson, rolledBackTo: 0, force: isForced };
        projects.audit(
          'cancel_model',
          id,
          author,
          writtenModel({ version, state: 'cancelled' }, write),
        );
      },
    );
    return await this.#activation(id, value.version);
  }

  /**
   * Has the model in force ignore stored tuples that it does not admit, as after a `force`: a write by another version stores
   * some. Resolves when that is in effect here. Does nothing where it does so already. Errors: MODEL_NOT_IN_FORCE while a version is
   * pending, whose examination of the stored tuples would miss them, and those of ProjectService.change.
   */
  async ignoreMisfits(projectId: string, author: ModelAuthor): Promise<void> {
    const projects = this.#options.projects();
    await projects.change(
      projectId,
      async (client, before) => {
        if (before.forced_version !== '0') return [before, false];
        if (before.pending_version !== '0') throw pendingBefore(projectId, before.pending_version);
        if (!(await ignoreMisfits(client, projectId))) {
          throw new Error('a model with rules was written as a version');
        }
        return [(await selectProject(client, projectId)) ?? before, true];
      },
      (isNew) => {
        if (isNew) projects.audit('ignore_misfits', projectId, author, undefined);
      },
    );
  }

  async #activation(projectId: string, version: number): Promise<ModelActivation> {
    const row = await selectActivation(this.#options.pool, projectId, version).catch(
      (error: unknown) => {
        throw storeError(error);
      },
    );
    const activation = activationFromRow(row);
    // Tuples of a project that is pinned elsewhere are not shown here.
    const isServed = this.#options.settingsSource.known(projectId)?.regionServed !== false;
    return isServed ? activation : { ...activation, examples: [] };
  }
}

function pendingBefore(projectId: string, version: string): AppError {
  const problem = `model_version: version ${version} of the model of project ${projectId} is pending: what it does not admit cannot be written`;
  const metadata = { project_id: projectId, version, field: 'model_version' };
  return new AppError<AuthzReason>('MODEL_NOT_IN_FORCE', problem, metadata);
}

/** Whether stored tuples may keep a model from following on the one in force. */
function needsPoll(inForce: NamespaceModel, model: NamespaceModel): boolean {
  return isTyped(model) || dropsRules(inForce, model);
}

/** An activation as the database has it; a version without one came into force at once. */
function activationFromRow(row: ActivationRow | undefined): ModelActivation {
  if (row === undefined) {
    const none = { tuplesScanned: 0, tuplesRefused: 0, examples: [], droppedNamespaces: [] };
    return { version: 0, state: 'none', ...none };
  }
  const examples = JSON.parse(row.examples) as [string, (string | null)[], string][];
  return {
    version: Number(row.version),
    state: STATES[row.state],
    tuplesScanned: Number(row.scanned),
    tuplesRefused: Number(row.refused),
    examples: examples.map(([tenantId, columns, problem]): RefusedTuple => ({
      tenantId,
      columns,
      problem,
    })),
    droppedNamespaces: row.dropped_namespaces,
  };
}

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
