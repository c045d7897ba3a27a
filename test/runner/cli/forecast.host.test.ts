import { expect, test } from 'vitest';
import { makeWorkspace } from '../../support/runner.ts';
import { byLength } from '../../support/test-length.ts';
import { runCli } from './cli-process.ts';

/** Run as well as planned: one with other jobs, one that fails at once, and one that may not fail at all. */
const SHORT: readonly string[] = ['call.yml', 'image.yml', 'perhaps.yml'];

test(
  '-n and list say what will fail, with the exit code that the run then has',
  { timeout: 120_000 },
  async () => {
    const matrixJobs = Array.from({ length: 257 }, (_, index) => index).join(', ');
    const files = {
      'call.yml': `jobs:
  bad: { uses: ./.github/workflows/gone.yml }
  after: { needs: bad, runs-on: ubuntu-latest, steps: [{ run: exit 0 }] }
  good: { runs-on: ubuntu-latest, steps: [{ run: echo ran-well }] }`,
      'services.yml': `jobs: { s: { runs-on: x, services: { db: { image: db } }, steps: [{ run: exit 0 }] } }`,
      'image.yml': `jobs: { c: { runs-on: x, container: node:22, steps: [{ run: exit 0 }] } }`,
      'legs.yml': `jobs: { m: { runs-on: x, strategy: { matrix: { n: [${matrixJobs}] } }, steps: [{ run: exit 0 }] } }`,
      'remote.yml': `jobs: { r: { runs-on: x, steps: [{ uses: some/where@v1 }] } }`,
      'local.yml': `jobs: { l: { runs-on: x, steps: [{ uses: ./nowhere }] } }`,
      'label.yml': `jobs: { w: { runs-on: windows-latest, steps: [{ run: exit 0 }] } }`,
      'perhaps.yml': `jobs: { p: { runs-on: x, steps: [{ if: failure(), uses: ./nowhere }, { run: exit 0 }] } }`,
    };
    const workspace = makeWorkspace(
      Object.fromEntries(
        Object.entries(files).map(([name, text]) => [
          `.github/workflows/${name}`,
          `on: workflow_dispatch\n${text}\n`,
        ]),
      ),
      true,
    );
    const list = await runCli(workspace, ['list', '--json']);
    const listed = JSON.parse(list.stdout) as {
      fileName: string;
      forecast: { exitCode: number; problems: { message: string; isSure: boolean }[] };
    }[];
    const cases = [
      ['call.yml', "Unable to find reusable workflow './.github/workflows/gone.yml'"],
      ['services.yml', "'services' needs a container"],
      ['image.yml', "'container' needs a container"],
      ['legs.yml', 'more than 256 combinations'],
      ['remote.yml', 'the action some/where@v1 is not here'],
      ['local.yml', 'the action ./nowhere is not in the project'],
      ['label.yml', "it asks for 'windows-latest'"],
      ['perhaps.yml', '? p: the action ./nowhere is not in the project'],
    ] as const;
    for (const [name, said] of cases) {
      const { forecast } = listed.find(({ fileName }) => fileName === name) ?? {};
      const code = name === 'perhaps.yml' ? 0 : 1;
      expect([name, forecast?.exitCode]).toEqual([name, code]);
      if (!byLength(SHORT, [name]).includes(name)) continue;
      const plan = await runCli(workspace, ['run', name, '-n']);
      const run = await runCli(workspace, ['run', name, '-q']);
      expect(plan.stdout).toContain(said);
      expect(plan.stdout).toContain(`exit code ${run.code}\n`);
      expect([name, plan.code, run.code]).toEqual([name, code, code]);
      if (name !== 'call.yml') continue;
      expect(run.stdout).toMatch(/^after - after skipped$/m);
      expect(run.stdout).toMatch(/✓ good success/);
    }
    expect((await runCli(workspace, ['list'])).stdout).toContain(
      '✗ image.yml     workflow_dispatch\n    ✗ c: ',
    );
  },
);
