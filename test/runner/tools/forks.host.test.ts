/** A job of a fork gets tools and actions, and can change them for nobody else. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { isBuiltIn } from '../../../src/runner/execution/built-ins/built-in-inputs.ts';
import { ActionLibrary } from '../../../src/runner/host/actions/action-library.ts';
import { createForkIsolation } from '../../../src/runner/host/isolation/fork-isolation.ts';
import { ToolRegistry } from '../../../src/runner/host/tools/tool-registry.ts';
import { runJob, temporaryDir, writeFiles } from '../../support/job-harness.ts';
import { fakeNode, fakeNpm, startFakeRegistry } from './fake-registry.ts';

const project = temporaryProject();
const isolation = await createForkIsolation({
  projectDir: project,
  marksDir: join(project, '.runner/fork-folders'),
  report: () => undefined,
});
const whyNot = await isolation.whyNot();
afterAll(() => rmSync(project, { recursive: true, force: true }));

function temporaryProject(): string {
  const dir = execFileSync('mktemp', ['-d'], { encoding: 'utf8' }).trim();
  writeFiles(dir, { 'a.txt': 'a\n' });
  mkdirSync(join(dir, '.runner'), { mode: 0o700 });
  const git = (...args: readonly string[]): void => {
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
    execFileSync('git', [...who, ...args], { cwd: dir });
  };
  git('init', '--quiet');
  git('add', 'a.txt');
  git('commit', '--quiet', '--message', 'x');
  return dir;
}

test.skipIf(whyNot !== undefined)(
  'what it does to its tools and actions stays with it',
  async () => {
    const registry = await startFakeRegistry([fakeNode('19.1.0'), fakeNpm('10.0.0')]);
    const home = temporaryDir();
    // Readable for everybody as far as its own rights go: only being kept apart protects it.
    chmodSync(home, 0o755);
    const environment = {
      HOME: home,
      PATH: process.env['PATH'] ?? '',
      npm_config_registry: registry.url,
    };
    const tools = new ToolRegistry({ environment, root: join(home, 'tools'), mayInstall: true });
    const actions = new ActionLibrary({
      stateDir: join(project, '.runner'),
      origin: { url: 'file:///nowhere' },
      fetchesInRuns: true,
      isBuiltIn,
    });
    const root = join(project, '.runner/actions/o/a@v1');
    const text =
      'name: x\nruns:\n  using: composite\n  steps:\n    - run: echo the action; echo evil >> "$GITHUB_ACTION_PATH/action.yml" || true\n      shell: sh\n';
    writeFiles(project, { '.runner/actions/o/a@v1/action.yml': text });
    const apart = await isolation.begin(project);
    try {
      const jobDir = join(apart.shared, 'job');
      mkdirSync(jobDir, { mode: 0o755 });
      const job = await runJob(
        `
      - { id: node, uses: actions/setup-node@v4, with: { node-version: 19 } }
      - run: |
          node --version
          dir=$(dirname "$(command -v node)")
          printf '#!/bin/sh\\necho v19.1.0\\necho poisoned\\n' > "$dir/node" && echo own one changed
          for file in '${join(home, 'tools')}'/node/*/*/bin/node; do
            echo poisoned > "$file" && echo LEAK tool
          done
          # It may make folders of that name in what it sees: those are looked for below.
          mkdir -p '${join(home, 'tools')}/node/99.0.0' || true
          echo x > '${root}/action.yml' && echo LEAK action
          echo x > '${join(project, '.runner/actions.lock')}' && echo LEAK lock
          true
      - uses: o/a@v1
      - { uses: o/missing@v1, continue-on-error: true }`,
        {
          projectDir: project,
          tools,
          actions,
          request: { isolation: apart, workspaceDir: apart.workspace, jobDir },
        },
      );
      expect(job.text).toContain('v19.1.0');
      expect(job.text).toContain('own one changed');
      expect(job.text).toContain('the action');
      expect(job.text).not.toContain('LEAK');
      expect(job.outcome.conclusion).toBe('success');
      // Nothing is fetched for it.
      expect(job.text).toContain("Action 'o/missing@v1' is not here");
    } finally {
      await apart.end();
    }
    expect(readFileSync(join(root, 'action.yml'), 'utf8')).toBe(text);
    expect(existsSync(join(project, '.runner/actions.lock'))).toBe(false);
    expect(readdirSync(join(home, 'tools/node'))).toEqual(['19.1.0']);
    const after = await runJob(
      `
      - { uses: actions/setup-node@v4, with: { node-version: 19 } }
      - run: node --version`,
      { tools },
    );
    expect(after.text).toContain('v19.1.0');
    expect(after.text).not.toContain('poisoned');
  },
);
