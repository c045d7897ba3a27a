import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { formatGate } from '../../src/language/gate/print-gate-tree.ts';
import { inspectModel } from '../../src/model/namespace/namespace-model.ts';

const TEXT = readFileSync(new URL('../../docs/models.md', import.meta.url), 'utf8');
const SECTION = TEXT.slice(
  TEXT.indexOf('\n## The readable language'),
  TEXT.indexOf('\n### Grammar'),
);

test('the example of the readable language is a model, laid out as the formatter does', () => {
  const [, example = ''] = /\n```\n(.*?\n)```\n/s.exec(SECTION) ?? [];
  expect(formatGate(example)).toBe(example);
  expect(inspectModel(parseGate(example).json)).toMatchObject({ errors: [], warnings: [] });
});

test('rows of its table say in JSON what they say as text', () => {
  const rows = [...SECTION.matchAll(/^\| `([^`]+)` \| `(\{[^`]*\})` \|/gm)].filter(
    ([, , json]) => json?.includes('...') === false,
  );
  expect(rows.length).toBeGreaterThanOrEqual(3);
  for (const [, text = '', json = ''] of rows) {
    const gate = `namespace doc {\n  relation r: ${text}\n}\n`;
    const { r } = parseGate(gate).document.namespaces['doc']?.relations ?? {};
    expect(r?.subjects?.[0] ?? r, text).toEqual(JSON.parse(json));
  }
});
