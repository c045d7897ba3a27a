/** What a step gives that its action does not have, for every kind of action. */
import { describe, expect, test } from 'vitest';
import { type RecordedJob, runJob } from '../../support/job-harness.ts';

const COMPOSITE = `name: c
inputs: { a: { default: '1' }, old: { deprecationMessage: use a } }
runs: { using: composite, steps: [{ run: "echo a is \${{ inputs.a }}", shell: bash }] }
`;

function warningsOf(job: RecordedJob): string[] {
  return job.annotations.flatMap(({ level, message, stepNumber }) =>
    level === 'warning' ? [`${stepNumber}: ${message}`] : [],
  );
}

describe('built-in actions', () => {
  test('an input that the action does not have is a warning, in the log and beside it, and the step goes on', async () => {
    const job = await runJob(
      `
      - { uses: actions/upload-artifact@v4, with: { nmae: b, PATH: f, archive: false } }
      - { uses: actions/cache/save@v4, with: { path: f, key: k, restore-keys: k, fail-on: x } }`,
      { files: { f: '' } },
    );
    expect(job.outcome.conclusion).toBe('success');
    const upload =
      "Unexpected input(s) 'nmae', 'archive', valid inputs are ['name', 'path', 'if-no-files-found', 'retention-days', 'compression-level', 'overwrite', 'include-hidden-files']";
    const save =
      "Unexpected input(s) 'restore-keys', 'fail-on', valid inputs are ['path', 'key', 'upload-chunk-size', 'enableCrossOsArchive']";
    expect(warningsOf(job)).toEqual([`1: ${upload}`, `2: ${save}`]);
    expect(job.steps[0]?.lines[0]).toBe(`##[warning]${upload}`);
  });

  test('inputs that change nothing here are known, in any letter case', async () => {
    const job = await runJob(
      `
      - { uses: actions/checkout@v4, with: { Token: x, filter: tree:0, show-progress: false, ssh-key: k } }
      - { uses: actions/cache@v4, with: { path: f, key: k, enablecrossosarchive: true } }
      - { uses: actions/setup-node@v5, with: { token: x, package-manager-cache: false } }`,
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(warningsOf(job).filter((text) => text.includes('nexpected'))).toEqual([]);
  });

  test('the version that is named counts; a commit has what any has', async () => {
    const use = (version: string): string =>
      `\n      - { uses: actions/upload-artifact@${version}, with: { path: f, name: ${version}, archive: true } }`;
    const versions = ['v6', 'v6.1.2', 'v7', 'main', '0123456789abcdef0123456789abcdef01234567'];
    const job = await runJob(versions.map(use).join(''), { files: { f: '' } });
    expect(warningsOf(job).map((text) => text.slice(0, 34))).toEqual([
      "1: Unexpected input(s) 'archive', ",
      "2: Unexpected input(s) 'archive', ",
    ]);
  });

  test('one that is deprecated is a warning of its own', async () => {
    const job = await runJob(
      '- { uses: actions/cache@v4, with: { path: f, key: k, save-always: true } }',
      { files: { f: '' } },
    );
    expect(warningsOf(job)).toEqual([
      expect.stringContaining("1: Input 'save-always' has been deprecated with message: "),
    ]);
  });
});

describe('actions with a file of their own', () => {
  test('local composite, JavaScript and Docker ones; one without inputs', async () => {
    const job = await runJob(
      `
      - { uses: ./c, with: { b: 1, OLD: z } }
      - { uses: ./j, with: { b: 1 } }
      - { uses: ./d, with: { b: 1, args: x, ENTRYPOINT: y }, continue-on-error: true }`,
      {
        files: {
          'c/action.yml': COMPOSITE,
          'j/action.yml': 'name: j\nruns: { using: node20, main: main.js }\n',
          'j/main.js': 'console.log("ran")',
          'd/action.yml':
            "name: d\ninputs: { a: { default: '1' } }\nruns: { using: docker, image: Dockerfile }\n",
        },
        environment: { PATH: '/usr/bin:/bin' },
      },
    );
    expect(job.text).toContain('a is 1');
    expect(job.text).toContain('ran');
    expect(warningsOf(job)).toEqual([
      "1: Input 'OLD' has been deprecated with message: use a",
      "1: Unexpected input(s) 'b', valid inputs are ['a', 'old']",
      "2: Unexpected input(s) 'b', valid inputs are ['']",
      "3: Unexpected input(s) 'b', valid inputs are ['entryPoint', 'args', 'a']",
    ]);
  });

  test('once, however many stages the action has', async () => {
    const stages = 'runs: { using: node20, pre: s.js, main: s.js, post: s.js }';
    const at = '.runner/actions/o/r@v1';
    const job = await runJob('- { uses: o/r@v1, with: { b: 1 } }', {
      files: { [`${at}/action.yml`]: `name: r\n${stages}\n`, [`${at}/s.js`]: 'console.log("s")' },
    });
    expect(job.text.match(/^s$/gm)).toHaveLength(3);
    expect(warningsOf(job).filter((text) => text.includes('Unexpected'))).toHaveLength(1);
  });
});
