import { checkDataRegion, checkDisplayName, checkProjectId, checkText } from '../../model/names.ts';
import { checkModelDocument } from '../../model/namespace/namespace-model.ts';
import { fieldError } from '../../model/reasons.ts';
import { PROJECT_ACTIVE, PROJECT_SUSPENDED } from '../rules/project.ts';

/** Requests of AdminService, close to the wire. */
export type CreateProjectRequest = {
  readonly id: string;
  readonly name: string;
  readonly modelJson: string;
  readonly dataRegion: string;
  readonly maxCheckReads: number;
  readonly refuseUnknownRelations?: boolean | undefined;
};
export type UpdateProjectRequest = {
  readonly id: string;
  readonly name: string;
  /** Number of the proto enum; 0 leaves the status. */
  readonly status: number;
  readonly modelJson: string;
  readonly dataRegion: string;
  readonly clearDataRegion: boolean;
  readonly maxCheckReads: number;
  readonly clearMaxCheckReads: boolean;
  /** Absent leaves it. */
  readonly refuseUnknownRelations?: boolean | undefined;
};

/** Columns that an update sets; null leaves a column. */
export type ProjectChange = {
  readonly id: string;
  readonly name: string | null;
  readonly status: number | null;
  readonly modelJson: string | null;
  readonly dataRegion: string | null;
  readonly maxCheckReads: number | null;
  readonly refuseUnknownRelations: boolean | null;
};

/** Validates a CreateProject. Errors: FIELD_INVALID, FIELD_REQUIRED, MODEL_INVALID. */
export function checkCreateProject(
  request: CreateProjectRequest,
  readBudgetMin: number,
): CreateProjectRequest {
  checkProjectId('id', request.id);
  const name = checkDisplayName('name', request.name);
  checkModel(request.modelJson);
  if (request.dataRegion !== '') checkDataRegion('data_region', request.dataRegion);
  checkMaxCheckReads(request.maxCheckReads, readBudgetMin);
  return { ...request, name };
}

/** Validates an UpdateProject and returns the columns it sets. Errors: as `checkCreateProject`. */
export function checkUpdateProject(
  request: UpdateProjectRequest,
  readBudgetMin: number,
): ProjectChange {
  checkProjectId('id', request.id);
  const name = request.name === '' ? null : checkDisplayName('name', request.name);
  if (![0, PROJECT_ACTIVE, PROJECT_SUSPENDED].includes(request.status)) {
    throw fieldError('status', 'is not a ProjectStatus');
  }
  checkModel(request.modelJson);
  if (request.dataRegion !== '') {
    if (request.clearDataRegion) {
      throw fieldError('clear_data_region', 'excludes a non-empty data_region');
    }
    checkDataRegion('data_region', request.dataRegion);
  }
  checkMaxCheckReads(request.maxCheckReads, readBudgetMin);
  if (request.clearMaxCheckReads && request.maxCheckReads > 0) {
    throw fieldError('clear_max_check_reads', 'excludes a positive max_check_reads');
  }
  return {
    id: request.id,
    name,
    status: request.status === 0 ? null : request.status,
    modelJson: request.modelJson === '' ? null : request.modelJson,
    dataRegion: request.clearDataRegion ? '' : request.dataRegion || null,
    maxCheckReads: request.clearMaxCheckReads ? 0 : request.maxCheckReads || null,
    refuseUnknownRelations: request.refuseUnknownRelations ?? null,
  };
}

function checkModel(modelJson: string): void {
  if (modelJson === '') return;
  checkText('model_json', modelJson);
  checkModelDocument(modelJson);
}

function checkMaxCheckReads(value: number, min: number): void {
  if (!Number.isInteger(value) || value < 0) {
    throw fieldError('max_check_reads', 'must be 0 or positive');
  }
  if (value > 0 && value < min) {
    throw fieldError('max_check_reads', `must be 0 or at least ${min}`);
  }
}

/** Whether it changes something besides the model. */
export function hasSettings({ id: _id, modelJson: _model, ...settings }: ProjectChange): boolean {
  return Object.values(settings).some((value) => value !== null);
}
