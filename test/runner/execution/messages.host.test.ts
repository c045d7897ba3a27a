/** What a step that goes wrong says: the thing itself, once in its log and once beside it. */
import { describe, expect, test } from 'vitest';
import { type RecordedJob, runJob } from '../../support/job-harness.ts';

/** Errors and warnings as `step: text`, which the log of the step has as well, once. */
function messagesOf(job: RecordedJob): string[] {
  return job.annotations.map(({ level, message, stepNumber = 0 }) => {
    const { lines = [] } = job.steps.find(({ number }) => number === stepNumber) ?? {};
    expect(lines.filter((line) => line === `##[${level}]${message}`)).toHaveLength(1);
    return `${stepNumber}: ${message}`;
  });
}

describe('what a step is to start in and with', () => {
  test('a folder that is not there, or is none', async () => {
    const job = await runJob(
      `
      - { run: echo no, working-directory: build/out, continue-on-error: true }
      - { run: echo no, working-directory: f, continue-on-error: true }
      - { run: echo no, working-directory: /no/such, continue-on-error: true }
      - { run: echo no, working-directory: f/below, continue-on-error: true }`,
      { files: { f: '' } },
    );
    const dir = job.projectDir;
    expect(messagesOf(job)).toEqual([
      `1: The working directory 'build/out' does not exist: it was looked for at ${dir}/build/out`,
      `2: The working directory 'f' is no folder: it was looked for at ${dir}/f`,
      "3: The working directory '/no/such' does not exist",
      `4: The working directory 'f/below' does not exist: it was looked for at ${dir}/f/below`,
    ]);
  });

  test('a shell that is not there', async () => {
    const path = '/nowhere:/bin';
    const job = await runJob(
      `
      - { run: echo no, shell: 'zsh-or-so {0}', continue-on-error: true }
      - { run: echo no, shell: './own {0}', continue-on-error: true }`,
      { environment: { PATH: path } },
    );
    expect(messagesOf(job)).toEqual([
      `1: zsh-or-so: command not found: the shell of this step is in no folder of its PATH, ${path}`,
      '2: ./own: command not found: a path of a shell is absolute and that of a program',
    ]);
  });
});

test('a line of a command file that is wrong, with its secrets hidden', async () => {
  const job = await runJob(
    `
      - { run: 'echo "notes<<''EOF''" >> $GITHUB_OUTPUT; echo x >> $GITHUB_OUTPUT; echo EOF >> $GITHUB_OUTPUT', continue-on-error: true }
      - { run: 'printf "v=one\\ntwo hush-hush" >> $GITHUB_ENV', continue-on-error: true }`,
    { request: { masks: ['hush-hush'] } },
  );
  expect(messagesOf(job)).toEqual([
    "1: Unable to process file command 'output': Invalid value. Matching delimiter not found ''EOF''. Line 1: the value of 'notes' begins there, and no line after it is 'EOF' alone; unlike in a shell, quotes are a part of the delimiter, 'EOF': leave them out",
    "2: Unable to process file command 'env': Invalid format 'two ***'. Line 2: it is neither name=value nor name<<delimiter",
  ]);
});

describe('patterns', () => {
  test('one that is refused is named, whoever looks for files', async () => {
    const reason = "Invalid pattern './../x'. Relative pathing '.' and '..' is not allowed.";
    const job = await runJob(
      `
      - { uses: actions/upload-artifact@v4, with: { path: "f\\n./../x" }, continue-on-error: true }
      - { uses: actions/cache/save@v4, with: { path: ./../x, key: k } }
      - { run: 'echo \${{ hashFiles(''./../x'') }}', continue-on-error: true }
      - { uses: actions/download-artifact@v4, with: { pattern: 'a[z-a]' }, continue-on-error: true }`,
      { files: { f: '' } },
    );
    const [upload, save, hash, download] = messagesOf(job);
    expect(upload).toBe(`1: ${reason}`);
    expect(save).toBe(`2: Cache save failed. ${reason}`);
    expect(hash).toMatch(/^3: .*hashFiles failed: Invalid pattern '\.\/\.\.\/x'\. Relative/);
    expect(download).toContain("4: pattern: 'a[z-a]' is no pattern");
  });

  test('one that matches nothing', async () => {
    const job = await runJob(
      `
      - { uses: actions/upload-artifact@v4, with: { path: no-*, name: n } }
      - { uses: actions/cache/save@v4, with: { path: no-*, key: k } }
      - { uses: actions/upload-artifact@v4, with: { path: f, name: one } }
      - { uses: actions/download-artifact@v4, with: { pattern: two-* } }`,
      { files: { f: '' } },
    );
    expect(messagesOf(job)).toEqual([
      '1: No files were found with the provided path: no-*. No artifacts will be uploaded.',
      '2: Nothing is saved: no file matches no-*',
    ]);
    expect(job.steps[3]?.lines).toEqual(["No artifact matches the pattern 'two-*': there is one"]);
  });
});

describe('keys that a cache cannot have', () => {
  const LONG = 'k'.repeat(513);
  const commas = 'Key Validation Error: a,b cannot contain commas.';
  const long = 'Key Validation Error: the key cannot be larger than 512 characters, it has 513.';

  test('saving warns, and the job goes on', async () => {
    const job = await runJob(
      `
      - { uses: actions/cache/save@v4, with: { path: f, key: 'a,b' } }
      - { uses: actions/cache/save@v4, with: { path: f, key: ${LONG} } }
      - { uses: actions/cache/save@v4, with: { path: f } }
      - { uses: actions/cache/save@v4, with: { key: k } }
      - run: echo goes on`,
      { files: { f: '' } },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[4]?.lines).toEqual(['goes on']);
    expect(messagesOf(job)).toEqual([
      `1: Cache save failed. ${commas}`,
      `2: Cache save failed. ${long}`,
      '3: Cache save failed. Key is not specified.',
      '4: Cache save failed. Input required and not supplied: path',
    ]);
  });

  test('no part of a secret in one is shown', async () => {
    const secret = `hunter2-${'x'.repeat(90)}`;
    const job = await runJob(
      `
      - run: echo "::add-mask::${secret}"; echo S=${secret} >> $GITHUB_ENV
      - { uses: actions/cache/save@v4, with: { path: f, key: '${'a'.repeat(54)}\${{ env.S }},b' } }
      - { uses: actions/cache/save@v4, with: { path: f, key: "\${{ format('${'{0}'.repeat(6)}', env.S) }}" } }`,
      { files: { f: '' } },
    );
    expect(messagesOf(job)).toEqual([
      `2: Cache save failed. Key Validation Error: ${'a'.repeat(54)}***,b cannot contain commas.`,
      '3: Cache save failed. Key Validation Error: the key cannot be larger than 512 characters, it has 588.',
    ]);
    expect(
      job.steps
        .slice(1)
        .flatMap(({ lines }) => lines)
        .join(),
    ).not.toContain('hunter2');
  });

  test('restoring fails, by any of the keys', async () => {
    const many = Array.from({ length: 10 }, (_, n) => `r${n}`).join('\\n');
    const step = (name: string, inputs: string): string =>
      `\n      - { uses: actions/${name}@v4, with: { path: f, ${inputs} }, continue-on-error: true }`;
    const job = await runJob(
      [
        step('cache', "key: 'a,b'"),
        step('cache/restore', `key: ${LONG}`),
        step('cache/restore', "key: k, restore-keys: 'a,b'"),
        step('cache', `key: k, restore-keys: "${many}"`),
        step('cache', "key: ''"),
      ].join(''),
      { files: { f: '' } },
    );
    expect(messagesOf(job)).toEqual([
      `1: ${commas}`,
      `2: ${long}`,
      `3: ${commas}`,
      '4: Key Validation Error: Keys are limited to a maximum of 10.',
      '5: Input required and not supplied: key',
    ]);
    // None of them saves anything later.
    expect(job.steps).toHaveLength(5);
  });
});
