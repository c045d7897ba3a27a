import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { evaluateTemplate } from '../../../src/runner/evaluation/evaluate.ts';
import { readAction } from '../../../src/runner/language/read-action.ts';
import { readWorkflow } from '../../../src/runner/language/read-workflow.ts';
import type { Template } from '../../../src/runner/model/workflow.ts';
import { byLength } from '../../support/test-length.ts';

const RUNS = byLength(150, 600) * Number(process.env['FUZZ_RUNS'] ?? 1);

const WORDS: readonly string[] = [
  ...`on push jobs a b runs-on steps run uses with needs if env strategy matrix include exclude name
    workflow_dispatch workflow_call inputs type choice options default concurrency group permissions
    schedule cron parallel wait background outputs secrets inherit using composite main __proto__
    constructor ./.github/workflows/b.yml \${{ }} x[`.split(/\s+/),
  '',
  '* * * * *',
  '${{ insert }}',
  '${{ github.x }}',
  "${{ format('{0}', 1) }}",
  '${{ success() }}',
];

const word = fc.constantFrom(...WORDS);
const scalar = fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null), fc.string());
const document = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(word, tie('value'), { maxKeys: 5 }),
  ),
})).value;

/** Almost a workflow, so that reading gets far. */
const workflowLike = fc.record({
  on: fc.oneof(fc.constant('push'), document),
  jobs: fc.dictionary(
    fc.constantFrom('a', 'b', 'c'),
    fc.oneof(
      fc.record(
        {
          'runs-on': scalar,
          needs: fc.oneof(fc.constantFrom('a', 'b', 'c'), document),
          if: scalar,
          strategy: document,
          steps: fc.array(fc.oneof(fc.record({ run: scalar, if: scalar }), document), {
            maxLength: 3,
          }),
        },
        { requiredKeys: ['runs-on'] },
      ),
      document,
    ),
  ),
});

/** Texts of what YAML has a meaning for; blanks are written as `_`, line breaks as `$`. */
const MARKS =
  '-_ ?_ :_ : $ __ [ ] { } , &a_ *a_ !x_ !!int_ | > " # ---$ ...$ % \\ a 1 ~ on jobs {{ }} <<'
    .split(' ')
    .map((mark) => mark.replaceAll('_', ' ').replaceAll('$', '\n'));
const yamlText = fc
  .array(fc.constantFrom(...MARKS, "'", '\t', '${{', '\uFEFF', '\0', '\ud800'), {
    maxLength: 80,
    size: 'max',
  })
  .map((parts) => parts.join(''));

async function readsOrTells(text: string): Promise<void> {
  const { workflow, problems } = await readWorkflow(
    { text, fileName: 'a.yml', path: 'a.yml' },
    async (uses) =>
      await Promise.resolve(
        uses.endsWith('b.yml') ? { text, fileName: 'b.yml', path: 'b.yml' } : undefined,
      ),
  );
  expect(workflow === undefined).toBe(problems.length > 0);
  for (const { line, column, message } of problems) {
    expect(line).toBeGreaterThan(0);
    expect(column).toBeGreaterThan(0);
    expect(message).not.toBe('');
  }
  const action = readAction(text, 'action.yml');
  expect(action.action === undefined).toBe(action.problems.length > 0);
}

test('any document is read or its problems are told', async () => {
  const text = fc.oneof(document, workflowLike).map((value) => stringify(value));
  await fc.assert(fc.asyncProperty(text, readsOrTells), { numRuns: RUNS });
});

test('any text is read or its problems are told', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(yamlText, fc.string({ maxLength: 200, size: 'max' })), readsOrTells),
    {
      numRuns: RUNS,
    },
  );
});

const EXPRESSION_PARTS =
  "( ) [ ] . * , ! == < && || ' 'a' 1 -1e9 github matrix x format join fromJSON toJSON contains case always() '{0}' '[1,{}]' 0x1f true null NaN";
const expressionText = fc
  .array(fc.constantFrom(' ', ...EXPRESSION_PARTS.split(' ')), { maxLength: 30, size: 'max' })
  .map((parts) => parts.join(''));

test('any expression has a value or a typed error', async () => {
  const contexts = fc.record({ github: fc.json().map((text) => JSON.parse(text) as never) });
  await fc.assert(
    fc.asyncProperty(expressionText, contexts, async (source, found) => {
      const template: Template = { kind: 'expression', source, at: { line: 1, column: 1 } };
      await evaluateTemplate(template, { contexts: found }).then(
        (value) => {
          expect(value).not.toBeUndefined();
        },
        (error: unknown) => {
          expect(error).toMatchObject({ reason: 'INVALID_WORKFLOW' });
        },
      );
    }),
    { numRuns: RUNS * 3 },
  );
});
