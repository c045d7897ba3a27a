import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ProjectRow } from '../../store/sql/projects/projects.ts';
import {
  type GuardMode,
  PROJECT_ANSWERS,
  PROJECT_SUSPENDED,
  type ProjectStatus,
} from '../rules/project.ts';

/** A project as AdminService shows it. */
export type Project = {
  readonly id: string;
  readonly name: string;
  readonly status: ProjectStatus;
  readonly modelJson: string;
  /** Microseconds since the epoch. */
  readonly createdAtUs: bigint;
  readonly updatedAtUs: bigint;
  readonly dataRegion: string;
  /** 0 is unset: the global default. */
  readonly maxCheckReads: number;
  /** Raised by every update. */
  readonly version: number;
  /** Version of the rules that tuples must fit; 0: no rules. */
  readonly writeRules: number;
  /** The version of its model that is on its way into force, and its text; 0 and '' if none. */
  readonly pendingVersion: number;
  readonly pendingJson: string;
  /** Whether queries of gatehouse.v1 must name what the typed model has. */
  readonly refusesUnknown: boolean;
  /** The version of the model in force, where stored tuples may not fit it; 0: all fit, or nothing is asked of them. */
  readonly forcedVersion: number;
};

/** Settings of a project that a call needs: resolved once per request. */
export type ProjectSettings = {
  readonly projectId: string;
  readonly suspended: boolean;
  readonly dataRegion: string;
  /** Whether this instance may serve the project's region. */
  readonly regionServed: boolean;
  /** Reads per evaluation: the project's own bound or the global default. */
  readonly readBudget: number;
  /** Version of the project's row. */
  readonly version: number;
  /**
   * The version with which this instance distributed the model; updates that leave the model keep it,
   * and with it what was compiled and remembered. Every worker has it before it is given out. Below 0 it names a document,
   * of which admitted tuples count only (`documentVersion`).
   */
  readonly modelVersion: number;
  readonly modelJson: string;
  /** Same as in Project: written tuples must fit the model in force and the pending one. */
  readonly writeRules: number;
  readonly pendingJson: string;
  readonly refusesUnknown: boolean;
};

/** Settings of a project for an instance with `region` ('' if none) and a global read budget. */
export function settingsFromProject(
  project: Project,
  region: string,
  readBudgetDefault: number,
  modelVersion: number = project.version,
): ProjectSettings {
  return {
    projectId: project.id,
    suspended: project.status === PROJECT_SUSPENDED,
    dataRegion: project.dataRegion,
    regionServed: project.dataRegion === '' || project.dataRegion === region,
    readBudget: project.maxCheckReads > 0 ? project.maxCheckReads : readBudgetDefault,
    version: project.version,
    modelVersion,
    modelJson: project.modelJson,
    writeRules: project.writeRules,
    pendingJson: project.pendingJson,
    refusesUnknown: project.refusesUnknown,
  };
}

/** The refusal of a call on this project, or undefined. Hot: property reads. */
export function refusalOf(settings: ProjectSettings, mode: GuardMode): AppError | undefined {
  if (settings.suspended && !PROJECT_ANSWERS[PROJECT_SUSPENDED][mode]) {
    return new AppError<AuthzReason>(
      'PROJECT_SUSPENDED',
      `project ${settings.projectId} is suspended`,
      {
        project_id: settings.projectId,
      },
    );
  }
  if (settings.regionServed) return undefined;
  return new AppError<AuthzReason>(
    'REGION_REFUSED',
    `project ${settings.projectId} is pinned to region ${settings.dataRegion}, which this instance does not serve`,
    { project_id: settings.projectId, data_region: settings.dataRegion },
  );
}

/** PROJECT_UNKNOWN that names the id. */
export function projectUnknown(id: string): AppError {
  return new AppError<AuthzReason>('PROJECT_UNKNOWN', `project ${id} does not exist`, {
    project_id: id,
  });
}

/** A project as its row has it. */
export function projectFromRow(row: ProjectRow): Project {
  return {
    id: row.id,
    name: row.name,
    status: row.status as ProjectStatus,
    modelJson: row.model_json,
    createdAtUs: BigInt(row.created_at_us),
    updatedAtUs: BigInt(row.updated_at_us),
    dataRegion: row.data_region,
    maxCheckReads: row.max_check_reads,
    version: Number(row.version),
    writeRules: Number(row.write_rules),
    pendingVersion: Number(row.pending_version),
    pendingJson: row.pending_json,
    refusesUnknown: row.refuse_unknown_relations,
    forcedVersion: Number(row.forced_version),
  };
}
