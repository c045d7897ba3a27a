import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import type {
  ModelProblemSchema,
  ModelService,
  ModelSource,
  ValidateModelResponseSchema,
} from '../../gen/gatehouse/v1/model_service_pb.ts';
import { gateProblems, parseGate } from '../../language/gate/parse-gate.ts';
import { checkText, requiredError } from '../../model/names.ts';
import { isTyped } from '../../model/namespace/model-references.ts';
import { inspectModel } from '../../model/namespace/namespace-model.ts';
import { gateOf } from './version-methods.ts';

type Problem = MessageInitShape<typeof ModelProblemSchema>;
type Response = MessageInitShape<typeof ValidateModelResponseSchema>;

/** The handler that answers the meaning of a model, or what is wrong with it. */
export function validateMethods(): Pick<ServiceImpl<typeof ModelService>, 'validateModel'> {
  return {
    validateModel(request) {
      assertNoUnknownFields(request);
      return validate(request.model);
    },
  };
}

/** Errors: FIELD_REQUIRED, FIELD_INVALID; what is wrong with the model itself is the answer. Cost: O(text). */
function validate(source: ModelSource | undefined): Response {
  const form = source?.form;
  if (form?.case === undefined || form.value === '') throw requiredError('model');
  checkText(`model.${form.case}`, form.value);
  if (form.case === 'json') return inspected(form.value, '', (problem) => problem);
  const formProblems = gateProblems(form.value);
  if (formProblems.length > 0) {
    const errors = formProblems.map(({ message, hint, line, column }) => {
      const text = hint === '' ? message : `${message} (${hint})`;
      return { path: '', message: text, line, column };
    });
    return { valid: false, errors };
  }
  const { json, locate } = parseGate(form.value);
  return inspected(json, form.value, (problem) => ({ ...problem, ...locate(problem.path) }));
}

function inspected(
  modelJson: string,
  modelGate: string,
  locate: (problem: { readonly path: string; readonly message: string }) => Problem,
): Response {
  const { model, ...found } = inspectModel(modelJson);
  const errors = found.errors.map(locate);
  const warnings = found.warnings.map(locate);
  const typed = model !== undefined && isTyped(model);
  if (errors.length > 0) return { valid: false, errors, warnings, typed };
  const texts = { modelJson, modelGate: gateOf({ version: undefined, modelJson, modelGate }) };
  return { valid: true, errors, warnings, typed, ...texts };
}
