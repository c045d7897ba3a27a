import { describe, expect, test } from 'vitest';
import { mustRead, problemsOf, read } from '../../../test/runner/support/workflow-reading.ts';
import type { StepsJobDefinition, Workflow } from '../model/workflow.ts';

function stepsJob(workflow: Workflow, key: string): StepsJobDefinition {
  const job = workflow.jobs.get(key);
  if (job?.kind !== 'steps') {
    throw new Error(`no job ${key}`);
  }
  return job;
}

const job = (lines: string): string => {
  const all = /^steps:/m.test(lines) ? lines : `${lines}\nsteps: [{run: ls}]`;
  return `on: push\njobs:\n  a:\n    runs-on: x\n${all.replaceAll(/^(?=.)/gm, '    ')}\n`;
};
const steps = (lines: string): string => job(`steps:\n${lines.replaceAll(/^(?=.)/gm, '  ')}`);

describe('a workflow', () => {
  test('with everything', async () => {
    const workflow = await mustRead(`
name: CI
run-name: by \${{ github.actor }}
on:
  push: {branches: [main, 'v*'], paths-ignore: docs/**}
  schedule: [{cron: '0 5 * * mon-fri', timezone: Europe/Berlin}]
  workflow_dispatch:
    inputs:
      level: {type: choice, options: [a, b], default: b, required: true, description: How much}
      n: {type: number, default: 5}
env: {A: 3.10, B: true, C: }
defaults: {run: {shell: bash, working-directory: src}}
concurrency: {group: "g-\${{ github.ref }}", cancel-in-progress: true, queue: max}
permissions: {contents: read}
jobs:
  one:
    name: One
    runs-on: [self-hosted, linux]
    strategy: {fail-fast: false, max-parallel: 2, matrix: {v: [1, 2]}}
    timeout-minutes: 5
    outputs: {x: "\${{ steps.s.outputs.x }}"}
    steps:
      - {id: s, run: 'echo {1} "\${{ matrix.v }}"', if: "matrix.v == 1", env: {K: v}, shell: sh}
      - {uses: actions/checkout@v4, with: {fetch-depth: 0}, continue-on-error: true}
      - {uses: ./local}
      - {uses: $/own/action}
  two:
    needs: one
    if: \${{ always() }}
    runs-on: {group: g, labels: [x]}
    environment: {name: prod, url: https://x, deployment: false}
    steps: [{run: ls}]
`);
    expect(workflow).toMatchObject({
      name: 'CI',
      runName: { kind: 'expression', source: "format('by {0}', github.actor)" },
      permissions: { contents: 'read' },
      defaults: { shell: { value: 'bash' }, workingDirectory: { value: 'src' } },
      triggers: [
        { event: 'push', branches: ['main', 'v*'], pathsIgnore: ['docs/**'] },
        {
          event: 'schedule',
          crons: [{ cron: '0 5 * * mon-fri', timezone: 'Europe/Berlin' }],
        },
        { event: 'workflow_dispatch' },
      ],
    });
    expect(Object.fromEntries(workflow.dispatchInputs)).toEqual({
      level: {
        type: 'choice',
        options: ['a', 'b'],
        default: 'b',
        required: true,
        description: 'How much',
      },
      n: { type: 'number', default: '5', required: false },
    });
    const env = workflow.env?.kind === 'mapping' ? workflow.env.entries : [];
    expect(env.map(({ value }) => value)).toMatchObject([
      { value: '3.1' },
      { value: 'true' },
      { value: '' },
    ]);
    const one = stepsJob(workflow, 'one');
    expect(one.steps).toMatchObject([
      {
        kind: 'run',
        id: 's',
        run: { source: `format('echo {{1}} "{0}"', matrix.v)` },
        if: { source: 'matrix.v == 1' },
      },
      { kind: 'uses', uses: 'actions/checkout@v4', continueOnError: { value: true } },
      { kind: 'uses', uses: './local' },
      { kind: 'uses', uses: '$/own/action' },
    ]);
    expect(stepsJob(workflow, 'two')).toMatchObject({
      needs: ['one'],
      if: { source: 'always()' },
    });
  });

  test('`on` stays a key, anchors work, merge keys do not', async () => {
    const { document, problems } = await read(
      'on: push\nenv: &e {a: b}\njobs:\n  a: {runs-on: x, env: *e, steps: [{run: ls}]}\n',
    );
    expect(problems).toEqual([]);
    expect(document).toEqual({
      on: 'push',
      env: { a: 'b' },
      jobs: { a: { 'runs-on': 'x', env: { a: 'b' }, steps: [{ run: 'ls' }] } },
    });
    expect(
      await problemsOf('on: push\n<<: {a: b}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}'),
    ).toEqual([
      "2:1 Merge keys ('<<') are not supported: write the entries out, or take the whole mapping by an alias",
    ]);
  });

  test('a merge key is refused where it stands, the same in quotes is a name', async () => {
    const fileWith = (key: string): string =>
      `on: push\nenv: &e {a: b}\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: ls\n        env:\n          ${key}: *e\n          X: y\n`;
    expect(await problemsOf(fileWith('<<'))).toEqual([
      expect.stringMatching(/^9:11 Merge keys \('<<'\) are not supported/),
    ]);
    expect(await problemsOf(fileWith('<<').replace('<<: *e', "'<<': z"))).toEqual([]);
  });

  test('numbers to another base have 32 bits and a sign', async () => {
    const { document } = await read(
      'on: push\nenv: {a: 0xFFFFFFFF, b: 0o17, c: !!int 0x80000000}\n',
    );
    expect(document).toMatchObject({ env: { a: -1, b: 15, c: -2_147_483_648 } });
    expect(await problemsOf('on: push\nenv: {a: 0x1FFFFFFFF}\n')).toEqual([
      "2:10 The value '0x1FFFFFFFF' is more than 32 bits",
    ]);
  });

  test('parallel steps', async () => {
    const workflow = await mustRead(
      steps(`- {id: a, run: x, background: true}
- {id: b, uses: ./b, background: true}
- wait: a
- wait: [a, b]
- {wait-all: , name: all}
- cancel: b
- parallel: [{run: y}, {uses: ./z}]`),
    );
    expect(stepsJob(workflow, 'a').steps).toMatchObject([
      { kind: 'run', background: true },
      { kind: 'uses', background: true },
      { kind: 'wait', ids: ['a'] },
      { kind: 'wait', ids: ['a', 'b'] },
      { kind: 'wait', name: { value: 'all' } },
      { kind: 'cancel', target: 'b' },
      { kind: 'parallel', steps: [{ kind: 'run' }, { kind: 'uses' }] },
    ]);
  });
});

describe('problems', () => {
  test.each<[string, string, readonly string[]]>([
    ['no YAML', 'on: [push', ['1:10 Flow sequence in block collection must be sufficiently']],
    ['two documents', 'on: push\n---\na: b', ['2:1 The file holds more than one document']],
    ['empty', '', ["1:1 Unexpected value ''"]],
    [
      'unknown keys',
      'on: push\nonn: 1\njobs: {a: {runs-on: x, stepps: []}}',
      ["2:1 Unexpected value 'onn'", "3:24 Unexpected value 'stepps'"],
    ],
    [
      'missing keys',
      'name: x',
      ['1:1 Required property is missing: on', '1:1 Required property is missing: jobs'],
    ],
    [
      'unknown event',
      'on: [pusch]\njobs: {a: {runs-on: x, steps: [{run: ls}]}}',
      ["1:6 Unexpected value 'pusch'"],
    ],
    [
      'unknown type',
      'on: {issues: {types: [opend]}}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}',
      ["1:23 Unexpected value 'opend'"],
    ],
    [
      'both filters',
      'on: {push: {tags: [a], tags-ignore: [b]}}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}',
      ["1:24 You may only define one of 'tags' and 'tags-ignore'"],
    ],
    [
      'bad pattern',
      "on: {push: {branches: ['x[']}}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}",
      ["1:24 Invalid pattern 'x['"],
    ],
    [
      'bad cron',
      "on: {schedule: [{cron: '* * *'}]}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}",
      ['1:24 Invalid cron expression'],
    ],
    [
      'bad zone',
      "on: {schedule: [{cron: '0 * * * *', timezone: Mars}]}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}",
      ["1:47 Unknown time zone 'Mars'"],
    ],
    [
      'permissions',
      'on: push\npermissions: {contents: writ, x: read}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}',
      ["2:25 Unexpected value 'writ'", "2:31 Unexpected value 'x'"],
    ],
    ['run and uses', steps('- {run: x, uses: ./y}'), ["6:18 Unexpected value 'uses'"]],
    ['neither', steps('- {name: x}'), ["6:9 There's not enough info to determine"]],
    ['key twice', steps('- {run: x, RUN: y}'), ["6:18 'RUN' is already defined"]],
    ['wrong type', job('timeout-minutes: soon'), ["5:22 Unexpected value 'soon'"]],
    ['wrong type for continue', job("continue-on-error: 'true'"), ["5:24 Unexpected value 'true'"]],
    [
      'job id',
      'on: push\njobs: {a b: {runs-on: x, steps: [{run: ls}]}, __c: {runs-on: x, steps: [{run: ls}]}}',
      [
        "2:8 The identifier 'a b' is invalid.",
        "2:47 The identifier '__c' is invalid. IDs starting with '__' are reserved.",
      ],
    ],
    [
      'step id',
      steps('- {run: x, id: a}\n- {run: x, id: A}'),
      ["7:22 The identifier 'A' may not be used more than once"],
    ],
    ['uses', steps('- {uses: checkout}'), ['6:16 Expected format {org}/{repo}[/path]@ref.']],
    [
      'empty vector',
      job('strategy: {matrix: {os: []}}'),
      ["5:29 Matrix vector 'os' does not contain any values"],
    ],
    ['bad include', job('strategy: {matrix: {include: [1]}}'), ["5:35 Unexpected value '1'"]],
    ['queue', job('concurrency: {group: a, queue: many}'), ["5:36 Unexpected value 'many'"]],
    ['no job', 'on: push\njobs: {}', ['2:7 The workflow must contain at least one job']],
    [
      'no steps',
      `on: push
jobs:
  good: {runs-on: x, steps: [{run: ls}]}
  bare: {runs-on: x}
  none:
    steps: []
    runs-on: x
`,
      ["4:3 The job 'bare' has nothing to do", "5:3 The job 'none' has nothing to do"],
    ],
    ['steps are null', job('steps:'), ["5:11 Unexpected value ''"]],
    [
      'neither steps nor uses, nor where to run',
      'on: push\njobs: {a: {}, b: , c: {if: x}}',
      [
        "2:11 There's not enough info to determine",
        "2:18 Unexpected value ''",
        "2:23 There's not enough info to determine",
      ],
    ],
    [
      'both steps and uses',
      'on: push\njobs: {a: {uses: ./x, steps: []}, b: {steps: [], uses: ./x, runs-on: x}}',
      ["2:23 Unexpected value 'steps'", "2:50 Unexpected value 'uses'"],
    ],
    [
      'wait',
      steps('- {id: b, wait: b}\n- {wait: later}\n- {id: later, run: x}\n- {wait-all: false}'),
      [
        "6:23 Step 'b' cannot reference itself",
        "7:16 Step references unknown step ID 'later'",
        "9:20 The value of 'wait-all' must be true",
      ],
    ],
    ['nothing in parallel', steps('- parallel: []'), []],
    [
      'parallel',
      steps('- parallel: [{run: x, background: true}, {wait-all: }, {parallel: []}]'),
      [
        "6:9 'background' is not allowed inside a parallel block.",
        "6:9 'wait-all' is not allowed inside a parallel block.",
        "6:9 Nested 'parallel' blocks are not allowed.",
      ],
    ],
  ])('%s', async (_name, text, wanted) => {
    const found = await problemsOf(text);
    expect(found).toEqual(wanted.map((start) => expect.stringContaining(start) as unknown));
  });

  test('needs', async () => {
    expect(
      await problemsOf(`on: push
jobs:
  a: {runs-on: x, steps: [{run: ls}]}
  b: {runs-on: x, needs: [a, c], steps: [{run: ls}]}
  c: {runs-on: x, needs: [b], steps: [{run: ls}]}
  d: {runs-on: x, needs: nope, steps: [{run: ls}]}
  e: {runs-on: x, needs: A, steps: [{run: ls}]}
`),
    ).toEqual([
      "4:30 Job 'b' depends on job 'c' which creates a cycle in the dependency graph.",
      "5:27 Job 'c' depends on job 'b' which creates a cycle in the dependency graph.",
      "6:26 Job 'd' depends on unknown job 'nope'.",
    ]);
    expect(
      await problemsOf('on: push\njobs:\n  a: {runs-on: x, needs: a, steps: [{run: ls}]}'),
    ).toEqual(['3:3 The workflow must contain at least one job with no dependencies.']);
  });

  test.each([
    ['run-name: ${{ secrets.x }}', "Unrecognized named-value: 'secrets'"],
    ['env: {a: "${{ env.x }}"}', "Unrecognized named-value: 'env'"],
    ['concurrency: ${{ secrets.x }}', "Unrecognized named-value: 'secrets'"],
    ['name: ${{ github.x }}', 'A template expression is not allowed in this context'],
    ['run-name: ${{ hashFiles(1) }}', "Unrecognized function: 'hashFiles'"],
    ['run-name: ${{ always() }}', "Unrecognized function: 'always'"],
    ['run-name: ${{ github.', 'The expression is not closed.'],
    ['run-name: a ${{ }}', 'An expression was expected'],
    ['run-name: a ${{ insert }}', "The directive 'insert' is not allowed"],
    ['run-name: ${{ join() }}', "Too few parameters supplied: 'join'"],
  ])('%s', async (line, message) => {
    const found = await problemsOf(
      `on: push\n${line}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}`,
    );
    expect(found).toContainEqual(expect.stringContaining(message));
  });

  test.each([
    ['if: secrets.x', false],
    ['if: steps.x', false],
    ["if: success('b') && needs.b.result == 'success'", true],
    ['if: hashFiles()', false],
    ['environment: "${{ matrix.x }}"', true],
    ['environment: {name: a, url: "${{ steps.a.outputs.url }}"}', true],
    ['environment: {name: a, url: "${{ secrets.url }}"}', false],
    ['outputs: {a: "${{ secrets.a }}"}', true],
    ['outputs: {a: "${{ hashFiles(1) }}"}', false],
    ['timeout-minutes: "${{ fromJSON(needs.b.outputs.n) }}"', true],
    ['strategy: {matrix: {a: "${{ needs.b }}"}}', true],
    ['strategy: {matrix: {a: ["${{ matrix.b }}"]}}', false],
    ['strategy: {matrix: {"${{ insert }}": "${{ github.event }}"}}', true],
    ['defaults: {run: {shell: "${{ env.S }}"}}', true],
    ['steps: [{run: "${{ hashFiles(1) }} ${{ secrets.x }}"}]', true],
    ['steps: [{run: "${{ always() }}"}]', false],
    ['steps: [{run: x, if: "${{ hashFiles(1) && cancelled() }}"}]', true],
    ['steps: [{run: x, if: "success(1)"}]', false],
    ['steps: [{run: x, shell: "${{ env.x }}"}]', false],
    ['steps: [{run: x, working-directory: "${{ env.x }}"}]', true],
  ])('where things are available: %s is %s', async (line, isValid) => {
    expect((await problemsOf(job(line))).length === 0).toBe(isValid);
  });

  test('dispatch inputs', async () => {
    const inputs = (lines: string): string =>
      `on:\n  workflow_dispatch:\n    inputs:\n${lines.replaceAll(/^/gm, '      ')}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}`;
    expect(
      await problemsOf(
        inputs(`a: {type: choice}
b: {type: choice, options: [x], default: y}
c: {type: string, options: [x]}
d: {type: boolean, default: maybe}
e: {type: number, default: many}
f: {type: date}`),
      ),
    ).toEqual(["9:17 Unexpected value 'date'"]);
    expect(
      await problemsOf(
        inputs(`a: {type: choice}
b: {type: choice, options: [x], default: y}
c: {type: string, options: [x]}
d: {type: boolean, default: maybe}
e: {type: number, default: many}`),
      ),
    ).toEqual([
      "4:10 Missing 'options' for choice input",
      "5:48 Unexpected value 'y'",
      "6:10 Input type is not 'choice', but 'options' is defined",
      "7:35 Unexpected value 'maybe'",
      "8:34 Unexpected value 'many'",
    ]);
    const many = Array.from({ length: 26 }, (_, n) => `i${n}: {}`).join('\n');
    expect(await problemsOf(inputs(many))).toEqual(['4:7 The maximum number of inputs is 25']);
  });

  test.each([
    ['brackets', '['.repeat(500_000)],
    ['braces', '{a: '.repeat(100_000)],
    ['dashes', '- '.repeat(250_000)],
    ['questions', '? - '.repeat(100_000)],
    ['indentation', Array.from({ length: 1_000 }, (_, n) => `${' '.repeat(n)}a:`).join('\n')],
  ])('nesting by %s, which once ended the process', async (_name, text) => {
    expect(await problemsOf(text)).toEqual([
      expect.stringContaining('Maximum object depth exceeded'),
    ]);
  });

  test('limits', async () => {
    const deep = `on: push\nenv: ${'['.repeat(70)}${']'.repeat(70)}\njobs: {a: {runs-on: x, steps: [{run: ls}]}}`;
    expect(await problemsOf(deep)).toEqual([expect.stringContaining('Maximum object depth')]);
    expect(await problemsOf(`#${'x'.repeat(512 * 1024)}`)).toEqual([
      '1:1 The maximum file size of 524288 characters has been exceeded',
    ]);
    const bomb = `a: &a [${'x,'.repeat(9)}]\n${'bcdefgh'
      .split('')
      .map((c, n) => `${c}: &${c} [${`*${'abcdefgh'.charAt(n)},`.repeat(9)}]`)
      .join('\n')}`;
    expect(await problemsOf(bomb)).toEqual([expect.stringContaining('aliases expanded')]);
    const wrong = `on: push\njobs:\n${Array.from({ length: 200 }, (_, n) => `  j${n}: {}\n`).join('')}`;
    const found = await problemsOf(wrong);
    expect(found).toHaveLength(101);
    expect(found.at(-1)).toContain('More than 100 problems');
  });
});
