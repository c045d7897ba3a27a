import { expect, test } from 'vitest';
import { readAction } from './read-action.ts';

const problemsOf = (text: string): readonly string[] =>
  readAction(text, 'x/action.yml').problems.map(
    ({ file, line, column, message }) => `${file ?? ''} ${line}:${column} ${message}`,
  );

test('a composite action', () => {
  const { action, problems } = readAction(
    `name: Greet
description: Says hello
author: mona
branding: {icon: heart, color: red}
inputs:
  who: {description: to whom, required: true, default: "\${{ github.actor }}"}
  old: {deprecationMessage: gone}
  bare:
outputs:
  id: {description: x, value: "\${{ steps.s.outputs.id }}"}
runs:
  using: composite
  steps:
    - {id: s, run: "echo \${{ inputs.who }}", shell: bash, if: "always() && inputs.who"}
    - {uses: ./other, with: {a: "\${{ hashFiles('x') }}"}}
`,
    'action.yml',
  );
  expect(problems).toEqual([]);
  expect(action).toMatchObject({
    name: 'Greet',
    runs: {
      kind: 'composite',
      steps: [
        { kind: 'run', id: 's', if: { source: 'always() && inputs.who' } },
        { kind: 'uses', uses: './other' },
      ],
    },
  });
  expect([...(action?.inputs ?? [])]).toMatchObject([
    ['who', { required: true, default: { kind: 'expression', source: 'github.actor' } }],
    ['old', { required: false, deprecationMessage: 'gone' }],
    ['bare', { required: false }],
  ]);
  expect(action?.outputs.get('id')).toMatchObject({ source: 'steps.s.outputs.id' });
});

test('a JavaScript action', () => {
  const text = (using: string): string =>
    `name: x\nruns: {using: ${using}, main: m.js, pre: p.js, pre-if: runner.os, post: q.js, post-if: success()}`;
  expect(readAction(text('node20'), 'action.yml').action?.runs).toMatchObject({
    kind: 'javascript',
    using: 'node20',
    main: 'm.js',
    pre: 'p.js',
    preIf: { source: 'always() && (runner.os)' },
    post: 'q.js',
    postIf: { source: 'success()' },
  });
  expect(readAction(text('Node24'), 'action.yml').action?.runs).toMatchObject({ using: 'node24' });
});

test('a Docker action', () => {
  const { action } = readAction(
    `name: x\nruns: {using: docker, image: Dockerfile, args: ["\${{ inputs.a }}"], env: {A: b}, entrypoint: /e}`,
    'action.yml',
  );
  expect(action?.runs).toMatchObject({
    kind: 'docker',
    image: 'Dockerfile',
    entrypoint: '/e',
    args: { kind: 'sequence', items: [{ source: 'inputs.a' }] },
  });
});

test('a composite action may have no step, as on GitHub', () => {
  const { action, problems } = readAction('runs: {using: composite, steps: []}', 'a/action.yml');
  expect([action?.runs, problems]).toEqual([{ kind: 'composite', steps: [] }, []]);
});

test.each([
  ['name: x', '1:1 Required property is missing: runs'],
  ['runs: {using: python, main: x}', "1:15 Unexpected value 'python'"],
  ['runs: {using: node20}', '1:7 '],
  ['runs: {using: composite}', '1:7 '],
  ['runs: {using: composite, steps: }', "1:33 Unexpected value ''"],
  ['runs: {using: composite, steps: [{run: x}]}', '1:34 Required property is missing: shell'],
  ['runs: {using: composite, steps: [{uses: x}]}', '1:41 Expected format'],
  [
    'runs: {using: composite, steps: [{run: "${{ secrets.x }}", shell: sh}]}',
    "1:40 Unrecognized named-value: 'secrets'",
  ],
  ['inputs: {a: {default: "${{ inputs.b }}"}}\nruns: {using: node20, main: x}', '1:23 '],
  ['runs: {using: composite, steps: [{run: x, shell: sh, background: true}]}', '1:54 '],
  ['runs: [', '1:8 '],
])('%s', (text, start) => {
  expect(problemsOf(text).some((problem) => problem.startsWith(`x/action.yml ${start}`))).toBe(
    true,
  );
});
