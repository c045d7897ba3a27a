import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeWorkspace, startRunner } from '../../support/runner.ts';
import { runCli } from './cli-process.ts';

const SHOW = `on: workflow_dispatch
env: { B: the workflow's }
jobs:
  show:
    runs-on: x
    steps: [{ run: 'echo "$A,$B,$C,$D,$SEEN,$GITHUB_JOB"', env: { SEEN: '\${{ env.A }}' } }]
`;
const ARGS = ['--env', 'A=1', '--env', 'B=2', '--env', 'C', '--env', 'GITHUB_JOB=no'];
const SEEN = "show │ 1,the workflow's,of the shell,of the file,1,show\n";

function project(): string {
  const dir = makeWorkspace({ '.github/workflows/show.yml': SHOW });
  writeFileSync(join(dir, 'vars.env'), '# two\nD="of the file"\nexport A=0\n');
  return dir;
}

test(
  'a run gets them below its own env, in this process and another one',
  { timeout: 120_000 },
  async () => {
    const workspace = project();
    const args = ['run', 'show', '--env-file', 'vars.env', ...ARGS];
    const env = { C: 'of the shell' };
    const own = await runCli(workspace, args, { env });
    expect(own.stdout, own.stderr).toContain(SEEN);
    const { url } = await startRunner(workspace, {});
    const far = await runCli(workspace, args, { env });
    expect(far.stdout, far.stderr).toContain(SEEN);
    // A rerun has them, too.
    const again = await runCli(workspace, ['rerun'], {});
    expect(again.stdout, again.stderr).toContain(SEEN);
    for (const wrong of [[], 'A=1', { '1A': 'x' }, { A: 1 }, { A: 'x\0' }]) {
      const answer = await fetch(`${url}/api/runs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ workflow: 'show', env: wrong }),
      });
      expect([answer.status, await answer.json()]).toMatchObject([
        400,
        { error: { code: 'invalid_request', details: { field: 'env' } } },
      ]);
    }
  },
);

test.each([
  [['--env', '1A=x'], "'1A' is no name of a variable"],
  [['--env', 'NOT_SET_ANYWHERE'], '--env NOT_SET_ANYWHERE: must be NAME=VALUE'],
  [['--env', '=x'], '--env =x: must be NAME=VALUE'],
  [['--env-file', 'nothing.env'], '--env-file nothing.env: cannot be read (ENOENT)'],
])('what is wrong is 2: %j', { timeout: 120_000 }, async (args, text) => {
  const { code, stderr } = await runCli(project(), ['run', 'show', ...args]);
  expect(code).toBe(2);
  expect(stderr).toContain(text);
});
