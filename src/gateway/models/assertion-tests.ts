import type { AssertionThreads } from '../../assertions/assertion-threads.ts';
import type { FilesResult, NamedText } from '../../assertions/test-files.ts';
import type { AssertionFile } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { checkText } from '../../model/names.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { sharedNowMs } from '../connect/call-context.ts';

/** Files of assertions of one request at most. */
export const FILES_MAX = 100;
const NAME_CHARACTERS_MAX = 500;

export type AssertionTestsOptions = {
  readonly threads: AssertionThreads;
  /** Nodes on one path of a derivation. */
  readonly depthMax: number;
  /** Reads of one evaluation. */
  readonly readBudget: number;
};

/** The files of a call and the model that they test. */
export type TestCall = {
  /** Names the list of files in the request. */
  readonly field: string;
  readonly files: readonly AssertionFile[];
  /** The model of the call; null leaves it to the files. */
  readonly modelJson: string | null;
  /** The model of files that bring none along. */
  readonly fallbackJson: string;
  /** On the shared clock. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
};

/** Files of assertions that requests carry. */
export class AssertionTests {
  readonly #options: AssertionTestsOptions;

  constructor(options: AssertionTestsOptions) {
    this.#options = options;
  }

  /** Errors: FIELD_INVALID, those of AssertionThreads.run. */
  async run({ field, files, deadlineMs, signal, ...models }: TestCall): Promise<FilesResult> {
    const { threads, depthMax, readBudget } = this.#options;
    const texts = checkFiles(field, files);
    const limits = { depthMax, readBudget };
    const task = { ...models, files: texts, limits, field };
    return await threads.run(task, deadlineMs - sharedNowMs(), signal);
  }

  /** Runs files that must pass. Errors: as `run`; MODEL_TESTS_FAILED with the first assertion that does not hold. */
  async mustPass(call: TestCall): Promise<void> {
    if (call.files.length === 0) return;
    const { assertions, failures } = await this.run(call);
    const [first] = failures;
    if (first === undefined) return;
    const { file, line, test, assertion, expected, actual } = first;
    const which = `${file}:${line}: ${test}: ${assertion}: expected ${expected}, is ${actual}`;
    throw new AppError<AuthzReason>(
      'MODEL_TESTS_FAILED',
      `${call.field}: ${failures.length} of ${assertions} assertions do not hold; ${which}`,
      { field: call.field, failures: String(failures.length), assertions: String(assertions) },
    );
  }
}

function checkFiles(field: string, files: readonly AssertionFile[]): readonly NamedText[] {
  if (files.length > FILES_MAX) throw fieldError(field, `holds more than ${FILES_MAX} files`);
  return files.map(({ name, text }, index) => {
    const at = `${field}[${index}]`;
    checkText(`${at}.name`, name);
    checkText(`${at}.text`, text);
    if (name.length > NAME_CHARACTERS_MAX) {
      throw fieldError(`${at}.name`, `must have at most ${NAME_CHARACTERS_MAX} characters`);
    }
    return { name: name === '' ? `files[${index}]` : name, text };
  });
}
