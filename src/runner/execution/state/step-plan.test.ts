import { expect, test } from 'vitest';
import type { Template } from '../../model/workflow.ts';
import { shownTemplate } from './shown-template.ts';
import { nameOfScript } from './step-plan.ts';

const at = { line: 1, column: 1 };

test.each<[string, string]>([
  ["format('echo {0} {1}', a.b, env['x'])", "echo ${{ a.b }} ${{ env['x'] }}"],
  [
    "format('it''s {{literal}} {0}', format('{0},', 'a,''b'))",
    "it's {literal} ${{ format('{0},', 'a,''b') }}",
  ],
  ["format('one', 'two') && x", "${{ format('one', 'two') && x }}"],
  ['github.ref', '${{ github.ref }}'],
])('%s is shown as it was written', (source, shown) => {
  const template: Template = { kind: 'expression', source, at };
  expect(shownTemplate(template)).toBe(shown);
});

test('a script is named by its first line, which is not too long', () => {
  expect(nameOfScript('\n  first  \nsecond')).toBe('Run first');
  expect(nameOfScript('x'.repeat(1_000))).toHaveLength(255);
});
