import { parseModel } from '../model/namespace/namespace-model.ts';
import type { AuthzReason } from '../model/reasons.ts';
import { AppError, type ErrorData, errorToData } from '../shared/app-error.ts';
import type { AssertionLimits } from './run-assertions.ts';
import { type FilesResult, modelOfText, type NamedText, testFiles } from './test-files.ts';

/** Input of one call: models, files and limits. */
export type AssertionTask = {
  /** JSON of the call's model, which takes precedence over models in files; null if the call has none. */
  readonly modelJson: string | null;
  /** JSON of the model for files without one; '' is the built-in model. */
  readonly fallbackJson: string;
  readonly files: readonly NamedText[];
  readonly limits: AssertionLimits;
  /** Name of the list of files in the request. */
  readonly field: string;
};

export type AssertionReply =
  | { readonly result: FilesResult; readonly error?: undefined }
  | { readonly result?: undefined; readonly error: ErrorData; readonly stack: string };

const NO_FILES = 'model_file: the service reads no files; send the model with the call';

/**
 * Runs one call on a separate thread. The work that files and models cause blocks no decisions, and ends with the call.
 */
export default function runTask(task: AssertionTask): AssertionReply {
  try {
    const { modelJson, fallbackJson, files, limits, field } = task;
    const given = parseModel(modelJson ?? fallbackJson);
    const result = testFiles(
      files,
      ({ model }) => {
        if (modelJson !== null || model === undefined) return given;
        if (model.kind === 'text') return modelOfText(model.value);
        throw new AppError<AuthzReason>('ASSERTIONS_INVALID', NO_FILES, {});
      },
      limits,
      (index) => `${field}[${index}].text`,
    );
    return { result };
  } catch (error) {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { error: errorToData(error), stack };
  }
}
