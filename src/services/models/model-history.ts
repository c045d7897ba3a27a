import type { Pool } from 'pg';
import { checkText } from '../../model/names.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import { storeError } from '../../store/postgres/pg-errors.ts';
import {
  type ModelTextRow,
  selectModelVersion,
  selectModelVersions,
  selectNewestModelVersion,
  selectVersionBefore,
} from '../../store/sql/projects/model-versions.ts';
import { selectProject } from '../../store/sql/projects/projects.ts';
import {
  type ModelActivation,
  type ModelAuthor,
  type ModelWrite,
  type ModelWrites,
  writtenModel,
} from '../projects/model-writes.ts';
import type { ProjectService } from '../projects/project-service.ts';
import type { SettingsSource } from '../projects/settings-source.ts';
import { type ModelVersion, modelVersionFromRow, versionUnknown } from './model-version.ts';

const TOKEN = /^v1:([1-9][0-9]{0,15}):(.*)$/s;

/** Token of the page of versions below `version`; opaque to callers. */
function pageTokenOf(projectId: string, version: number): string {
  return Buffer.from(`v1:${version}:${projectId}`).toString('base64url');
}

/** The version below which the page begins; 0 for ''. Errors: FIELD_INVALID, also of another project. */
function versionOfPageToken(projectId: string, token: string): number {
  if (token === '') return 0;
  const [, version, ofProject] = TOKEN.exec(Buffer.from(token, 'base64url').toString()) ?? [];
  const isOurs = ofProject === projectId && pageTokenOf(projectId, Number(version)) === token;
  if (!isOurs) throw fieldError('page_token', 'is none that this project gave');
  return Number(version);
}

export type ModelHistoryOptions = {
  readonly pool: Pool;
  readonly projects: ProjectService;
  readonly settingsSource: Pick<SettingsSource, 'resolveId'>;
  readonly models: ModelWrites;
};

/** A version with its texts; no version at all is the built-in model, whose text is ''. */
export type StoredModel = {
  readonly version: ModelVersion | undefined;
  readonly modelJson: string;
  /** '' where it was not written in the readable form. */
  readonly modelGate: string;
};

/** Fields of a write of a model besides its texts, which were checked. */
export type ModelWriteRequest = {
  readonly projectId: string;
  readonly modelJson: string;
  readonly modelGate: string;
  /** The newest version that must exist, 0 for none; null: not checked. */
  readonly expectedVersion: number | null;
  readonly comment: string;
  readonly force: boolean;
  readonly author: ModelAuthor;
  /** Until when it is waited that the version comes into force; as of WriteMeta. */
  readonly deadlineMs: number;
};

export type RollBackRequest = Omit<ModelWriteRequest, 'modelJson' | 'modelGate'> & {
  /** The version to bring back; 0 is the one that decided before the one in force. */
  readonly version: number;
};

/** Result of a write. */
export type WriteOutcome = { readonly version: number; readonly activation: ModelActivation };

const COMMENT_CHARACTERS_MAX = 1_000;
/** The built-in model as a document; a version stores it as ''. */
const BUILT_IN_JSON = '{"namespaces":{}}';
const PAGE_SIZE = 100;
const PAGE_SIZE_MAX = 1_000;

/**
 * The versions of projects' models. All methods also fail with FIELD_*, PROJECT_UNKNOWN and STORE_UNAVAILABLE;
 * '' is the default project.
 */
export class ModelHistory {
  readonly #options: ModelHistoryOptions;

  constructor(options: ModelHistoryOptions) {
    this.#options = options;
  }

  /** The project that `projectId` of a request names. */
  idOf(projectId: string): string {
    return this.#options.settingsSource.resolveId(projectId);
  }

  /** One version; 0 is the one in force. Errors: MODEL_VERSION_UNKNOWN. */
  async get(projectId: string, version: number): Promise<StoredModel> {
    checkVersion('version', version);
    const id = await this.#known(projectId);
    const row = await this.#run(selectModelVersion(this.#options.pool, id, version));
    if (row !== undefined) return storedModelFromRow(row);
    if (version === 0) return { version: undefined, modelJson: '', modelGate: '' };
    throw versionUnknown(id, version, `project ${id} has no version ${version} of its model`);
  }

  /** A page of the versions, the newest first; `pageToken` '' is the first page, and the answer's '' the end. */
  async list(
    projectId: string,
    pageSize: number,
    pageToken: string,
  ): Promise<{ readonly versions: readonly ModelVersion[]; readonly nextPageToken: string }> {
    if (!Number.isInteger(pageSize) || pageSize < 0 || pageSize > PAGE_SIZE_MAX) {
      throw fieldError('page_size', `must lie between 0 and ${PAGE_SIZE_MAX}`);
    }
    const before = versionOfPageToken(this.#options.settingsSource.resolveId(projectId), pageToken);
    const id = await this.#known(projectId);
    const size = pageSize === 0 ? PAGE_SIZE : pageSize;
    const rows = await this.#run(selectModelVersions(this.#options.pool, id, before, size + 1));
    const versions = rows.slice(0, size).map(modelVersionFromRow);
    const last = versions.at(-1);
    const hasMore = rows.length > size && last !== undefined;
    return { versions, nextPageToken: hasMore ? pageTokenOf(id, last.version) : '' };
  }

  /** The number of the newest version, whether it decides or not; 0 if there is none. */
  async newest(projectId: string): Promise<number> {
    const id = await this.#known(projectId);
    return await this.#run(selectNewestModelVersion(this.#options.pool, id));
  }

  /** Refuses what `write` would refuse before it reads the model. Errors: MODEL_VERSION_CHANGED. */
  async checkWrite(request: Omit<ModelWriteRequest, 'modelJson' | 'modelGate'>): Promise<void> {
    checkComment(request.comment);
    checkVersion('expected_version', request.expectedVersion ?? 0);
    const newest = await this.newest(request.projectId);
    checkExpected(request, newest);
  }

  /**
   * Makes a model the newest version, in force when this resolves unless the activation states otherwise.
   * Errors: MODEL_VERSION_CHANGED, those of ModelWrites.
   */
  async write(request: ModelWriteRequest): Promise<WriteOutcome> {
    const { modelJson, modelGate } = request;
    return await this.#put('write_model', request, { modelJson, modelGate, rolledBackTo: 0 });
  }

  /**
   * Makes the text of an earlier version the newest one, also if today's rules would refuse it: it was in force.
   * Errors: as `write`, MODEL_VERSION_UNKNOWN.
   */
  async rollBack(request: RollBackRequest): Promise<WriteOutcome & { readonly modelJson: string }> {
    checkVersion('version', request.version);
    const id = await this.#known(request.projectId);
    const version = request.version === 0 ? await this.#versionBefore(id) : request.version;
    const { modelJson: stored, modelGate } = await this.get(id, version);
    // '' means that no model is pending.
    const modelJson = stored === '' ? BUILT_IN_JSON : stored;
    const texts = { modelJson, modelGate, rolledBackTo: version };
    const outcome = await this.#put('roll_back_model', request, texts);
    return { ...outcome, modelJson };
  }

  async #versionBefore(id: string): Promise<number> {
    const version = await this.#run(selectVersionBefore(this.#options.pool, id));
    if (version > 0) return version;
    const built = 'the built-in model comes back by writing {"namespaces":{}}';
    throw versionUnknown(id, 0, `no version decided before the one in force; ${built}`);
  }

  async #put(
    operation: 'write_model' | 'roll_back_model',
    request: Omit<ModelWriteRequest, 'modelJson' | 'modelGate'>,
    texts: Pick<ModelWrite, 'modelJson' | 'modelGate' | 'rolledBackTo'>,
  ): Promise<WriteOutcome> {
    const { projectId, expectedVersion, author, comment, force, deadlineMs } = request;
    const write: ModelWrite = { ...texts, author, comment, force };
    checkComment(write.comment);
    checkVersion('expected_version', expectedVersion ?? 0);
    const { projects, settingsSource, models } = this.#options;
    const id = settingsSource.resolveId(projectId);
    const { value: put } = await projects.change(
      id,
      async (client, before) => {
        if (expectedVersion !== null) {
          const newest = await selectNewestModelVersion(client, id);
          checkExpected({ projectId: id, expectedVersion }, newest);
        }
        const made = await models.put(client, before, write);
        const row = await selectProject(client, id);
        assert(row !== undefined, 'a project whose row is held is there');
        return [row, made];
      },
      (made) => projects.audit(operation, id, author, writtenModel(made, write)),
    );
    return { version: put.version, activation: await models.settled(id, put.version, deadlineMs) };
  }

  /** The id of a project that exists. */
  async #known(projectId: string): Promise<string> {
    const { projects, settingsSource } = this.#options;
    const { id } = await projects.get(settingsSource.resolveId(projectId));
    return id;
  }

  async #run<T>(query: Promise<T>): Promise<T> {
    return await query.catch((error: unknown) => {
      throw storeError(error);
    });
  }
}

function storedModelFromRow(row: ModelTextRow): StoredModel {
  return {
    version: modelVersionFromRow(row),
    modelJson: row.model_json,
    modelGate: row.model_gate,
  };
}

function checkComment(comment: string): void {
  checkText('comment', comment);
  // A character is at most two units, so that only long texts need counting.
  if (comment.length <= COMMENT_CHARACTERS_MAX) return;
  if (Array.from(comment).length > COMMENT_CHARACTERS_MAX) {
    throw fieldError('comment', `must have at most ${COMMENT_CHARACTERS_MAX} characters`);
  }
}

function checkVersion(field: string, version: number): void {
  if (!Number.isSafeInteger(version) || version < 0) {
    throw fieldError(field, 'must be 0 or the number of a version');
  }
}

function checkExpected(
  { projectId, expectedVersion }: Pick<ModelWriteRequest, 'projectId' | 'expectedVersion'>,
  newest: number,
): void {
  if (expectedVersion === null || expectedVersion === newest) return;
  const problem =
    newest === 0 ? 'there is no version yet' : `the newest is ${newest}, not ${expectedVersion}`;
  throw new AppError<AuthzReason>('MODEL_VERSION_CHANGED', `expected_version: ${problem}`, {
    field: 'expected_version',
    project_id: projectId,
    version: String(newest),
  });
}
