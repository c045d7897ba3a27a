/** A step that looks for the runner's own secrets wherever its user may look. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { WorkflowRun } from '../../../src/runner/model/run.ts';
import { startProcess } from '../../support/runner-process.ts';
import { makeWorkspace, runEnded, startRun } from '../../support/runner.ts';

/** Nobody. Root may read everything, so that a test as root has to become somebody else. */
const OTHER_UID = 65_534;
const isRoot = process.getuid?.() === 0;
const IDENTITY = 'AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX';
const MADE_UP = `made-up-${'t'.repeat(40)}`;
const SECRETS = {
  RUNNER_API_TOKEN: 'pl4nted-api-token',
  RUNNER_HOST_TOKEN: 'pl4nted-host-token',
  RUNNER_WEBHOOK_SECRET: 'pl4nted-webhook',
  RUNNER_SECRETS_KEY: 'pl4nted passphrase',
} as const;
const VALUES = [...Object.values(SECRETS), IDENTITY];

/** Everything of every process that may be read, to files, as a log would hide what is found. */
const LOOK = `name: look
on: workflow_dispatch
jobs:
  one:
    runs-on: x
    steps:
      - run: |
          set +e
          CONTROL=visible-to-all sleep 100 &
          for pid in $(ls /proc | grep '^[0-9]*$'); do
            for file in environ cmdline maps auxv; do cat /proc/$pid/$file; done
            ls -l /proc/$pid/fd/ /proc/$pid/cwd
            for fd in /proc/$pid/fd/*; do [ -f "$fd" ] && head -c 100000 "$fd"; done
          done > "$LOOT/loot" 2> "$LOOT/errors" < /dev/null
          kill $!
          cat /proc/self/oom_score_adj > "$LOOT/score"
          env > "$LOOT/env"
      - { uses: ./action }
      - { uses: actions/setup-node@v4 }
env: { LOOT: 'LOOT_FOLDER' }
`;
const PRINT = `name: print
on: workflow_dispatch
jobs:
  one: { runs-on: x, steps: [{ run: 'cat FILES; cat FILES | base64 -w0' }] }
`;

/** Whether another user may read the code. */
function isReachable(uid: number | undefined): boolean {
  if (uid === undefined) return true;
  for (let at = process.cwd(); ; at = dirname(at)) {
    if ((statSync(at).mode & 0o005) !== 0o005) return false;
    if (at === dirname(at)) return true;
  }
}

const uid = isRoot ? OTHER_UID : undefined;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'own-secrets-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function giveAway(...paths: readonly string[]): void {
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${uid}`, ...paths]);
}

async function runOf(url: string, workflow: string, token: string): Promise<WorkflowRun> {
  const headers = { authorization: `Bearer ${token}` };
  const id = await startRun(url, workflow, {}, headers);
  return (await runEnded(url, id, headers)) as unknown as WorkflowRun;
}

describe.skipIf(process.platform !== 'linux' || !isReachable(uid))('a step', () => {
  test(
    'finds none of the secrets that the runner was started with',
    { timeout: 120_000 },
    async () => {
      const [loot, home] = [folder(), folder()];
      const workspace = makeWorkspace({
        '.github/workflows/look.yml': LOOK.replace('LOOT_FOLDER', loot),
        'action/action.yml': 'name: a\nruns: { using: node20, main: main.js }\n',
        'action/main.js': `require('fs').writeFileSync(process.env.LOOT + '/action', JSON.stringify(process.env))`,
        // What a step puts in front of PATH is run by the runner itself.
        'bin/node': `#!/bin/sh\nenv > ${loot}/setup\necho v1.0.0\n`,
      });
      execFileSync('chmod', ['+x', join(workspace, 'bin', 'node')]);
      giveAway(loot, home, workspace);
      const env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config') };
      const path = `${join(workspace, 'bin')}:${process.env['PATH'] ?? ''}`;
      const runner = await startProcess(
        workspace,
        { ...env, ...SECRETS, SOPS_AGE_KEY: IDENTITY, PATH: path },
        uid,
      );
      const run = await runOf(runner.url, 'look', SECRETS.RUNNER_API_TOKEN);
      expect(run.conclusion, JSON.stringify(run.jobs)).toBe('success');
      const found = readFileSync(join(loot, 'loot'), 'latin1');
      // The way of looking is one that finds things.
      expect(found).toContain('CONTROL=visible-to-all');
      for (const name of ['loot', 'env', 'action', 'setup']) {
        const text = readFileSync(join(loot, name), 'latin1');
        for (const value of VALUES) expect(text.includes(value), `${name}: ${value}`).toBe(false);
      }
      expect(readFileSync(join(loot, 'score'), 'utf8')).toBe('500\n');
      expect(readFileSync(`/proc/${runner.child.pid}/oom_score_adj`, 'utf8')).toBe('0\n');
      const warning = runner
        .log()
        .split('\n')
        .find((line) => line.includes('secrets_in_environment'));
      expect(JSON.parse(warning ?? '{}')).toMatchObject({
        variables: expect.arrayContaining([...Object.keys(SECRETS), 'SOPS_AGE_KEY']) as unknown,
      });
      for (const value of VALUES) expect(runner.log()).not.toContain(value);
      expect(runner.log()).not.toContain('runner.unsupervised');
    },
  );

  test.each([
    { file: 'with a token of its own', token: MADE_UP, shown: [] },
    { file: 'with a spoilt file of its token', token: 'spoilt-token', shown: ['spoilt-token'] },
  ])(
    'prints them in no log, and files give no cause for a warning: $file',
    { timeout: 120_000 },
    async ({ token, shown }) => {
      const [secrets, home] = [folder(), folder()];
      const env: Record<string, string> = { HOME: home, XDG_CONFIG_HOME: join(home, '.config') };
      for (const [name, value] of Object.entries(SECRETS)) {
        writeFileSync(join(secrets, name), `${value}\n`);
        env[`${name}_FILE`] = join(secrets, name);
      }
      mkdirSync(join(home, '.config', 'gatehouse'), { recursive: true });
      const identity = join(home, '.config', 'gatehouse', 'vault-identity.txt');
      writeFileSync(identity, `# public key: age1\n${IDENTITY}\n`, { mode: 0o600 });
      const workspace = makeWorkspace({
        '.github/workflows/print.yml': PRINT.replaceAll('FILES', `${secrets}/* ${identity} .token`),
        '.token': token,
        '.runner/api-token': `${token}\n`,
      });
      chmodSync(join(workspace, '.runner/api-token'), 0o600);
      giveAway(secrets, home, workspace);
      const runner = await startProcess(workspace, env, uid);
      const run = await runOf(runner.url, 'print', SECRETS.RUNNER_API_TOKEN);
      const log = run.jobs[0]?.steps[0]?.log ?? '';
      expect(run.conclusion, log).toBe('success');
      expect(log.match(/\*\*\*/g)?.length).toBeGreaterThanOrEqual(6 - shown.length);
      for (const value of shown) expect(log).toContain(value);
      for (const value of [...VALUES, MADE_UP]) {
        expect(log).not.toContain(value);
        const inner = Buffer.from(value).toString('base64').slice(4, -4);
        expect(log).not.toContain(inner);
      }
      expect(runner.log()).not.toContain('secrets_in_environment');
    },
  );
});
