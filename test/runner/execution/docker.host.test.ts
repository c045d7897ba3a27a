import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runJob, temporaryDir, writeFiles } from '../../support/job-harness.ts';

/**
 * A stand-in for the docker tool, since tests have no daemon: says what it was asked for, and runs what a
 * container would be told on the host.
 */
const DOCKER = `#!/bin/bash
echo "docker $*" >> "$(dirname "$0")/calls"
case "$1" in
  version) [ ! -e "$(dirname "$0")/down" ] ;;
  build) echo built ;;
  run)
    env | grep -E '^(INPUT_|GITHUB_WORKSPACE|GITHUB_OUTPUT|AWS_|MY_)' | sort
    for arg in "$@"; do case "$arg" in *:/github/file_commands) commands="\${arg%%:*}" ;; esac; done
    echo "answer=42" >> "$commands/$(basename "$GITHUB_OUTPUT")" ;;
esac
`;

function withDocker(files: Readonly<Record<string, string>> = {}): {
  readonly environment: Readonly<Record<string, string>>;
  readonly dir: string;
} {
  const dir = temporaryDir();
  writeFiles(dir, { docker: DOCKER, calls: '', ...files });
  chmodSync(join(dir, 'docker'), 0o700);
  const path = `${dir}:${process.env['PATH'] ?? ''}`;
  return { dir, environment: { PATH: path, AWS_SECRET_ACCESS_KEY: 'k' } };
}

describe('with a docker that works', () => {
  test('an image runs with the folders and variables of the job, values by the environment', async () => {
    const { environment } = withDocker();
    const job = await runJob(
      `
      - id: d
        uses: docker://alpine:3
        env: { MY_SECRET: hush-hush }
        with: { args: "echo 'a b'", entrypoint: /bin/sh, other: x }
      - run: echo "\${{ steps.d.outputs.answer }}"; cat "$(dirname "$(command -v docker)")/calls"
    `,
      { environment, request: { masks: ['hush-hush'] } },
    );
    expect(job.outcome.conclusion).toBe('success');
    const [first] = job.steps[0]?.lines ?? [];
    expect(job.steps[0]?.lines).toEqual([
      first,
      'GITHUB_WORKSPACE=/github/workspace',
      "INPUT_ARGS=echo 'a b'",
      'INPUT_ENTRYPOINT=/bin/sh',
      'INPUT_OTHER=x',
      'MY_SECRET=***',
    ]);
    expect(first).toMatch(/^GITHUB_OUTPUT=\/github\/file_commands\//);
    const [answer, , call = ''] = job.steps[1]?.lines ?? [];
    expect(answer).toBe('42');
    expect(call).toContain(`${job.projectDir}:/github/workspace`);
    expect(call).toContain('--env MY_SECRET --env');
    expect(call).not.toContain('***');
    expect(call).toMatch(/--entrypoint \/bin\/sh alpine:3 echo/);
  });

  test('an action is built, its arguments see its inputs', async () => {
    const { environment } = withDocker();
    const job = await runJob(
      `
      - uses: ./d
        with: { who: you }
      - run: cat "$(dirname "$(command -v docker)")/calls"
    `,
      {
        environment,
        files: {
          'd/Dockerfile': 'FROM scratch',
          'd/action.yml': `
name: d
inputs: { who: { description: w } }
runs: { using: docker, image: Dockerfile, args: ["--to", "\${{ inputs.who }}"] }
`,
        },
      },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[0]?.lines[0]).toBe('built');
    const calls = job.steps[1]?.lines ?? [];
    expect(calls[1]).toMatch(
      /^docker build --tag runner-action:[0-9a-f]{24} --file .*\/d\/Dockerfile/,
    );
    expect(calls[2]).toMatch(/runner-action:[0-9a-f]{24} --to you$/);
  });
});

test('a docker without its daemon is one clear failure', async () => {
  const { environment } = withDocker({ down: '' });
  const job = await runJob('- uses: docker://alpine:3', { environment });
  expect(job.outcome.conclusion).toBe('failure');
  expect(job.annotations.map(({ message }) => message)).toEqual([
    "'docker://alpine:3' needs a container, and docker does not answer on this host",
  ]);
});
