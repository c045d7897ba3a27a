import { describe, expect, test } from 'vitest';
import { mustRead, problemsOf } from '../../../test/runner/support/workflow-reading.ts';

describe('called workflows', () => {
  const caller = (parts: string): string =>
    `on: push\njobs:\n  c:\n    uses: ./.github/workflows/b.yml\n${parts}`;
  const callee = (call: string, more = ''): Record<string, string> => ({
    './.github/workflows/b.yml': `on: {workflow_call: ${call}}\n${more}jobs: {x: {runs-on: x, steps: [{run: ls}]}}`,
  });

  test('are read with their caller', async () => {
    const workflow = await mustRead(
      caller('    secrets: inherit\n'),
      callee(
        '{inputs: {a: {type: number, default: 1}}, outputs: {o: {value: "${{ jobs.x.result }}"}}}',
      ),
    );
    const call = workflow.jobs.get('c');
    expect(call).toMatchObject({ kind: 'call', secrets: 'inherit' });
    expect(call?.kind === 'call' ? [...call.called.jobs.keys()] : []).toEqual(['x']);
  });

  test('inputs and secrets are checked', async () => {
    expect(
      await problemsOf(
        caller('    with: {A: x, z: 1}\n    secrets: {t: x}\n'),
        callee(
          '{inputs: {a: {type: number}, b: {type: string, required: true}}, secrets: {s: {required: true}}}',
        ),
      ),
    ).toEqual([
      '4:11 Input b is required, but not provided while calling.',
      "5:15 Unexpected value 'x'",
      '5:21 Invalid input, z is not defined in the referenced workflow.',
      '4:11 Secret s is required, but not provided while calling.',
      '6:18 Invalid secret, t is not defined in the referenced workflow.',
    ]);
  });

  test('what is wrong with them is told with their path', async () => {
    expect(await problemsOf(caller(''), callee('{input: 1}'))).toEqual([
      ".github/workflows/b.yml 1:22 Unexpected value 'input'",
    ]);
    expect(
      await problemsOf(caller(''), {
        './.github/workflows/b.yml': 'on: push\njobs: {x: {runs-on: x, steps: [{run: ls}]}}',
      }),
    ).toEqual([expect.stringContaining('has no workflow_call trigger')]);
    expect(await problemsOf(caller('').replace('./.github/workflows/b.yml', './b.yml'))).toEqual([
      expect.stringContaining('Expected format'),
    ]);
  });

  test('depth, cycles and the number of jobs are limited', async () => {
    const chain = (length: number): Record<string, string> =>
      Object.fromEntries(
        Array.from({ length }, (_, n) => [
          `./.github/workflows/${n === 0 ? 'b' : `l${n}`}.yml`,
          n === length - 1
            ? 'on: workflow_call\njobs: {x: {runs-on: x, steps: [{run: ls}]}}'
            : `on: workflow_call\njobs: {x: {uses: ./.github/workflows/l${n + 1}.yml}}`,
        ]),
      );
    expect(await problemsOf(caller(''), chain(4))).toEqual([]);
    expect(await problemsOf(caller(''), chain(5))).toEqual([
      '4:11 Nested reusable workflow depth exceeded 4.',
    ]);
    expect(
      await problemsOf(caller(''), {
        './.github/workflows/b.yml':
          'on: workflow_call\njobs: {x: {uses: ./.github/workflows/b.yml}}',
      }),
    ).toEqual([expect.stringContaining('calls itself')]);
    expect(await problemsOf(caller(''), callee('{}'), { jobsMax: 1 })).toEqual([
      '3:3 The workflow may not contain more than 1 jobs',
    ]);
  });

  test('may not ask for more than their caller has', async () => {
    const asks = callee('{}', 'permissions: {contents: write}\n');
    expect(await problemsOf(caller('    permissions: {contents: read}\n'), asks)).toEqual([
      "3:3 Error calling workflow './.github/workflows/b.yml'. The workflow './.github/workflows/b.yml' is requesting 'contents: write', but is only allowed 'contents: read'.",
    ]);
    expect(await problemsOf(caller('    permissions: write-all\n'), asks)).toEqual([]);
    expect(await problemsOf(caller(''), asks)).toEqual([]);
    expect(await problemsOf(caller(''), asks, { permissionsPolicy: 'limitedRead' })).toHaveLength(
      1,
    );
  });
});
