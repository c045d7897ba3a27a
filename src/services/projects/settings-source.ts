import type { Pool } from 'pg';
import type { ModelProblem } from '../../model/model-json.ts';
import { checkProjectId } from '../../model/names.ts';
import { documentVersion } from '../../model/namespace/model-shape.ts';
import { inspectModel } from '../../model/namespace/namespace-model.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import { selectProject } from '../../store/sql/projects/projects.ts';
import type { ModelDistributor, WriteAdmission } from '../ports.ts';
import type { GuardMode } from '../rules/project.ts';
import {
  type Project,
  projectFromRow,
  type ProjectSettings,
  projectUnknown,
  refusalOf,
  settingsFromProject,
} from './project-settings.ts';
import { SettingsCache } from './settings-cache.ts';
import { SettingsInDoubt } from './settings-in-doubt.ts';

export type SettingsSourceOptions = {
  readonly pool: Pool;
  readonly admission: Pick<WriteAdmission, 'isOvertaken'>;
  readonly clock: Clock;
  /** The instance's region; '' if none. */
  readonly region: string;
  readonly defaultProjectId: string;
  readonly readBudgetDefault: number;
  /** How long settings are believed without asking again. */
  readonly ttlMs: number;
  /** Projects remembered at most. */
  readonly cacheMax: number;
  readonly distributor: ModelDistributor;
  readonly onRegionRefused: () => void;
  /** Settings were found to be old, and are loaded again. */
  readonly onOld: () => void;
  /** A stored model was found that would be refused today: `problem` is the first thing wrong with it. */
  readonly onUnsoundModel: (projectId: string, problem: ModelProblem) => void;
  /** Whether nobody else can have changed settings meanwhile. */
  readonly isAlone: () => boolean;
};

/**
 * The settings of projects that every call needs: from memory while they are believed, else from the database.
 *
 * P1 Settings are given out only after every worker has compiled the model version that they name.
 *    Settings with the same model keep the version under which it was distributed.
 *    [project-service.pg.test.ts]
 * P2 A version replaces a newer one only if its query was sent after the newer was known, which was then lost with its history. [settings-source.pg.test.ts]
 * P3 A change made through this instance is in effect here before it is acknowledged; one made
 *    elsewhere within `ttlMs`, and from when on a read index or a change row has shown it. While it
 *    is under way, and others may see it before, reads ask the database (`SettingsInDoubt`).
 *    [settings-source.pg.test.ts] [project-service.pg.test.ts]
 * P4 Settings are believed for `ttlMs` from before they were requested, or were seen unchanged; those in use are
 *    asked for ahead. Longer only while alone, while the database is away. [settings-source.pg.test.ts]
 */
export class SettingsSource {
  readonly #options: SettingsSourceOptions;
  readonly #cache: SettingsCache;
  readonly #loading = new Map<string, Promise<ProjectSettings>>();
  /** Changes under way: whoever makes one runs it in `during`. */
  readonly inDoubt: SettingsInDoubt;

  constructor(options: SettingsSourceOptions) {
    this.#options = options;
    this.inDoubt = new SettingsInDoubt(options);
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
    return settings === undefined || this.inDoubt.has(id) ? undefined : settings;
  }

  /** The last known settings, however long ago; undefined also when newer ones are known to exist. Hot. */
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

  /** Others may have changed settings until now: all are refreshed before they count. */
  forgetAll(): void {
    this.#cache.forgetAll();
  }

  /** The version that is known here; 0 if none. */
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
   * what was known last stays in force: nobody else changes settings, and reads continue from loaded shards.
   */
  async settings(projectId: string): Promise<ProjectSettings> {
    const known = this.peek(projectId);
    if (known !== undefined) return known;
    if (this.inDoubt.has(this.resolveId(projectId))) return await this.#loadAnew(projectId, 0);
    const settings = this.#cache.whileAway(this.resolveId(projectId));
    const loading = this.load(projectId).catch((error: unknown) =>
      this.#reuseLast(projectId, error),
    );
    if (settings === undefined || !this.#options.isAlone()) return loading;
    // The database was away just now: nobody waits to see whether it still is.
    loading.catch(ignoreLoadError);
    return settings;
  }

  /**
   * Keeps the last known settings for a moment. Errors: `error`, where another answer came or
   * nothing is known.
   */
  #reuseLast(projectId: string, error: unknown): ProjectSettings {
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
   * Distributes the model (P1), then remembers the settings, as the database had them after `askedMs`,
   * unless newer ones are known (P2).
   */
  async install(project: Project, askedMs: number): Promise<ProjectSettings> {
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

  async #load(id: string): Promise<ProjectSettings> {
    checkProjectId('project_id', id);
    const askedMs = this.#options.clock.monotonicMs();
    const row = await selectProject(this.#options.pool, id).catch((error: unknown) => {
      throw storeError(error);
    });
    if (row === undefined) {
      this.#cache.forget(id);
      throw projectUnknown(id);
    }
    return await this.install(projectFromRow(row), askedMs);
  }

  /** Stored models load as they are; the operator gets a log line. */
  #inspect({ id, modelJson }: Project): void {
    const [problem] = inspectModel(modelJson).errors;
    if (problem !== undefined) this.#options.onUnsoundModel(id, problem);
  }
}

function ignoreLoadError(): void {
  // Settings that are gone are not remembered: the next call gets the error.
}
