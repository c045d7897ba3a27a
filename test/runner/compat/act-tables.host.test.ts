import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { evaluateTemplate, evaluateText } from '../../../src/runner/evaluation/evaluate.ts';
import { templateFromText } from '../../../src/runner/language/template-scalar.ts';
import type { ExpressionScope } from '../../../src/runner/model/execution.ts';
import type { JsonValue } from '../../../src/shared/json.ts';
import { actTestData } from './act-workspace.ts';

/** Rows of a Go table: an expression or a text, and what comes of it. */
type Row = { readonly source: string; readonly expected: JsonValue };

const testData = actTestData();
const at = { line: 1, column: 1 };
/** Rows that cannot agree, with the reason. */
const KNOWN_DIFFERENCES: ReadonlyMap<string, string> = new Map([
  ['toJSON(env)', 'asks for the variable ACT, which only act sets'],
  ['toJson(env)', 'asks for the variable ACT, which only act sets'],
]);
const CONSTANTS: Readonly<Record<string, JsonValue>> = {
  'model.StepStatusSuccess.String()': 'success',
  'model.StepStatusFailure.String()': 'failure',
};
const ROW = /^\t\t\{("(?:[^"\\]|\\.)*"), (.+?)(?:, "")?\},$/gm;

/** The rows of a test function of pkg/runner/expression_test.go. */
function rowsOf(name: string): readonly Row[] {
  const file = join(testData, '..', 'expression_test.go');
  const text = readFileSync(file, 'utf8');
  const start = text.indexOf(`func ${name}(`);
  const body = text.slice(start, text.indexOf('\n}\n', start));
  return [...body.matchAll(ROW)].map(([, source = '', expected = '']) => ({
    source: JSON.parse(source) as string,
    expected: CONSTANTS[expected] ?? (JSON.parse(expected) as JsonValue),
  }));
}

function scope(env: Readonly<Record<string, string>>): ExpressionScope {
  const hashRoot = mkdtempSync(join(tmpdir(), 'gatehouse-tables-'));
  onTestFinished(() => rmSync(hashRoot, { recursive: true, force: true }));
  const step = (name: string): JsonValue => ({
    conclusion: 'success',
    outcome: 'failure',
    outputs: { [`foo${name}`]: `bar${name}` },
  });
  return {
    contexts: {
      github: {
        workflow: 'test-workflow',
        actor: 'nektos/act',
        run_id: '1',
        run_number: '1',
      },
      env,
      job: { status: 'success' },
      matrix: { os: 'Linux', foo: 'bar' },
      secrets: { CASE_INSENSITIVE_SECRET: 'value' },
      vars: { CASE_INSENSITIVE_VAR: 'value' },
      steps: {
        idwithnothing: step('withnothing'),
        'id-with-hyphens': step('-with-hyphens'),
        id_with_underscores: step('_with_underscores'),
      },
    },
    status: { isCancelled: false, hasFailure: false },
    hashRoot,
  };
}

async function differing(
  rows: readonly Row[],
  evaluate: (source: string) => Promise<JsonValue>,
): Promise<readonly string[]> {
  const differences: string[] = [];
  for (const { source, expected } of rows) {
    const value = await evaluate(source).catch((error: unknown) => String(error));
    if (JSON.stringify(value) !== JSON.stringify(expected)) differences.push(source);
  }
  process.stdout.write(`${rows.length - differences.length} of ${rows.length} rows as in act\n`);
  return differences;
}

describe("act's tables of expressions in a run", () => {
  test('in the context of a job, and of a step', async () => {
    const contexts = scope({ key: 'value' });
    const rows = [...rowsOf('TestEvaluateRunContext'), ...rowsOf('TestEvaluateStep')];
    expect(rows).toHaveLength(54);
    const differences = await differing(rows, (source) =>
      evaluateTemplate({ kind: 'expression', source, at }, contexts),
    );
    expect(differences).toEqual([...KNOWN_DIFFERENCES.keys()]);
  });

  test('within texts', async () => {
    const contexts = scope({
      KEYWITHNOTHING: 'valuewithnothing',
      'KEY-WITH-HYPHENS': 'value-with-hyphens',
      KEY_WITH_UNDERSCORES: 'value_with_underscores',
      SOMETHING_TRUE: 'true',
      SOMETHING_FALSE: 'false',
    });
    const available = { contexts: Object.keys(contexts.contexts), functions: [] };
    const rows = rowsOf('TestInterpolate');
    expect(rows).toHaveLength(32);
    const differences = await differing(rows, (source) => {
      const refuse = (message: string): never => {
        throw new Error(message);
      };
      return evaluateText(templateFromText(source, at, available, refuse), contexts);
    });
    expect(differences).toEqual([]);
  });
});
