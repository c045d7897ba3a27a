import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { evaluateTemplate } from '../../../src/runner/evaluation/evaluate.ts';
import type { JsonValue } from '../../../src/shared/json.ts';

type Row = {
  readonly table: string;
  readonly expression: string;
  readonly expected?: JsonValue;
  readonly error?: boolean;
};

const rows = JSON.parse(
  readFileSync(new URL('./data/act/expressions.json', import.meta.url), 'utf8'),
) as readonly Row[];

const job = { outputs: { 'output-name': 'value' }, result: 'success' };
/** What the tables assume. */
const contexts = {
  github: {
    action: 'push',
    event: {
      commits: [{ author: { username: 'someone' } }, { author: { username: 'someone-else' } }],
    },
  },
  env: { TEST: 'value' },
  job: { status: 'success' },
  steps: {
    'step-id': { outputs: { name: 'value' }, outcome: 'success', conclusion: 'success' },
    'step-id2': { outputs: {}, outcome: 'failure', conclusion: 'skipped' },
  },
  runner: { os: 'Linux', temp: '/tmp', tool_cache: '/opt/hostedtoolcache' },
  secrets: { name: 'value' },
  vars: { name: 'value' },
  strategy: { 'fail-fast': true },
  matrix: { os: 'Linux' },
  needs: { 'job-id': job, 'another-job-id': job },
  inputs: { name: 'value' },
};

/** Where act differs from GitHub's own package, with the reason. */
const KNOWN_DIFFERENCES: ReadonlyMap<string, string> = new Map([
  ["fromJSON('[0,1]')[1.1]", 'an index is rounded down'],
  ['(github.event.commits.*.author.username)[0]', 'brackets do not end a filter'],
  [
    'github.event.commits[0].author.username1 != github.event.commits[1].author.username2',
    'two nulls are equal',
  ],
  ['secrets != env', 'objects can be compared; each equals only itself'],
  ['github.event.pull_request.labels.*.name', 'a filter of null is an empty array'],
  [
    `contains(fromJSON('[{ "first": { "result": "success" }},{ "second": { "result": "success" }}]').first.result, 'success')`,
    'an array has no properties',
  ],
]);

test('act’s tables but the known differences', async () => {
  const differing: string[] = [];
  for (const row of rows) {
    // One table has another environment.
    const env = row.table === 'FunctionToJSON' ? { key: 'value' } : contexts.env;
    const outcome = await outcomeOf(row.expression, { ...contexts, env });
    const wanted = row.error === true ? 'error' : JSON.stringify(row.expected);
    if (outcome !== wanted) {
      differing.push(row.expression);
    }
  }
  process.stdout.write(`act's expressions: ${rows.length - differing.length} of ${rows.length}\n`);
  expect(differing).toEqual([...KNOWN_DIFFERENCES.keys()]);
});

async function outcomeOf(
  source: string,
  found: Readonly<Record<string, JsonValue>>,
): Promise<string> {
  const at = { line: 1, column: 1 };
  return await evaluateTemplate({ kind: 'expression', source, at }, { contexts: found }).then(
    (value) => (Number.isNaN(value) ? '"NaN!"' : JSON.stringify(value)),
    () => 'error',
  );
}
