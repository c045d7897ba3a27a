import { describe, expect, test } from 'vitest';
import { resolveDispatchInputs } from '../language/dispatch-inputs.ts';
import { readWorkflow } from '../language/read-workflow.ts';
import type { CallJobDefinition, Workflow } from '../model/workflow.ts';
import { resolveCallInputs } from './call-inputs.ts';

const JOBS = 'jobs:\n  a:\n    runs-on: x\n    steps: [{run: x}]\n';

async function workflowFrom(text: string, called?: string): Promise<Workflow> {
  const { workflow, problems } = await readWorkflow(
    { text, fileName: 'a.yml', path: '.github/workflows/a.yml' },
    async () =>
      await Promise.resolve(
        called === undefined
          ? undefined
          : { text: called, fileName: 'b.yml', path: '.github/workflows/b.yml' },
      ),
  );
  expect(problems).toEqual([]);
  if (workflow === undefined) {
    throw new Error('no workflow');
  }
  return workflow;
}

describe('workflow_dispatch', () => {
  const text = `on:
  workflow_dispatch:
    inputs:
      Name: {required: true}
      level: {type: choice, options: [info, debug]}
      dry: {type: boolean}
      count: {type: number, default: 1.5}
      where: {type: environment}
${JOBS}`;

  test('typed and as texts', async () => {
    const workflow = await workflowFrom(text);
    expect(resolveDispatchInputs(workflow, { name: 'x', dry: 'true' }, [])).toEqual({
      typed: { Name: 'x', level: 'info', dry: true, count: 1.5, where: '' },
      texts: { Name: 'x', level: 'info', dry: 'true', count: '1.5', where: '' },
    });
  });

  test('says of each input what is wrong', async () => {
    const workflow = await workflowFrom(text);
    const given = { level: 'all', dry: 'yes', count: 'NaN', where: 'mars', other: '1' };
    expect(() => resolveDispatchInputs(workflow, given, ['earth'])).toThrow(
      expect.objectContaining({
        reason: 'INVALID_INPUTS',
        metadata: {
          Name: 'is required',
          level: 'must be one of info, debug',
          dry: 'must be true or false',
          count: 'must be a number',
          where: 'is not a known environment',
          other: 'is not an input of this workflow',
        },
      }) as Error,
    );
  });

  test('limits', async () => {
    const workflow = await workflowFrom(text);
    const many = Object.fromEntries(Array.from({ length: 26 }, (_, n) => [`i${n}`, '']));
    expect(() => resolveDispatchInputs(workflow, many, [])).toThrow('at most 25 inputs');
    expect(() => resolveDispatchInputs(workflow, { name: 'x'.repeat(65_532) }, [])).toThrow(
      'at most 65535 characters',
    );
  });

  test('any environment will do where none is known; names may be of Object', async () => {
    const workflow = await workflowFrom(
      `on: {workflow_dispatch: {inputs: {constructor: {}, where: {type: environment}}}}\n${JOBS}`,
    );
    const given = { constructor: 'x', where: 'mars' };
    expect(resolveDispatchInputs(workflow, given, []).typed).toEqual(given);
    // Environments have no case, as on GitHub.
    expect(resolveDispatchInputs(workflow, given, ['Mars']).typed).toEqual(given);
    expect(resolveDispatchInputs(workflow, {}, []).texts['constructor']).toBe('');
  });
});

describe('workflow_call', () => {
  const called = `on:
  workflow_call:
    inputs:
      text: {type: string, default: "\${{ github.actor }}"}
      flag: {type: boolean}
      size: {type: number, default: 3}
      must: {type: string, required: true}
${JOBS}`;
  const callerOf = async (parts: string): Promise<CallJobDefinition> => {
    const workflow = await workflowFrom(
      `on: push\njobs:\n  call:\n    uses: ./.github/workflows/b.yml\n    with: {${parts}}\n`,
      called,
    );
    const job = workflow.jobs.get('call');
    if (job?.kind !== 'call') {
      throw new Error('no call');
    }
    return job;
  };
  const scope = { contexts: { github: { actor: 'mona' }, needs: { a: { outputs: { n: '5' } } } } };

  test('defaults may be expressions, values are typed', async () => {
    const job = await callerOf('must: 5, flag: true');
    expect(await resolveCallInputs(job, scope, scope)).toEqual({
      text: 'mona',
      flag: true,
      size: 3,
      must: '5',
    });
  });

  test('an expression of another type is refused', async () => {
    const job = await callerOf('must: x, size: "${{ needs.a.outputs.n }}"');
    await expect(resolveCallInputs(job, scope, scope)).rejects.toMatchObject({
      reason: 'INVALID_INPUTS',
      metadata: { size: 'must be a number' },
    });
    const right = await callerOf('must: x, size: "${{ fromJSON(needs.a.outputs.n) }}"');
    expect(await resolveCallInputs(right, scope, scope)).toMatchObject({ size: 5 });
  });
});
