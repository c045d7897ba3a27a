import type { Pool, PoolClient } from 'pg';
import { checkProjectId } from '../../model/names.ts';
import { hasWriteRules } from '../../model/namespace/model-admission.ts';
import { parseModel } from '../../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { isFenced, storeError } from '../../store/postgres/pg-errors.ts';
import { inRetriedTransaction } from '../../store/postgres/transaction.ts';
import {
  type ProjectRow,
  insertProject,
  lockProject,
  selectProject,
  selectProjects,
  updateProject,
} from '../../store/sql/projects/projects.ts';
import type { AdminAudit, AuditSink, WriteAdmission, WrittenModel } from '../ports.ts';
import { type ModelAuthor, type ModelWrites, notInForce, writtenModel } from './model-writes.ts';
import {
  type CreateProjectRequest,
  type UpdateProjectRequest,
  checkCreateProject,
  checkUpdateProject,
  hasSettings,
} from './project-input.ts';
import { type Project, projectFromRow, projectUnknown } from './project-settings.ts';
import type { SettingsSource } from './settings-source.ts';

export type ProjectServiceOptions = {
  readonly pool: Pool;
  readonly admission: WriteAdmission;
  readonly clock: Clock;
  readonly defaultProjectId: string;
  readonly readBudgetMin: number;
  /** Projects that ListProjects returns at most. */
  readonly listMax: number;
  readonly models: ModelWrites;
  readonly settingsSource: SettingsSource;
  readonly audit?: AuditSink | undefined;
};

/** Author of a change where callers cannot be distinguished. */
const OPERATOR = 'operator';
/** Fields of a model that is a field of another request. */
const BARE_WRITE = { modelGate: '', comment: '', rolledBackTo: 0, force: false } as const;

/** Projects as AdminService manages them. A change is in effect here before it is acknowledged (P3 of SettingsSource). */
export class ProjectService {
  readonly #options: ProjectServiceOptions;

  constructor(options: ProjectServiceOptions) {
    this.#options = options;
  }

  /**
   * `by` as in `update`. Its model, if it has one, decides from the start: there are no tuples yet.
   * Errors: FIELD_*, MODEL_INVALID, PROJECT_EXISTS, STORE_UNAVAILABLE.
   */
  async create(
    request: CreateProjectRequest,
    requestId: string,
    by: string = OPERATOR,
    caller?: string,
  ): Promise<Project> {
    const checked = checkCreateProject(request, this.#options.readBudgetMin);
    const author = { createdBy: by, caller, rpc: 'CreateProject', requestId };
    const hasRules = hasWriteRules(parseModel(checked.modelJson));
    const [row, askedMs] = await this.#write((pool, id) =>
      insertProject(pool, id, { ...checked, hasRules }, author),
    );
    if (row === undefined) {
      throw new AppError<AuthzReason>('PROJECT_EXISTS', `project ${request.id} exists`, {
        project_id: request.id,
      });
    }
    const project = projectFromRow(row);
    const { modelJson } = checked;
    const first = { version: 1, state: 'active' } as const;
    const write = { ...BARE_WRITE, modelJson };
    const model = modelJson === '' ? undefined : writtenModel(first, write);
    this.audit('create_project', project.id, author, model);
    await this.#options.settingsSource.install(project, askedMs);
    return project;
  }

  /** Errors: FIELD_*, PROJECT_UNKNOWN, STORE_UNAVAILABLE. */
  async get(id: string): Promise<Project> {
    checkProjectId('id', id);
    const row = await this.#run(selectProject(this.#options.pool, id));
    if (row === undefined) throw projectUnknown(id);
    return projectFromRow(row);
  }

  /** The projects among `ids` that exist, by id. Errors: STORE_UNAVAILABLE. Cost: a query for each. */
  async some(ids: readonly string[]): Promise<readonly Project[]> {
    const found: Project[] = [];
    for (const id of ids.toSorted()) {
      const row = await this.#run(selectProject(this.#options.pool, id));
      if (row !== undefined) found.push(projectFromRow(row));
    }
    return found;
  }

  /** All projects by id. Errors: RESULT_TOO_LARGE beyond `listMax`, STORE_UNAVAILABLE. */
  async list(): Promise<readonly Project[]> {
    const { pool, listMax } = this.#options;
    const rows = await this.#run(selectProjects(pool, listMax + 1));
    if (rows.length > listMax) {
      const problem = `there are more than ${listMax} projects`;
      throw new AppError<AuthzReason>('RESULT_TOO_LARGE', problem, { limit: String(listMax) });
    }
    return rows.map(projectFromRow);
  }

  /**
   * Resolves after the change is in effect on this instance: every worker has the model. `by` is
   * the author of the version that a model becomes. Errors: FIELD_*, MODEL_INVALID,
   * PROJECT_UNKNOWN, STORE_UNAVAILABLE, those of the distributor; MODEL_TUPLES_REFUSED,
   * MODEL_NOT_IN_FORCE: everything was changed except the model in force.
   */
  async update(
    request: UpdateProjectRequest,
    requestId: string,
    by: string = OPERATOR,
    caller?: string,
  ): Promise<Project> {
    const change = checkUpdateProject(request, this.#options.readBudgetMin);
    const { id, modelJson } = change;
    const author = { createdBy: by, caller, rpc: 'UpdateProject', requestId };
    const { project, value: written } = await this.change<WrittenModel | undefined>(
      id,
      async (client, before) => {
        if (modelJson === null) return [await updateProject(client, change), undefined];
        const write = { ...BARE_WRITE, modelJson, author };
        const put = await this.#options.models.put(client, before, write);
        const row = hasSettings(change)
          ? await updateProject(client, change)
          : await selectProject(client, id);
        assert(row !== undefined, 'a project whose row is held is there');
        return [row, writtenModel(put, write)];
      },
      (model) => this.audit('update_project', id, author, model),
    );
    if (written === undefined || written.state === 'active') return project;
    const activation = await this.#options.models.settled(id, written.version, Infinity);
    if (activation.state !== 'active') throw notInForce(id, activation);
    return await this.get(id);
  }

  /**
   * Changes a project in one transaction. `work` gets the connection and the project's locked row,
   * and returns the new row. `committed` is called right after the commit. Resolves when the change
   * is in effect on this instance. `work` has no other effects, and may be called again. Errors:
   * PROJECT_UNKNOWN, STORE_UNAVAILABLE (also where the commit's outcome is not known), those of
   * `work` and of the distributor.
   */
  async change<T>(
    id: string,
    work: (client: PoolClient, row: ProjectRow) => Promise<readonly [ProjectRow, T]>,
    committed: (value: T) => void,
  ): Promise<{ readonly project: Project; readonly value: T }> {
    return await this.#options.settingsSource.inDoubt.during(id, async () => {
      const [[row, value], askedMs] = await this.#write((pool, instanceId) =>
        inRetriedTransaction(pool, async (client) => {
          const before = await lockProject(client, instanceId, id);
          if (before === undefined) throw projectUnknown(id);
          return await work(client, before);
        }),
      );
      const project = projectFromRow(row);
      committed(value);
      await this.#options.settingsSource.install(project, askedMs);
      return { project, value };
    });
  }

  /** Makes the default project where it is missing, and loads its settings. Called at start. */
  async provisionDefault(): Promise<void> {
    const id = this.#options.defaultProjectId;
    checkProjectId('default project', id);
    const settings = { modelJson: '', dataRegion: '', maxCheckReads: 0, hasRules: false };
    const fresh = { id, name: id, ...settings };
    // If the project exists, the start need not wait until it may write.
    if ((await this.#run(selectProject(this.#options.pool, id))) === undefined) {
      const author = { createdBy: '', rpc: '', requestId: '' };
      await this.#write((pool, instanceId) => insertProject(pool, instanceId, fresh, author));
    }
    await this.#options.settingsSource.load(id);
  }

  /** Notifies the audit what was done to a project. */
  audit(
    operation: AdminAudit['operation'],
    projectId: string,
    { createdBy: by, caller, rpc, requestId }: ModelAuthor,
    model: WrittenModel | undefined,
  ): void {
    const atMs = this.#options.clock.nowMs();
    const entry = { operation, projectId, by, caller, rpc, requestId, atMs, model };
    this.#options.audit?.projectChanged(entry);
  }

  /** Sends a statement once this instance may write, and returns when it was sent. */
  async #write<T>(
    statement: (pool: Pool, instanceId: string | null) => Promise<T>,
  ): Promise<[result: T, sentMs: number]> {
    const { pool, admission, clock } = this.#options;
    for (;;) {
      const { writeId } = admission;
      if (writeId === undefined) {
        await admission.whenAdmitted();
        continue;
      }
      const sentMs = clock.monotonicMs();
      try {
        return [await this.#run(statement(pool, writeId)), sentMs];
      } catch (error) {
        if (!isFenced(error)) throw error;
        admission.refused(writeId);
      }
    }
  }

  async #run<T>(query: Promise<T>): Promise<T> {
    return await query.catch((error: unknown) => {
      throw storeError(error);
    });
  }
}
