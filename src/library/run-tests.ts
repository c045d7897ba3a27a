import { assertionsInvalid, modelOfText, testFiles } from '../assertions/test-files.ts';
import { atBorder } from './border.ts';
import { checkText, limitsOf } from './checked-options.ts';
import type { EngineLimits } from './engine-options.ts';
import { namespaceModelOf } from './known-models.ts';
import type { Model } from './model.ts';
import type { TestResult } from './types.ts';

/** Options of a test run. */
export type TestOptions = EngineLimits & {
  /** Model for a file that contains no model, or that names the file of one. */
  readonly model?: Model | undefined;
};

/**
 * Runs a file of tests (YAML), given as text. Each test has its own tuples. A file that contains a model is tested with
 * that model. Errors: FIELD_INVALID; ASSERTIONS_INVALID with line and column if the text is not such a file, or has no
 * valid model.
 */
export function runTests(text: string, options: TestOptions = {}): TestResult {
  return atBorder(() => {
    checkText('text', text);
    const { model, ...limits } = options;
    const { depthMax, readsMax } = limitsOf(limits);
    const { assertions, failures } = testFiles(
      [{ name: '', text }],
      (document) => {
        if (document.model?.kind === 'text') return modelOfText(document.model.value);
        if (model !== undefined) return namespaceModelOf(model);
        const line = document.model?.line ?? 1;
        const message = 'the file has no model of its own, and options.model is not given';
        throw assertionsInvalid('text', [{ line, column: 1, message }]);
      },
      { depthMax, readBudget: readsMax },
      () => 'text',
    );
    return {
      assertions,
      failures: failures.map(({ test, assertion, expected, actual, line }) => {
        return { test, assertion, expected, actual, line };
      }),
    };
  });
}
