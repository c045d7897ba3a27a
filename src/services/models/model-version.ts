import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  MODEL_ACTIVE,
  type ModelVersionRow,
  type StoredModelState,
} from '../../store/sql/projects/model-versions.ts';

/** State of a version, numbered like the proto's ModelActivationState; 5 decided once. */
export type ModelState = StoredModelState | typeof MODEL_REPLACED;
export const MODEL_REPLACED = 5 as const;

/** One version of a project's model, without its text. */
export type ModelVersion = {
  readonly version: number;
  /** Microseconds since the epoch. */
  readonly createdAtUs: bigint;
  /** '' of what was written by a release that kept no versions, or by hand; so are rpc and requestId. */
  readonly createdBy: string;
  readonly rpc: string;
  readonly requestId: string;
  readonly comment: string;
  /** 0 if none. */
  readonly rolledBackTo: number;
  readonly forced: boolean;
  /** Namespaces with stored tuples that the model in force before declared, and this one does not. Sorted. */
  readonly droppedNamespaces: readonly string[];
  /** Digest of the JSON form, in hex. */
  readonly sha256: string;
  readonly state: ModelState;
};

/** A version as the database has it. */
export function modelVersionFromRow(row: ModelVersionRow): ModelVersion {
  const isReplaced = row.state === MODEL_ACTIVE && row.version !== row.version_in_force;
  return {
    version: Number(row.version),
    createdAtUs: BigInt(row.created_at_us),
    createdBy: row.created_by,
    rpc: row.rpc,
    requestId: row.request_id,
    comment: row.comment,
    rolledBackTo: Number(row.rolled_back_to),
    forced: row.forced,
    droppedNamespaces: row.dropped_namespaces,
    sha256: row.model_sha256,
    state: isReplaced ? MODEL_REPLACED : row.state,
  };
}

/** MODEL_VERSION_UNKNOWN that names project and version, and the field of the request, if given. */
export function versionUnknown(
  projectId: string,
  version: number,
  problem: string,
  field?: string,
): AppError {
  return new AppError<AuthzReason>('MODEL_VERSION_UNKNOWN', problem, {
    project_id: projectId,
    version: String(version),
    ...(field === undefined ? {} : { field }),
  });
}
