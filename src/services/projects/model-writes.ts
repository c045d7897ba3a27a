import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { WrittenModel } from '../ports.ts';

/** Author of a model, as its version and the audit record it. */
export type ModelAuthor = {
  /** Name of the caller's credential, or `operator`. */
  readonly createdBy: string;
  /** The name of the service that called, for the audit alone. */
  readonly caller?: string | undefined;
  readonly rpc: string;
  readonly requestId: string;
};

/** A model that was checked and is to be written. */
export type ModelWrite = {
  readonly modelJson: string;
  /** The readable form, where it was written in it; '' otherwise. */
  readonly modelGate: string;
  readonly author: ModelAuthor;
  readonly comment: string;
  /** The version that it brings back; 0 if none. */
  readonly rolledBackTo: number;
  /** Goes live although stored tuples do not fit. */
  readonly force: boolean;
};

/** `pending`: stored tuples are examined first; writes must fit it from the commit on. */
export type PutModel = { readonly version: number; readonly state: 'active' | 'pending' };

/** Columns of a project's row that a write of its model goes by; the transaction holds the row. */
export type LockedProject = {
  readonly id: string;
  readonly model_json: string;
};

/** Progress of a model into force. */
export type ModelActivation = {
  /** 0: none was ever written. */
  readonly version: number;
  readonly state: 'none' | 'pending' | 'active' | 'refused' | 'cancelled';
  readonly tuplesScanned: number;
  readonly tuplesRefused: number;
  /** At most three of those that do not fit. */
  readonly examples: readonly RefusedTuple[];
  /** Namespaces of these tuples that the model in force declares, and this one does not. Sorted. */
  readonly droppedNamespaces: readonly string[];
};

/** A stored tuple that a model does not admit. */
export type RefusedTuple = {
  readonly tenantId: string;
  /** Identity and payload columns of the tuple, in the order of `relation_tuple`. */
  readonly columns: readonly (string | null)[];
  readonly problem: string;
};

/** The one way in which models come into projects: CreateProject, UpdateProject, WriteModel and RollBackModel. */
export interface ModelWrites {
  /**
   * Records `write` as the newest version of the project whose row the transaction holds, and puts it into
   * force, or on its way there. A pending one before it is given up. The project's `version` is raised.
   */
  put(client: ClientBase, project: LockedProject, write: ModelWrite): Promise<PutModel>;
  /**
   * To be called after the commit of `put`: resolves when that version is in force on this instance, was refused
   * or given up, or `deadlineMs` (as of WriteMeta) has come; then it may be pending still.
   */
  settled(
    projectId: string,
    version: number,
    deadlineMs: number,
    signal?: AbortSignal,
  ): Promise<ModelActivation>;
}

/** The fields of an audit record about a version. */
export function writtenModel(
  { version, state }: Pick<WrittenModel, 'version' | 'state'>,
  { modelJson, rolledBackTo, force }: Pick<ModelWrite, 'modelJson' | 'rolledBackTo' | 'force'>,
): WrittenModel {
  const sha256 = createHash('sha256').update(modelJson).digest('hex');
  return { version, sha256, rolledBackTo, forced: force, state };
}

/** The error of a write whose version does not decide: MODEL_NOT_IN_FORCE, MODEL_TUPLES_REFUSED. */
export function notInForce(projectId: string, activation: ModelActivation): AppError<AuthzReason> {
  const { version, state, tuplesRefused, tuplesScanned, examples } = activation;
  const metadata = { project_id: projectId, version: String(version) };
  if (state !== 'refused') {
    const problem =
      state === 'pending'
        ? 'stored tuples are still being looked at; GetModelActivation tells how far it is'
        : 'it was given up, or another one came';
    return new AppError<AuthzReason>(
      'MODEL_NOT_IN_FORCE',
      `model_json: stored as version ${version}, which does not decide: ${problem}`,
      metadata,
    );
  }
  const shown = examples.map(
    ({ tenantId, columns, problem }) =>
      `${columns[0]}:${columns[1]}#${columns[2]} of tenant "${tenantId}": ${problem}`,
  );
  return new AppError<AuthzReason>(
    'MODEL_TUPLES_REFUSED',
    `model_json: ${tuplesRefused} of ${tuplesScanned} stored tuples do not fit; ${shown.join('; ')}`,
    { ...metadata, tuples_refused: String(tuplesRefused) },
  );
}
