import { expect, test } from 'vitest';
import { mustRead } from '../../../test/runner/support/workflow-reading.ts';
import type { StepsJobDefinition, Workflow } from '../model/workflow.ts';
import { readWorkflow } from './read-workflow.ts';
import { scriptInjectionWarnings, secretsOfRun, secretsReferencedBy } from './references.ts';

async function jobFrom(
  lines: string,
  env = '{}',
): Promise<{ workflow: Workflow; job: StepsJobDefinition }> {
  const text = `on: push\nenv: ${env}\njobs:\n  a:\n    runs-on: x\n    steps:\n${lines}`;
  const { workflow, problems } = await readWorkflow(
    { text, fileName: 'a.yml', path: 'a.yml' },
    async () => await Promise.resolve(undefined),
  );
  expect(problems).toEqual([]);
  const job = workflow?.jobs.get('a');
  if (workflow === undefined || job?.kind !== 'steps') {
    throw new Error('no job');
  }
  return { workflow, job };
}

test.each([
  ['- run: echo ${{ secrets.b }} ${{ secrets.A }}', ['A', 'B']],
  ["- run: echo ${{ secrets['c'] }}", ['C']],
  ['- run: x', []],
  ["- run: x\n        if: contains(env.x, 'secrets.y')", []],
  ['- {run: x, env: {T: "${{ secrets.t || github.token }}"}}', ['GITHUB_TOKEN', 'T']],
  ['- parallel: [{run: "${{ secrets.p }}"}]', ['P']],
  ['- {uses: ./x, with: {a: "${{ format(secrets.f) }}"}}', ['F']],
  ['- run: ${{ toJSON(secrets) }}', undefined],
  ['- run: ${{ secrets[github.ref] }}', undefined],
  ['- run: ${{ join(secrets.*) }}', undefined],
  ['- run: ${{ (secrets).a }}', undefined],
  ['- {uses: ./x, with: {a: "${{ secrets }}"}}', undefined],
])('secrets of %s', async (step, wanted) => {
  const { workflow, job } = await jobFrom(`      ${step}\n`);
  expect(secretsReferencedBy(workflow, job)).toEqual(wanted);
});

test("secrets of the workflow's env count for each job", async () => {
  const { workflow, job } = await jobFrom('      - run: x\n', '{A: "${{ secrets.w }}"}');
  expect(secretsReferencedBy(workflow, job)).toEqual(['W']);
});

test('secrets of a run are those of all its jobs, of called ones too', async () => {
  const uses = './.github/workflows/c.yml';
  const called = {
    [uses]:
      'on: { workflow_call: { secrets: { far: { required: false } } } }\njobs: { x: { runs-on: x, steps: [{ run: "${{ secrets.far }}" }] } }\n',
  };
  const own = '  a: { runs-on: x, steps: [{ run: "${{ secrets.NEAR }}" }] }\n';
  const call = (secrets: string): string => `  b: { uses: ${uses}, secrets: ${secrets} }\n`;
  for (const [jobs, wanted] of [
    [own, ['NEAR']],
    [own + call('inherit'), ['FAR', 'NEAR']],
    [call('{ far: "${{ secrets.given }}" }'), ['FAR', 'GIVEN']],
    [own + call('{ far: "${{ toJSON(secrets) }}" }'), undefined],
  ] as const) {
    expect(secretsOfRun(await mustRead(`on: push\njobs:\n${jobs}`, called))).toEqual(wanted);
  }
});

test.each([
  ['- run: echo ${{ github.event.issue.title }}', ['github.event.issue.title']],
  ['- run: echo ${{ github.head_ref }} ${{ github.HEAD_REF }}', ['github.head_ref']],
  ['- run: echo ${{ inputs.name }}', ['inputs.name']],
  ["- run: echo ${{ github['event']['comment'].body }}", ['github.event.comment.body']],
  ['- run: echo ${{ github.event.commits[0].message }}', ['github.event.commits.*.message']],
  ['- run: echo ${{ toJSON(github.event) }}', ['github.event']],
  ['- run: echo ${{ github.sha }} ${{ github.event.number }} ${{ env.x }}', []],
  ['- {run: echo $T, env: {T: "${{ github.event.issue.title }}"}}', []],
  ['- {uses: actions/github-script@v7, with: {script: "x(${{ inputs.a }})"}}', ['inputs.a']],
  ['- {uses: ./x, with: {script: "${{ inputs.a }}"}}', []],
  ["- run: echo ${{ inputs.a == 'x' }} ${{ contains(github.head_ref, 'x') }} ${{ !inputs.b }}", []],
  ["- run: echo ${{ inputs.a && 'x' }} ${{ inputs.b || 'x' }}", ['inputs.b']],
  ["- run: echo ${{ case(inputs.a == 'x', inputs.b, 'x') }}", ['inputs.b']],
  [
    '- run: echo ${{ matrix[inputs.a] }} ${{ fromJSON(inputs.b).c }} ${{ hashFiles(inputs.d) }}',
    ['inputs.b'],
  ],
  ['- run: echo ${{ join(github.event.commits.*.message) }}', ['github.event.commits.*.message']],
])('injection by %s', async (step, paths) => {
  const { workflow, job } = await jobFrom(`      ${step}\n`);
  const warnings = scriptInjectionWarnings(workflow, job);
  expect(warnings).toHaveLength(paths.length);
  for (const [index, path] of paths.entries()) {
    expect(warnings[index]).toContain(`\${{ ${path} }}`);
    expect(warnings[index]).toContain('Line 7');
  }
});

test('inputs that are booleans or numbers are harmless, unless another start gives them as a text', async () => {
  const names = ['flag', 'count', 'both', 'text', 'kind', 'undeclared'];
  const warned = async (call: string): Promise<readonly (string | undefined)[]> => {
    const workflow = await mustRead(`
on:
  workflow_dispatch:
    inputs:
      Flag: { type: boolean }
      count: { type: number }
      both: { type: number }
      kind: { type: choice, options: [a, b] }
${call}
jobs:
  a:
    runs-on: x
    steps:
      - run: ${names.map((name) => `\${{ inputs.${name} }}`).join(' ')}
      - run: ${names.map((name) => `\${{ github.event.inputs.${name} }}`).join(' ')}
`);
    const job = workflow.jobs.get('a') as StepsJobDefinition;
    return scriptInjectionWarnings(workflow, job).map((text) => /\{\{ (\S+)/.exec(text)?.[1]);
  };
  const paths = (root: string, some: readonly string[]): readonly string[] =>
    some.map((name) => `${root}.${name}`);
  const texts = ['text', 'kind', 'undeclared'];
  expect(await warned('')).toEqual([
    ...paths('inputs', texts),
    ...paths('github.event.inputs', texts),
  ]);
  // The event is then the caller's, which may have given a text by that name.
  const inputs = '{ flag: { type: boolean }, both: { type: string }, text: { type: string } }';
  expect(await warned(`  workflow_call: { inputs: ${inputs} }`)).toEqual([
    ...paths('inputs', ['both', ...texts]),
    ...paths('github.event.inputs', names),
  ]);
});
