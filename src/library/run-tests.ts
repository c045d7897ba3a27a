import { assertionsInvalid, modelOfText, testFiles } from '../assertions/test-files.ts';
import { atBorder } from './border.ts';
import { checkText, limitsOf } from './checked-options.ts';
import type { EngineLimits } from './engine-options.ts';
import { namespaceModelOf } from './known-models.ts';
import type { Model } from './model.ts';
import type { TestResult } from './types.ts';

/** Options of a run of tests. */
export type TestOptions = EngineLimits & {
  /** Model for a file that brings none, or that names a file. */
  readonly model?: Model | undefined;
};

/**
 * Runs the text of a file of tests (YAML), each test over its own tuples. A file that brings its model is
 * tested with it. Errors: ASSERTIONS_INVALID with line and column, for an invalid text or an invalid model
 * in it.
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
