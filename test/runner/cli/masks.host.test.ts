/** What the logs of a run hide: the secrets that a job names, and no others. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDir, writeFiles } from '../../support/job-harness.ts';
import { callCli } from './cli-process.ts';

const SECRETS = 'ATTEMPT=42\nMODE=production\nToken=s3cret-token\nIN_ENV=of-the-env\n';
const WORKFLOW = `on: workflow_dispatch
env: { SHARED: "\${{ secrets.in_env }}" }
jobs:
  plain:
    runs-on: x
    outputs: { n: "\${{ steps.count.outputs.n }}" }
    steps:
      - { id: count, run: 'echo n=42 >> $GITHUB_OUTPUT; echo "attempt 42 in production: $SHARED"; echo x > x' }
      - { uses: actions/upload-artifact@v4, with: { name: report-42, path: x } }
  named:
    needs: plain
    runs-on: x
    env: { WORD: "\${{ secrets['TOKEN'] }}" }
    outputs: { made: "\${{ steps.make.outputs.it }}" }
    steps:
      - { id: make, run: 'echo "it=<$WORD>" >> $GITHUB_OUTPUT; echo "\${{ needs.plain.outputs.n }} times $WORD"' }
  computed:
    runs-on: x
    steps: [{ run: 'echo "[\${{ secrets[format(''MO{0}'', ''DE'')] }}] [attempt 42] [$SHARED]"' }]
  calls: { uses: ./.github/workflows/called.yml, secrets: { GIVEN: "for \${{ secrets.token }}" } }
  gets: { uses: ./.github/workflows/called.yml, secrets: inherit }
`;
const CALLED = `on: { workflow_call: { secrets: { GIVEN: { required: false } } } }
jobs:
  one:
    runs-on: x
    steps: [{ env: { G: "\${{ secrets.GIVEN }}" }, run: 'echo "{$G} {s3cret-token} {attempt 42} {of-the-env}"' }]
`;

test('a job hides the secrets that its text names; a lost output is said at its step', async () => {
  const project = temporaryDir();
  writeFiles(project, {
    '.github/workflows/w.yml': WORKFLOW,
    '.github/workflows/called.yml': CALLED,
  });
  writeFileSync(join(project, 'secrets'), SECRETS);
  const args = ['run', 'w', '--secret-file', join(project, 'secrets')];
  const { code, stdout } = await callCli(project, args);
  expect(code, stdout).toBe(0);
  for (const line of [
    'attempt 42 in production: ***',
    '42 times ***',
    '[***] [attempt ***] [***]',
    // What the caller makes of a secret, and the secret itself; of the caller's `env` nothing is given on.
    '{***} {***} {attempt 42} {of-the-env}',
    '{} {s3cret-token} {attempt 42} {of-the-env}',
  ]) {
    expect(stdout).toContain(`│ ${line}\n`);
  }
  expect(stdout).toMatch(/^ {2}report-42 /m);
  expect(stdout).toMatch(
    /^ {2}warning named .*Run echo.*: Output 'made' is left out, since it may hold a secret/m,
  );
});
