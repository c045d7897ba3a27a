import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ModelProblemSchema, ModelSource } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { parseGate, type ParsedGate } from '../../language/gate/parse-gate.ts';
import type { ModelProblem } from '../../model/model-json.ts';
import { checkText, requiredError } from '../../model/names.ts';
import { type CheckedModel, checkModelDocument } from '../../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** A model that may be written, as a request gives it. */
export type SourcedModel = CheckedModel & {
  readonly modelJson: string;
  /** '' where the request has the JSON form. */
  readonly modelGate: string;
  readonly problems: MessageInitShape<typeof ModelProblemSchema>[];
};

/**
 * The model of a request, in either form. Errors: FIELD_REQUIRED naming `field`, FIELD_INVALID, MODEL_INVALID,
 * with line and column of the readable form. Cost: O(text).
 */
export function sourcedModel(field: string, source: ModelSource | undefined): SourcedModel {
  const form = source?.form;
  if (form?.case === undefined || form.value === '') throw requiredError(field);
  checkText(`${field}.${form.case}`, form.value);
  if (form.case === 'json') {
    const checked = checkModelDocument(form.value);
    const problems = checked.warnings.map((problem) => ({ ...problem }));
    return { ...checked, modelJson: form.value, modelGate: '', problems };
  }
  const gate = parseGate(form.value);
  const checked = checkedGate(gate);
  const problems = checked.warnings.map((problem) => placed(gate, problem));
  return { ...checked, modelJson: gate.json, modelGate: form.value, problems };
}

function checkedGate({ json, locate }: ParsedGate): CheckedModel {
  try {
    return checkModelDocument(json);
  } catch (error) {
    if (!(error instanceof AppError) || error.metadata['path'] === undefined) throw error;
    const { line, column } = locate(error.metadata['path']);
    const metadata = { ...error.metadata, line: String(line), column: String(column) };
    const text = `${error.message} (line ${line}, column ${column})`;
    throw new AppError<AuthzReason>('MODEL_INVALID', text, metadata, error);
  }
}

function placed({ locate }: ParsedGate, problem: ModelProblem): SourcedModel['problems'][number] {
  return { ...problem, ...locate(problem.path) };
}
