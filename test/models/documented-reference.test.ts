import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { modelOfText, testFiles } from '../../src/assertions/test-files.ts';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { formatGate } from '../../src/language/gate/print-gate-tree.ts';
import { inspectModel } from '../../src/model/namespace/namespace-model.ts';

/* What docs/models.md says of each rewrite, type rule and condition, asked of the code. */
const PAGE = readFileSync('docs/models.md', 'utf8');
const LIMITS = { depthMax: 256, readBudget: 10_000 };

/** The text between a heading and the next one of its rank or a higher one. */
function section(heading: string, page = PAGE): string {
  const [rank = ''] = heading.split(' ');
  const [, text = ''] = page.split(`\n${heading}\n`);
  return text.split(new RegExp(`^#{1,${rank.length}} `, 'm'))[0] ?? '';
}

function block(kind: string, text: string): string {
  return new RegExp(`^\`\`\`${kind}\n(.*?)^\`\`\``, 'ms').exec(text)?.[1] ?? '';
}

/** What does not hold of a file of assertions under a model in its readable form. */
function failures(gate: string, text: string): readonly string[] {
  const model = modelOfText(gate);
  const result = testFiles(
    [{ name: 'page', text }],
    () => model,
    LIMITS,
    () => 'page',
  );
  expect(result.assertions).toBeGreaterThan(0);
  return result.failures.map(
    ({ assertion, expected, actual }) => `${assertion}: ${expected}, not ${actual}`,
  );
}

describe.each(['this', 'computed', 'tuple_to_userset', 'union', 'intersection', 'exclusion'])(
  'the rewrite %s',
  (rewrite) => {
    const text = section(`### ${rewrite}`, section('## Rewrites'));

    test('is shown in both forms alike, and decides as it says', () => {
      const gate = block('gate', text);
      expect(formatGate(gate)).toBe(gate);
      const json: unknown = JSON.parse(block('json', text));
      expect(parseGate(gate).document).toEqual(json);
      expect(JSON.stringify(json)).toContain(`"${rewrite}"`);
      expect(inspectModel(JSON.stringify(json)).errors).toEqual([]);
      // Subjects of other namespaces need nothing of the model.
      expect(failures(gate, block('yaml', text))).toEqual([]);
    });
  },
);

test('the JSON form as a whole can be written', () => {
  const { model, errors, warnings } = inspectModel(block('json', section('## The JSON form')));
  expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
  expect(model?.conditions.has('in_office')).toBe(true);
});

test('built-in conditions decide as they are shown', () => {
  const gate = 'namespace doc {\n  relation viewer\n}\n';
  expect(failures(gate, block('yaml', section('## Conditions')))).toEqual([]);
});

/** Tuples of a cell, as files of assertions have them. */
function tuplesOf(cell: string): readonly string[] {
  const [, tuple = '', rest = ''] = /^`([^`]+)`(.*)$/.exec(cell) ?? [];
  const condition = /the condition `(\w+)`/.exec(rest)?.[1];
  if (rest === ' with or without it')
    return [`{ tuple: '${tuple}' }`, `{ tuple: '${tuple}', condition: not_after }`];
  if (rest === ' with an expiry')
    return [`{ tuple: '${tuple}', expires_at: 2030-01-01T00:00:00Z }`];
  if (condition !== undefined) return [`{ tuple: '${tuple}', condition: ${condition} }`];
  expect(rest).toBe('');
  return [`{ tuple: '${tuple}' }`];
}

test('type rules admit and refuse what the table says', () => {
  const rows = [
    ...section('### Each type rule by itself').matchAll(/^\| `(\[.*\])` \| (.*) \| (.*) \|$/gm),
  ];
  expect(rows.length).toBeGreaterThanOrEqual(8);
  for (const [, rule = '', admits = '', refuses = ''] of rows) {
    const gate = `namespace folder {\n  relation viewer: [user]\n}\nnamespace doc {\n  relation r: ${rule}\n}\n`;
    const write = (tuple: string): readonly string[] =>
      failures(gate, `tuples: [${tuple}]\ntests: [{ deny: ['doc:none#r@user:none'] }]`);
    for (const tuple of tuplesOf(admits)) expect(write(tuple), `${rule} ${tuple}`).toEqual([]);
    for (const tuple of tuplesOf(refuses)) expect(write(tuple), `${rule} ${tuple}`).not.toEqual([]);
  }
});

test.each(['docs/models.md', 'docs/first-model.md', 'docs/queries.md', 'docs/tuples.md'])(
  'links of %s lead somewhere',
  (path) => {
    const links = [
      ...readFileSync(path, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g),
    ];
    const broken = links.filter(([, file = '', anchor]) => {
      const target = file === '' ? path : join(dirname(path), file);
      if (!existsSync(target)) return true;
      if (anchor === undefined) return false;
      const anchors = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(
        ([, heading = '']) =>
          heading
            .toLowerCase()
            .replaceAll(/[^\w -]/g, '')
            .replaceAll(' ', '-'),
      );
      return !anchors.includes(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  },
);
