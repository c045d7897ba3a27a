import { LRUCache } from 'lru-cache';
import { problemOfDropped } from '../../model/namespace/dropped-namespace.ts';
import { problemOfTuple, type TupleProblem } from '../../model/namespace/model-admission.ts';
import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import { parseModel } from '../../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { RelationTuple, ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ProjectSettings } from '../projects/project-settings.ts';
import type { SettingsSource } from '../projects/settings-source.ts';

/** Rules that tuples of a project must fit: the model in force, and the one that is pending. */
export type ProjectRules = {
  /** Version in the database (project.write_rules); 0: no rules. */
  readonly version: number;
  readonly models: readonly NamespaceModel[];
  /** Whether inserts of gatehouse.v1 must name what the typed model in force has (unknown-inserts.ts). */
  readonly refusesUnknown: boolean;
  /**
   * Whether stored tuples that the model in force does not admit are ignored, so that a write by another version of the model may
   * store some.
   */
  readonly ignoresMisfits: boolean;
};

/**
 * Rules of tuples, as known here. The database decides: a statement that writes names the version
 * against which its tuples were checked, and is refused where the present version is another.
 *
 * R1 No tuple is committed that breaks the rules in force when it was committed, but one that another version of the model admits
 *    where those in force ignore it: the statement compares under the lock of the shard. [test/faults/typed-models.host.test.ts]
 * R2 No write is refused by rules that were over before it came: rules that refuse are read anew
 *    first. [src/services/models/staged-models.pg.test.ts]
 */
export interface WriteRules {
  /** Rules of a project, loaded where they are not known. Errors: those of SettingsSource.load. */
  of(projectId: string): Promise<ProjectRules>;
  /** Same as `of`, without waiting; undefined where nothing is known. */
  peek(projectId: string): ProjectRules | undefined;
  /** Rules of a project at some time after this call. Errors: as `of`. */
  fresh(projectId: string): Promise<ProjectRules>;
}

/** Rules of a project without requirements. */
export const NO_RULES: ProjectRules = {
  version: 0,
  models: [],
  refusesUnknown: false,
  ignoresMisfits: false,
};
/** Projects with rules that are kept parsed. */
const PARSED_MAX = 1_000;

/** The rules that the settings of projects bring along. */
export class SettingsRules implements WriteRules {
  readonly #settingsSource: SettingsSource;
  readonly #parsed = new LRUCache<string, ProjectRules>({ max: PARSED_MAX });

  constructor(settingsSource: SettingsSource) {
    this.#settingsSource = settingsSource;
  }

  async of(projectId: string): Promise<ProjectRules> {
    return this.peek(projectId) ?? (await this.#loaded(this.#settingsSource.load(projectId)));
  }

  peek(projectId: string): ProjectRules | undefined {
    const settings = this.#settingsSource.known(projectId);
    return settings === undefined ? undefined : this.#rulesOf(settings);
  }

  async fresh(projectId: string): Promise<ProjectRules> {
    return await this.#loaded(this.#settingsSource.atLeast(projectId, 0));
  }

  /**
   * Rules of settings that load; a missing project has none. Whether it may be written to is
   * checked elsewhere.
   */
  async #loaded(settings: Promise<ProjectSettings>): Promise<ProjectRules> {
    try {
      return this.#rulesOf(await settings);
    } catch (error) {
      if (error instanceof AppError && error.reason === 'PROJECT_UNKNOWN') return NO_RULES;
      throw error;
    }
  }

  /** A version of rules belongs to one pair of models for ever. */
  #rulesOf(settings: ProjectSettings): ProjectRules {
    const { projectId, writeRules, modelJson, modelVersion, pendingJson, refusesUnknown } =
      settings;
    if (writeRules === 0) return NO_RULES;
    const known = this.#parsed.get(projectId);
    const isSame = known?.version === writeRules;
    if (isSame && known.refusesUnknown === refusesUnknown) return known;
    const texts = pendingJson === '' ? [modelJson] : [modelJson, pendingJson];
    const models = isSame ? known.models : texts.map(parseModel);
    const ignoresMisfits = modelVersion < 0;
    const rules = { version: writeRules, models, refusesUnknown, ignoresMisfits };
    this.#parsed.set(projectId, rules);
    return rules;
  }
}

/**
 * The refusal of updates of which one writes a tuple that the rules do not admit, or undefined; the
 * message has `field` before its index. `isByVersion`: as in WriteOptions. Deletes are always admitted. Hot where no rules are.
 */
export function refusalOfUpdates(
  rules: ProjectRules,
  updates: readonly TupleChange[],
  field: string,
  isByVersion = false,
): AppError<AuthzReason> | undefined {
  if (rules.version === 0) return undefined;
  for (const [index, { op, tuple }] of updates.entries()) {
    if (op === 'delete') continue;
    const refusal = refusalOfTuple(rules, tuple, `${field}[${index}].tuple`, isByVersion);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** The refusal of a tuple, which `at` names in messages, or undefined. Hot where no rules are. */
export function refusalOfTuple(
  { models, ignoresMisfits }: ProjectRules,
  tuple: RelationTuple,
  at: string,
  isByVersion = false,
): AppError<AuthzReason> | undefined {
  for (const [index, model] of models.entries()) {
    if (index === 0 && isByVersion && ignoresMisfits) continue;
    const problem = problemOfTuple(model, tuple) ?? problemOfPending(models, index, tuple);
    if (problem === undefined) continue;
    const field = `${at}.${problem.field}`;
    const of = index === 0 ? '' : ' (by the model that is pending)';
    return new AppError<AuthzReason>('TUPLE_NOT_ADMITTED', `${field}: ${problem.message}${of}`, {
      field,
    });
  }
  return undefined;
}

/** The problem of a tuple whose namespace or relation the pending model leaves out: one more would keep it from coming into force. */
function problemOfPending(
  models: ProjectRules['models'],
  index: number,
  tuple: RelationTuple,
): TupleProblem | undefined {
  const [inForce, pending] = models;
  if (index === 0 || inForce === undefined || pending === undefined) return undefined;
  return problemOfDropped(inForce, pending, tuple);
}

/** The refusal of a write by rules read after it came. Errors: those of `rules.fresh`. */
export async function certainRefusal(
  rules: WriteRules,
  shard: ShardKey,
  updates: readonly TupleChange[],
  field: string,
  isByVersion = false,
): Promise<AppError<AuthzReason> | undefined> {
  const known = await rules.of(shard.projectId);
  if (refusalOfUpdates(known, updates, field, isByVersion) === undefined) return undefined;
  return refusalOfUpdates(await rules.fresh(shard.projectId), updates, field, isByVersion);
}
