import type { Pool, PoolClient } from 'pg';
import { hasWriteRules } from '../model/model-admission.ts';
import type { ModelProblem } from '../model/model-json.ts';
import { documentVersion } from '../model/model-shape.ts';
import { checkProjectId } from '../model/names.ts';
import { inspectModel, parseModel } from '../model/namespace-model.ts';
import type { AuthzReason } from '../model/reasons.ts';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import type { Clock } from '../shared/clock.ts';
import { isFenced, storeError } from '../store/pg-errors.ts';
import {
  type ProjectRow,
  insertProject,
  lockProject,
  selectProject,
  selectProjects,
  updateProject,
} from '../store/sql/projects.ts';
import { inRetriedTransaction } from '../store/transaction.ts';
import { type ModelAuthor, type ModelWrites, notInForce, writtenModel } from './model-writes.ts';
import type {
  AdminAudit,
  AuditSink,
  ModelDistributor,
  WriteAdmission,
  WrittenModel,
} from './ports.ts';
import {
  type CreateProjectRequest,
  type UpdateProjectRequest,
  checkCreateProject,
  checkUpdateProject,
  hasSettings,
} from './project-input.ts';
import {
  type Project,
  projectFromRow,
  type ProjectSettings,
  refusalOf,
  settingsFromProject,
} from './project-settings.ts';
import type { GuardMode } from './rules/project.ts';
import { SettingsCache } from './settings-cache.ts';
import { SettingsInDoubt } from './settings-in-doubt.ts';

export type ProjectServiceOptions = {
  readonly pool: Pool;
  readonly admission: WriteAdmission;
  readonly clock: Clock;
  /** The instance's region; '' is none. */
  readonly region: string;
  readonly defaultProjectId: string;
  readonly readBudgetDefault: number;
  readonly readBudgetMin: number;
  /** How long settings are believed without asking again. */
  readonly ttlMs: number;
  /** Projects remembered at most. */
  readonly cacheMax: number;
  /** Projects that ListProjects returns at most. */
  readonly listMax: number;
  readonly distributor: ModelDistributor;
  readonly models: ModelWrites;
  readonly onRegionRefused: () => void;
  /** Settings were found to be old, and are loaded again. */
  readonly onOld: () => void;
  /** A stored model was found that would be refused today: `problem` is the first thing wrong with it. */
  readonly onUnsoundModel: (projectId: string, problem: ModelProblem) => void;
  /** Whether nobody else can have changed settings meanwhile. */
  readonly isAlone: () => boolean;
  readonly audit?: AuditSink | undefined;
};

/** Who calls, where the caller cannot be distinguished from others. */
const OPERATOR = 'operator';
/** Of a model that is a field of another request. */
const BARE_WRITE = { modelGate: '', comment: '', rolledBackTo: 0, force: false } as const;

/**
 * Projects and the settings that every call needs.
 *
 * P1 Settings are given out only after every worker has compiled the model version that they name.
 *    Settings with the same model keep the version under which it was distributed.
 *    [project-service.pg.test.ts]
 * P2 A version replaces a newer one only if its query was sent after the newer was known, which was then lost with its history. [project-service.pg.test.ts]
 * P3 A change made through this instance is in effect here before it is acknowledged; one made
 *    elsewhere within `ttlMs`, and from when on a read index or a change row has shown it. While it
 *    is under way, and others may see it before, reads ask the database (`SettingsInDoubt`).
 *    [project-service.pg.test.ts]
 * P4 Settings are believed for `ttlMs` from before they were asked for, or were seen unchanged; those in use are
 *    asked for ahead. Longer only while alone, while the database is away. [project-service.pg.test.ts]
 */
export class ProjectService {
  readonly #options: ProjectServiceOptions;
  readonly #cache: SettingsCache;
  readonly #loading = new Map<string, Promise<ProjectSettings>>();
  readonly #inDoubt: SettingsInDoubt;

  constructor(options: ProjectServiceOptions) {
    this.#options = options;
    this.#inDoubt = new SettingsInDoubt(options);
    const askAhead = (id: string): void => void this.load(id).catch(ignoreLoadError);
    this.#cache = new SettingsCache({ ...options, askAhead });
  }

  /** The id that a request means: '' is the default project. */
  resolveId(projectId: string): string {
    return projectId === '' ? this.#options.defaultProjectId : projectId;
  }

  /** Settings if they are known and fresh; otherwise `load`. '' is the default project. Hot. */
  peek(projectId: string): ProjectSettings | undefined {
    const id = this.resolveId(projectId);
    const settings = this.#cache.fresh(id);
    return settings === undefined || this.#inDoubt.has(id) ? undefined : settings;
  }

  /** What was known last, however long ago; undefined also when newer ones are known to exist. Hot. */
  known(projectId: string): ProjectSettings | undefined {
    return this.#cache.known(this.resolveId(projectId));
  }

  /**
   * The known settings if they are as new as `version`, which somebody read who asked at `askedMs`
   * (monotonic): then they were in force at some time after that. undefined: `atLeast`. Hot.
   */
  confirm(projectId: string, version: number | null, askedMs: number): ProjectSettings | undefined {
    return this.#cache.confirm(projectId, version, askedMs);
  }

  /**
   * Settings as the database has them now, of `version` at least unless that was lost; 0: by a query
   * that is sent after this call. Errors: those of `load`.
   */
  async atLeast(projectId: string, version: number): Promise<ProjectSettings> {
    this.#options.onOld();
    return await this.#loadAnew(projectId, version);
  }

  /** `load`, by a query that is sent after this call, unless one before it found `version` (not 0). */
  async #loadAnew(projectId: string, version: number): Promise<ProjectSettings> {
    const underWay = this.#loading.get(this.resolveId(projectId));
    if (underWay !== undefined) {
      // Sent before: it may have seen older ones.
      const settings = await underWay;
      if (version > 0 && settings.version >= version) return settings;
    }
    return await this.load(projectId);
  }

  /** A version is known to exist: settings that are older are not given out any more. */
  mustBeAtLeast(projectId: string, version: number): void {
    if (this.#cache.need(this.resolveId(projectId), version)) this.#options.onOld();
  }

  /** Somebody else may have changed settings until now: all are asked for again before they count. */
  forgetAll(): void {
    this.#cache.forgetAll();
  }

  /** The version that is known here; 0 is none. */
  versionOf(projectId: string): number {
    return this.#cache.last(projectId)?.version ?? 0;
  }

  /**
   * Settings from the database; concurrent loads of a project share one. Errors: FIELD_INVALID,
   * PROJECT_UNKNOWN (not remembered), STORE_UNAVAILABLE, those of the distributor.
   */
  load(projectId: string): Promise<ProjectSettings> {
    const id = this.resolveId(projectId);
    const loading = this.#loading.get(id);
    if (loading !== undefined) return loading;
    const promise = this.#load(id).finally(() => this.#loading.delete(id));
    this.#loading.set(id, promise);
    return promise;
  }

  /**
   * `peek`, or `load` where that does not know. While the database is away and this instance is alone,
   * what was known last stays in force: nobody else changes settings, and reads go on from loaded shards.
   */
  async settings(projectId: string): Promise<ProjectSettings> {
    const known = this.peek(projectId);
    if (known !== undefined) return known;
    if (this.#inDoubt.has(this.resolveId(projectId))) return await this.#loadAnew(projectId, 0);
    const settings = this.#cache.whileAway(this.resolveId(projectId));
    const loading = this.load(projectId).catch((error: unknown) => this.#keep(projectId, error));
    if (settings === undefined || !this.#options.isAlone()) return loading;
    // The database was away just now: nobody waits to see whether it still is.
    loading.catch(ignoreLoadError);
    return settings;
  }

  /** What was known last, again for a moment. Errors: `error`, where that is no answer to it. */
  #keep(projectId: string, error: unknown): ProjectSettings {
    if (!(error instanceof AppError) || error.reason !== 'STORE_UNAVAILABLE') throw error;
    const settings = this.#options.isAlone()
      ? this.#cache.extend(this.resolveId(projectId))
      : undefined;
    if (settings === undefined) throw error;
    return settings;
  }

  /** The document of a model version that this instance distributed, while it is remembered. */
  modelOf(projectId: string, modelVersion: number): string | undefined {
    const settings = this.#cache.last(projectId);
    return settings?.modelVersion === modelVersion ? settings.modelJson : undefined;
  }

  /** Refuses a call on a suspended project or one of another region. Errors: PROJECT_SUSPENDED, REGION_REFUSED. */
  guard(settings: ProjectSettings, mode: GuardMode): void {
    const refusal = refusalOf(settings, mode);
    if (refusal === undefined) return;
    if (refusal.reason === 'REGION_REFUSED') this.#options.onRegionRefused();
    throw refusal;
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
    await this.#install(project, askedMs);
    return project;
  }

  /** Errors: FIELD_*, PROJECT_UNKNOWN, STORE_UNAVAILABLE. */
  async get(id: string): Promise<Project> {
    checkProjectId('id', id);
    const row = await this.#ask(selectProject(this.#options.pool, id));
    if (row === undefined) throw projectUnknown(id);
    return projectFromRow(row);
  }

  /** Those of `ids` that there are, by id. Errors: STORE_UNAVAILABLE. Cost: a query for each. */
  async some(ids: readonly string[]): Promise<readonly Project[]> {
    const found: Project[] = [];
    for (const id of ids.toSorted()) {
      const row = await this.#ask(selectProject(this.#options.pool, id));
      if (row !== undefined) found.push(projectFromRow(row));
    }
    return found;
  }

  /** All projects by id. Errors: RESULT_TOO_LARGE beyond `listMax`, STORE_UNAVAILABLE. */
  async list(): Promise<readonly Project[]> {
    const { pool, listMax } = this.#options;
    const rows = await this.#ask(selectProjects(pool, listMax + 1));
    if (rows.length > listMax) {
      const problem = `there are more than ${listMax} projects`;
      throw new AppError<AuthzReason>('RESULT_TOO_LARGE', problem, { limit: String(listMax) });
    }
    return rows.map(projectFromRow);
  }

  /**
   * Resolves after the change is in effect on this instance: every worker has the model. `by` says who wrote the
   * version that a model becomes. Errors: FIELD_*, MODEL_INVALID, PROJECT_UNKNOWN, STORE_UNAVAILABLE, those of
   * the distributor; MODEL_TUPLES_REFUSED, MODEL_NOT_IN_FORCE: all of it was changed but the model in force.
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
   * Changes a project in one transaction, of which `work` is given the connection and the project's row, which
   * is held; it returns what the row has become. `committed` is reported at once after the commit. Resolves when
   * the change is in effect on this instance. `work` has no effects besides, and may be called again.
   * Errors: PROJECT_UNKNOWN, STORE_UNAVAILABLE (also where the commit's outcome is not known), those of
   * `work` and of the distributor.
   */
  async change<T>(
    id: string,
    work: (client: PoolClient, row: ProjectRow) => Promise<readonly [ProjectRow, T]>,
    committed: (value: T) => void,
  ): Promise<{ readonly project: Project; readonly value: T }> {
    return await this.#inDoubt.during(id, async () => {
      const [[row, value], askedMs] = await this.#write((pool, instanceId) =>
        inRetriedTransaction(pool, async (client) => {
          const before = await lockProject(client, instanceId, id);
          if (before === undefined) throw projectUnknown(id);
          return await work(client, before);
        }),
      );
      const project = projectFromRow(row);
      committed(value);
      await this.#install(project, askedMs);
      return { project, value };
    });
  }

  /** Makes the default project where it is missing, and loads its settings. Called at start. */
  async provisionDefault(): Promise<void> {
    const id = this.#options.defaultProjectId;
    checkProjectId('default project', id);
    const settings = { modelJson: '', dataRegion: '', maxCheckReads: 0, hasRules: false };
    const fresh = { id, name: id, ...settings };
    // Where it is there, a start does not wait until it may write.
    if ((await this.#ask(selectProject(this.#options.pool, id))) === undefined) {
      const author = { createdBy: '', rpc: '', requestId: '' };
      await this.#write((pool, instanceId) => insertProject(pool, instanceId, fresh, author));
    }
    await this.load(id);
  }

  async #load(id: string): Promise<ProjectSettings> {
    checkProjectId('project_id', id);
    const askedMs = this.#options.clock.monotonicMs();
    const row = await this.#ask(selectProject(this.#options.pool, id));
    if (row === undefined) {
      this.#cache.forget(id);
      throw projectUnknown(id);
    }
    return await this.#install(projectFromRow(row), askedMs);
  }

  /**
   * Distributes the model (P1), then remembers the settings, as the database had them after `askedMs`,
   * unless newer ones are known (P2).
   */
  async #install(project: Project, askedMs: number): Promise<ProjectSettings> {
    const { region, readBudgetDefault, distributor } = this.#options;
    const before = this.#cache.last(project.id);
    const isForced = project.forcedVersion > 0;
    let modelVersion = isForced ? documentVersion(project.forcedVersion) : project.version;
    const isSame = before !== undefined && before.modelJson === project.modelJson;
    if (isSame && (isForced ? before.modelVersion === modelVersion : before.modelVersion > 0)) {
      modelVersion = before.modelVersion;
    } else {
      this.#inspect(project);
      try {
        await distributor.setModel(project.id, modelVersion, project.modelJson);
      } catch (error) {
        // The next call loads and distributes again.
        this.#cache.forget(project.id);
        throw error;
      }
    }
    const newer = this.#cache.newerThan(project.id, project.version, askedMs);
    if (newer !== undefined) return newer;
    const settings = settingsFromProject(project, region, readBudgetDefault, modelVersion);
    this.#cache.remember(project.id, settings, askedMs);
    return settings;
  }

  /** Stored models load as they are, but somebody should know. */
  #inspect({ id, modelJson }: Project): void {
    const [problem] = inspectModel(modelJson).errors;
    if (problem !== undefined) this.#options.onUnsoundModel(id, problem);
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

  /** Sends a statement once this instance may write, and says when it was sent. */
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
        return [await this.#ask(statement(pool, writeId)), sentMs];
      } catch (error) {
        if (!isFenced(error)) throw error;
        admission.refused(writeId);
      }
    }
  }

  async #ask<T>(query: Promise<T>): Promise<T> {
    return await query.catch((error: unknown) => {
      throw storeError(error);
    });
  }
}

function ignoreLoadError(): void {
  // Settings that are gone are not remembered: the next call is reported.
}

/** PROJECT_UNKNOWN that names the id. */
export function projectUnknown(id: string): AppError {
  return new AppError<AuthzReason>('PROJECT_UNKNOWN', `project ${id} does not exist`, {
    project_id: id,
  });
}
