import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { AppError } from '../shared/app-error.ts';
import {
  insertModelVersion,
  MODEL_ACTIVE,
  MODEL_PENDING,
  selectNewestModelVersion,
} from '../store/sql/model-versions.ts';
import type { ModelAuthor, ProjectRow } from '../store/sql/projects.ts';
import type { ModelActivation, WrittenModel } from './ports.ts';
import type { ServicesReason } from './services-reason.ts';

/** A model that is to become the newest version of a project. Valid: whoever makes it has checked it. */
export type ModelWrite = {
  readonly modelJson: string;
  /** '' where it was not written in the readable form. */
  readonly modelGate: string;
  readonly comment: string;
  /** The version that it brings back; 0 is none. */
  readonly rolledBackTo: number;
  readonly force: boolean;
  /** Refused unless this is the newest version; null is not looked at, 0 is none so far. */
  readonly expectedVersion: number | null;
  readonly author: ModelAuthor;
};

/** What a write by UpdateProject or CreateProject does not say. */
const PLAIN = {
  modelGate: '',
  comment: '',
  rolledBackTo: 0,
  force: false,
  expectedVersion: null,
} as const;

/** The write of a model that is a field of another request. */
export function plainModelWrite(modelJson: string, author: ModelAuthor): ModelWrite {
  return { ...PLAIN, modelJson, author };
}

/** The version that a new project's model is. */
export function firstModel(modelJson: string): WrittenModel {
  return {
    version: 1,
    sha256: sha256Of(modelJson),
    rolledBackTo: 0,
    forced: false,
    isActive: true,
  };
}

/**
 * Records a model as the newest version of the project whose row the transaction holds. Where it is active the
 * caller writes it into the row in the same transaction; a pending one gets there by `activation`.
 * Errors: MODEL_VERSION_CHANGED, those of `activation`.
 */
export async function recordModel(
  client: PoolClient,
  activation: ModelActivation,
  row: ProjectRow,
  write: ModelWrite,
): Promise<WrittenModel> {
  const { modelJson, force, expectedVersion, rolledBackTo } = write;
  const newest = await selectNewestModelVersion(client, row.id);
  if (expectedVersion !== null && expectedVersion !== newest) {
    throw versionChanged(row.id, expectedVersion, newest);
  }
  const version = newest + 1;
  const begun = { projectId: row.id, version, modelJson, jsonInForce: row.model_json, force };
  const isActive = (await activation.begin(client, begun)) === 'active';
  await insertModelVersion(client, {
    projectId: row.id,
    modelJson,
    modelGate: write.modelGate,
    ...write.author,
    comment: write.comment,
    rolledBackTo,
    forced: force,
    state: isActive ? MODEL_ACTIVE : MODEL_PENDING,
  });
  return { version, sha256: sha256Of(modelJson), rolledBackTo, forced: force, isActive };
}

/** As the database computes it: of the UTF-8 text, in hex. */
function sha256Of(modelJson: string): string {
  return createHash('sha256').update(modelJson).digest('hex');
}

function versionChanged(projectId: string, expected: number, newest: number): AppError {
  const problem =
    newest === 0
      ? 'the project has no version yet'
      : `the newest version is ${newest}, not ${expected}`;
  return new AppError<ServicesReason>('MODEL_VERSION_CHANGED', `expected_version: ${problem}`, {
    field: 'expected_version',
    project_id: projectId,
    version: String(newest),
  });
}
