/** Steps that lead the runner out of the workspace by links. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createArtifactStore } from '../../../src/runner/execution/artifacts/artifact-store.ts';
import { runJob, temporaryDir, writeFiles, type RecordedJob } from '../../support/job-harness.ts';

const OUTSIDE = 'of the user alone';

/** A folder outside of every workspace, with a file of the user. */
function outside(): string {
  const folder = temporaryDir();
  writeFiles(folder, { id: OUTSIDE, 'sub/id': OUTSIDE });
  return folder;
}

function messages(job: RecordedJob): readonly string[] {
  return job.annotations.map(({ message }) => message);
}

async function entriesOf(job: RecordedJob, name: string): Promise<Record<string, string>> {
  const folder = temporaryDir();
  const artifact = job.artifacts.find('run1', name);
  if (artifact === undefined) return {};
  await job.artifacts.extract(artifact, folder);
  const { globSync } = await import('node:fs');
  const files = globSync('**', { cwd: folder, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Object.fromEntries(
    files.map(({ parentPath, name: file }) => {
      const path = join(parentPath, file);
      return [path.slice(folder.length + 1), readFileSync(path, 'utf8')];
    }),
  );
}

describe('upload-artifact', () => {
  test('leaves out what links lead out of the workspace to, and tells; links inside work', async () => {
    const user = outside();
    const job = await runJob(`
      - run: |
          mkdir -p up/real
          echo inside > up/real/file
          ln -s real up/folder
          ln -s real/file up/link
          ln -s ${user}/id up/out
          ln -s ${user}/sub up/outer
          ln -s ../../../../../../../..${user}/id up/dots
          ln -s outer/id up/chain
          ln -s nowhere up/dangling
      - { uses: actions/upload-artifact@v4, with: { name: up, path: up } }
      - { uses: actions/upload-artifact@v4, with: { name: one, path: up/out } }
      - { uses: actions/upload-artifact@v4, with: { name: below, path: up/outer/id } }
      - { uses: actions/upload-artifact@v4, with: { name: named, path: ${user}/id } }
    `);
    expect(job.outcome.conclusion).toBe('success');
    expect(await entriesOf(job, 'up')).toEqual({
      'real/file': 'inside\n',
      'folder/file': 'inside\n',
      link: 'inside\n',
    });
    expect(job.artifacts.find('run1', 'one')).toBeUndefined();
    expect(job.artifacts.find('run1', 'below')).toBeUndefined();
    // What the workflow names by its own path is no link's doing.
    expect(await entriesOf(job, 'named')).toEqual({ id: OUTSIDE });
    for (const name of ['up/out', 'up/outer/id', 'up/dots', 'up/chain']) {
      expect(messages(job)).toContainEqual(
        expect.stringMatching(new RegExp(`${name}' is left out: it leads out of the workspace`)),
      );
    }
  });

  test('the state of the runner is not uploaded, where the workspace is the project', async () => {
    const job = await runJob(`
      - run: mkdir -p .runner; echo planted > .runner/api-token; ln -s .runner/api-token link
      - { uses: actions/upload-artifact@v4, with: { path: ".", include-hidden-files: true } }
    `);
    expect(Object.values(await entriesOf(job, 'artifact')).join('')).not.toContain('planted');
    expect(messages(job)).toContainEqual(expect.stringContaining('.runner/api-token'));
  });

  test('a file whose folder is swapped for a link meanwhile is not read', async () => {
    const user = outside();
    const dir = temporaryDir();
    writeFiles(dir, { 'work/sub/id': 'inside' });
    const source = join(dir, 'work', 'sub', 'id');
    const store = await createArtifactStore(join(dir, 'runs'));
    const request = { runId: 'run', name: 'n', isOverwriting: false };
    const files = [{ source, entry: 'id', within: join(dir, 'work') }];
    // As it is when the file was looked at, and its folder then replaced.
    renameSync(join(dir, 'work', 'sub'), join(dir, 'work', 'away'));
    symlinkSync(user, join(dir, 'work', 'sub'));
    await expect(store.add({ ...request, files })).rejects.toMatchObject({
      reason: 'INVALID_VALUE',
    });
    const two = [...files, { ...files[0], source: join(dir, 'work', 'away', 'id'), entry: 'b' }];
    await expect(store.add({ ...request, files: two })).rejects.toMatchObject({
      reason: 'INVALID_VALUE',
    });
    unlinkSync(join(dir, 'work', 'sub'));
    renameSync(join(dir, 'work', 'away'), join(dir, 'work', 'sub'));
    expect(await store.add({ ...request, files })).toMatchObject({ size: 6 });
  });
});

describe('what is unpacked', () => {
  test('download-artifact does not write through links out of the workspace', async () => {
    const user = outside();
    const job = await runJob(`
      - run: mkdir up; echo new > up/id; echo more > up/other; ln -s ${user} out; ln -s ${user}/none/x gone; mkdir in; ln -s in inner
      - { uses: actions/upload-artifact@v4, with: { name: many, path: up } }
      - { uses: actions/upload-artifact@v4, with: { name: one, path: up/id } }
      - { uses: actions/download-artifact@v4, with: { name: many, path: out }, continue-on-error: true }
      - { uses: actions/download-artifact@v4, with: { name: many, path: out/new/folder }, continue-on-error: true }
      - { uses: actions/download-artifact@v4, with: { name: one, path: out/sub }, continue-on-error: true }
      - { uses: actions/download-artifact@v4, with: { name: one, path: gone }, continue-on-error: true }
      - { uses: actions/download-artifact@v4, with: { name: many, path: inner } }
      - run: cat in/id
    `);
    expect(job.steps.slice(3, 7).map(({ outcome }) => outcome)).toEqual(Array(4).fill('failure'));
    expect(job.outcome.conclusion).toBe('success');
    expect(job.text).toContain('new');
    expect(readFileSync(join(user, 'id'), 'utf8')).toBe(OUTSIDE);
    expect(readFileSync(join(user, 'sub', 'id'), 'utf8')).toBe(OUTSIDE);
    for (const name of ['other', 'new', 'none']) expect(existsSync(join(user, name))).toBe(false);
  });

  test('checkout does not empty a folder that a link leads to', async () => {
    const user = outside();
    const projectDir = temporaryDir();
    writeFiles(projectDir, { file: 'x' });
    const author = ['-c', 'user.name=n', '-c', 'user.email=n@example.com'];
    for (const args of [
      ['init', '-q'],
      ['add', 'file'],
      [...author, 'commit', '-qm', 'first'],
    ]) {
      execFileSync('git', args, { cwd: projectDir });
    }
    const sha = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: projectDir, encoding: 'utf8' });
    const contexts = { github: { repository: 'owner/repo', sha: sha.trim() } };
    const job = await runJob(
      `
      - run: ln -s ${user} out
      - { uses: actions/checkout@v4, with: { path: out/sub }, continue-on-error: true }
      - { uses: actions/checkout@v4, with: { path: in/sub } }
    `,
      { projectDir, contexts },
    );
    expect(job.steps.map(({ outcome }) => outcome)).toEqual(['success', 'failure', 'success']);
    expect(readFileSync(join(user, 'sub', 'id'), 'utf8')).toBe(OUTSIDE);
  });

  test('a cache holds nothing from behind such a link, and is not restored through one', async () => {
    const user = outside();
    const projectDir = temporaryDir();
    const cache = (action: string): string =>
      `      - { uses: actions/cache/${action}@v4, with: { path: "kept/**", key: k }, continue-on-error: true }\n`;
    const saved = await runJob(
      `
      - run: |
          mkdir -p kept/sub "kept/odd \\\\ é"
          echo new > kept/sub/id; echo odd > "kept/odd \\\\ é/file"
          ln -s sub kept/inner; ln -s ${user} kept/outer
${cache('save')}`,
      { projectDir },
    );
    expect(messages(saved)).toContainEqual(
      expect.stringMatching(/kept\/outer\/id' is left out: it leads out of the workspace/),
    );
    const restored = await runJob(
      `
      - run: rm -rf kept
${cache('restore')}
      - run: cat kept/inner/id; cat "kept/odd \\\\ é/file"; test "$(readlink kept/outer)" = ${user}
`,
      { projectDir },
    );
    expect(restored.text).toContain('new\nodd');
    // Links that are there already: a folder of the cache, and a folder above one.
    for (const prepare of [
      `mkdir kept; ln -s ${user}/sub kept/sub`,
      `ln -s ${user} kept`,
      `mkdir kept; ln -s ${user} "kept/odd \\\\ é"`,
    ]) {
      const refused = await runJob(
        `
      - run: rm -rf kept; ${prepare}
${cache('restore')}`,
        { projectDir },
      );
      expect(refused.steps[1]?.outcome, prepare).toBe('failure');
      expect(messages(refused)).toContainEqual(expect.stringContaining('out of the workspace'));
    }
    expect(readFileSync(join(user, 'sub', 'id'), 'utf8')).toBe(OUTSIDE);
    expect(existsSync(join(user, 'file'))).toBe(false);
  });
});

describe('files through which steps tell things', () => {
  const KINDS = ['ENV', 'OUTPUT', 'PATH', 'STATE', 'STEP_SUMMARY'] as const;

  test.each(KINDS)('GITHUB_%s is not read where a link leads elsewhere', async (kind) => {
    const user = mkdtempSync(join(tmpdir(), 'links-'));
    writeFileSync(join(user, 'api-token'), 'planted=of-the-runner\n');
    const job = await runJob(`
      - { id: a, run: 'ln -sf ${user}/api-token "$GITHUB_${kind}"', continue-on-error: true }
      - run: echo "got=[$planted\${{ steps.a.outputs.planted }}]"; echo "$PATH"
    `);
    expect(job.text).toContain('got=[]');
    expect(job.text).not.toContain('of-the-runner');
    expect(JSON.stringify(job.steps)).not.toContain('of-the-runner');
    expect(messages(job)).toContainEqual(expect.stringContaining('Unable to process file command'));
  });

  test('nor by another name of the same file, nor in a folder put in place of theirs', async () => {
    const job = await runJob(`
      - { id: a, run: 'echo planted=1 > "$GITHUB_OUTPUT.real"; ln -f "$GITHUB_OUTPUT.real" "$GITHUB_OUTPUT"', continue-on-error: true }
      - run: echo "got=[\${{ steps.a.outputs.planted }}]"
      - run: folder=$(dirname "$GITHUB_ENV"); mv "$folder" "$folder.away"; ln -s "$RUNNER_TEMP" "$folder"
      - { run: echo never, if: always() }
    `);
    expect(job.text).toContain('got=[]');
    expect(job.text).not.toContain('never');
    expect(job.outcome.conclusion).toBe('failure');
  });

  test('a link within the workspace or the temporary folder is followed', async () => {
    const job = await runJob(`
      - { id: a, run: 'echo one=1 > own; ln -sf "$PWD/own" "$GITHUB_OUTPUT"' }
      - { id: b, run: 'echo two=2 > "$RUNNER_TEMP/own"; ln -sf "$RUNNER_TEMP/own" "$GITHUB_OUTPUT"' }
      - run: echo "got=\${{ steps.a.outputs.one }}\${{ steps.b.outputs.two }}"
    `);
    expect(job.text).toContain('got=12');
  });

  test('names that a step guessed are not written through', async () => {
    const user = outside();
    const job = await runJob(`
      - run: |
          next=$(( \${GITHUB_OUTPUT##*_} + 1 ))
          for kind in env output path state summary; do
            ln -s ${user}/id "$(dirname "$GITHUB_OUTPUT")/\${kind}_$next"
          done
          number=$(basename "$0" .sh)
          ln -s ${user}/id "$(dirname "$0")/$(( number + 1 )).sh"
      - run: echo went on
    `);
    expect(job.text).toContain('went on');
    expect(readFileSync(join(user, 'id'), 'utf8')).toBe(OUTSIDE);
  });
});

describe('hashFiles', () => {
  test('ignores what links lead out of the workspace to', async () => {
    const user = outside();
    const projectDir = temporaryDir();
    writeFiles(projectDir, { 'a/file': 'x', 'b/file': 'x' });
    symlinkSync(join(user, 'id'), join(projectDir, 'a', 'link'));
    symlinkSync(user, join(projectDir, 'a', 'folder'));
    mkdirSync(join(projectDir, 'only'));
    symlinkSync(join(user, 'id'), join(projectDir, 'only', 'link'));
    symlinkSync('../b/file', join(projectDir, 'only-inside'));
    linkSync(join(projectDir, 'b', 'file'), join(projectDir, 'b', 'twin'));
    const job = await runJob(
      `
      - run: |
          echo "[\${{ hashFiles('a/**') == hashFiles('b/file') }}]"
          echo "[\${{ hashFiles('--follow-symbolic-links', 'a/**') == hashFiles('b/file') }}]"
          echo "[\${{ hashFiles('only/**') }}]"
          echo "[\${{ hashFiles('b/**') }}]"
    `,
      { projectDir },
    );
    const one = /^\[([0-9a-f]{64})\]$/m.exec(job.text)?.[1];
    expect(job.text.split('\n')).toEqual(['[true]', '[true]', '[]', `[${one}]`]);
  });
});
