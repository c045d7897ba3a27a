import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runJob, temporaryDir, writeFiles } from '../../support/job-harness.ts';

function git(dir: string, ...args: string[]): string {
  const identity = ['-c', 'user.name=n', '-c', 'user.email=e@example.com'];
  return execFileSync('git', [...identity, ...args], { cwd: dir, encoding: 'utf8' }).trim();
}

/** A repository with two commits; returns their ids. */
function repository(dir: string): readonly [string, string] {
  mkdirSync(dir, { recursive: true });
  git(dir, 'init', '-q', '-b', 'main');
  const commit = (text: string): string => {
    writeFiles(dir, { file: text, '.gitignore': '.runner\n' });
    git(dir, 'add', '-A');
    git(dir, 'commit', '-qm', text);
    return git(dir, 'rev-parse', 'HEAD');
  };
  return [commit('old'), commit('new')];
}

describe('artifacts', () => {
  test('go up and come down, through patterns, exclusions and hidden files', async () => {
    const job = await runJob(
      `
      - id: up
        uses: actions/upload-artifact@v4
        with:
          name: build
          path: |
            dist/**
            !dist/**/*.map
      - uses: actions/download-artifact@v4
        with: { name: build, path: got }
      - run: |
          find got -type f | sort
          test -n "\${{ steps.up.outputs.artifact-id }}"
          echo "\${{ steps.up.outputs.artifact-digest }}" | grep -Eq '^[0-9a-f]{64}$'
    `,
      {
        files: {
          'dist/a.js': 'a',
          'dist/a.js.map': 'm',
          'dist/sub/b.js': 'b',
          'dist/.hidden': 'h',
          other: 'o',
        },
      },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[2]?.lines).toEqual(['got/a.js', 'got/sub/b.js']);
    expect(job.artifacts.list('run1').map(({ name }) => name)).toEqual(['build']);
  });

  test('several: by pattern, merged or each in its own folder; hidden ones on demand', async () => {
    const job = await runJob(
      `
      - uses: actions/upload-artifact@v4
        with: { name: log-a, path: a.log }
      - uses: actions/upload-artifact@v4
        with: { name: log-b, path: "b.log\\n.hidden", include-hidden-files: true }
      - uses: actions/upload-artifact@v4
        with: { name: other, path: a.log }
      - uses: actions/download-artifact@v4
        with: { pattern: "log-*", path: each }
      - uses: actions/download-artifact@v4
        with: { pattern: "log-{a,b}", path: merged, merge-multiple: true }
      - run: find each merged -type f | sort
    `.replace('\\n', '\\n'),
      { files: { 'a.log': 'a', 'b.log': 'b', '.hidden': 'h' } },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[5]?.lines).toEqual([
      'each/log-a/a.log',
      'each/log-b/.hidden',
      'each/log-b/b.log',
      'merged/.hidden',
      'merged/a.log',
      'merged/b.log',
    ]);
  });

  test('nothing found: warn, ignore or error; a name twice; one that is not there', async () => {
    const upload = (extra: string): string => `
      - if: always()
        uses: actions/upload-artifact@v4
        with: { path: nothing-*${extra} }`;
    const job = await runJob(
      `${upload('')}${upload(', if-no-files-found: ignore')}${upload(', if-no-files-found: error')}
      - if: always()
        uses: actions/upload-artifact@v4
        with: { path: x }
      - if: always()
        uses: actions/upload-artifact@v4
        with: { path: x }
      - if: always()
        uses: actions/upload-artifact@v4
        with: { path: x, overwrite: true }
      - if: always()
        uses: actions/download-artifact@v4
        with: { name: missing }
      - if: always()
        uses: actions/upload-artifact@v4
        with: { path: x, name: hush-hush }
    `,
      { files: { x: 'x' }, request: { masks: ['hush-hush'] } },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual([
      'success',
      'success',
      'failure',
      'success',
      'failure',
      'success',
      'failure',
      'failure',
    ]);
    expect(job.annotations[0]?.level).toBe('warning');
    expect(job.text).toContain('Artifact not found for name: missing');
  });

  test('a file that is not archived is an artifact of its own name, and comes back as it is', async () => {
    const upload = (path: string, more = ''): string =>
      `- uses: actions/upload-artifact@v7\n  with: { path: "${path}", archive: False${more} }\n`;
    const down = (more: string): string =>
      `- uses: actions/download-artifact@v8\n  with: { ${more} }\n`;
    const job = await runJob(
      `- run: cd out && python3 -m zipfile -c pack.zip table.tsv && ln -s table.tsv link.txt
${upload('out/table.tsv', ', name: "given/name", compression-level: 0, retention-days: 3')}${upload('out/deep')}${upload('out/*.zip')}${upload('out/link.txt')}${upload('out/.env', ', include-hidden-files: true')}
- uses: actions/upload-artifact@v7
  with: { path: out/table.tsv, name: packed }
${down('name: table.tsv, path: one')}${down('path: all')}${down('pattern: "*", path: merged, merge-multiple: true')}${down('pattern: "t*", path: single')}
${down('pattern: "pac*", path: raw, skip-decompress: true, merge-multiple: true')}${down('pattern: ".e*", path: hidden')}
- run: |
    find one all merged single raw hidden -type f | sort
    cat one/table.tsv merged/link.txt
    cmp raw/pack.zip out/pack.zip && python3 -m zipfile -l raw/packed.zip | grep -c table.tsv
    `,
      {
        files: { 'out/table.tsv': '1\t2\n', 'out/deep/er/page.html': '<p>', 'out/.env': 'E=1' },
      },
    );
    expect(job.text).not.toContain('##[error]');
    expect(job.outcome.conclusion).toBe('success');
    expect(job.artifacts.list('run1').map(({ name, mimeType }) => `${name} ${mimeType}`)).toEqual([
      '.env application/octet-stream',
      'link.txt text/plain',
      'pack.zip application/zip',
      'packed text/tab-separated-values',
      'page.html text/html',
      'table.tsv text/tab-separated-values',
    ]);
    expect(job.steps.at(-1)?.lines).toEqual([
      'all/.env/.env',
      'all/link.txt/link.txt',
      'all/pack.zip/table.tsv',
      'all/packed/table.tsv',
      'all/page.html/page.html',
      'all/table.tsv/table.tsv',
      'hidden/.env',
      'merged/link.txt',
      'merged/page.html',
      'merged/table.tsv',
      'one/table.tsv',
      'raw/pack.zip',
      'raw/packed.zip',
      'single/table.tsv',
      '1\t2',
      '1\t2',
      '1',
    ]);
  });

  test('what is not archived: several files, names that cannot be, secrets, twice, other versions', async () => {
    const projectDir = temporaryDir();
    const outside = temporaryDir();
    writeFiles(outside, { key: 'outside' });
    writeFiles(projectDir, {
      'many/1': '1',
      'many/2': '2',
      'a"b': 'quote',
      'a\nb': 'line',
      'tok-hush-hush.txt': 's',
      'same.txt': 'first',
    });
    symlinkSync(join(outside, 'key'), join(projectDir, 'leak.txt'));
    const upload = (path: string, more = '', ref = 'v7'): string => `
      - if: always()
        uses: actions/upload-artifact@${ref}
        with: { path: ${path}, archive: false${more} }`;
    const job = await runJob(
      `${upload('many', ', name: many')}${upload('a?b')}${upload('tok*')}${upload('leak.txt')}
       ${upload('none, if-no-files-found: error')}${upload('same.txt')}${upload('same.txt')}
      - if: always()
        run: printf second > same.txt
       ${upload('same.txt', ', overwrite: true')}${upload('many', ', name: old', 'v6.0.0')}
       ${upload('many/1', '', 'bbbca2ddaa5d8feaa63e36b76fdaad77386f024f')}
      - { if: always(), uses: actions/upload-artifact@v7, with: { path: many, archive: 'no' } }
      - { if: always(), uses: actions/upload-artifact@v7, with: { path: many, compression-level: 10 } }
      - { if: always(), uses: actions/upload-artifact@v7, with: { path: many, retention-days: x } }
      - { if: always(), uses: actions/upload-artifact@v7, with: { path: many, if-no-files-found: no } }`,
      { projectDir, request: { masks: ['hush-hush'] } },
    );
    expect(job.steps.map(({ conclusion }) => conclusion?.[0]).join('')).toBe('fffsfsfssssffff');
    const said = job.steps.map(({ lines }) => lines.join('\n'));
    expect(said[0]).toContain('path: archive: false uploads one file, and 2 were found');
    expect(said[1]).toContain('path: archive: false uploads one file');
    expect(said[2]).toContain('path: The name of the artifact holds a secret');
    expect(said[3]).toContain('No files were found');
    expect(said[11]).toContain('archive: must be true or false');
    expect(job.text).not.toContain('hush-hush');
    const kept = job.artifacts.list('run1');
    expect(kept.map(({ name }) => name)).toEqual(['1', 'old', 'same.txt']);
    expect(readFileSync(kept[2]?.path ?? '', 'utf8')).toBe('second');
    expect(kept[1]?.mimeType).toBe('application/zip');
  });

  test.each(['a"b', 'a\nb', 'a:b', 'nul.txt'])(
    'the file name %j names no artifact',
    async (name) => {
      const job = await runJob(
        '- { uses: actions/upload-artifact@v7, with: { path: "d", archive: false } }',
        { files: { [`d/${name}`]: '' } },
      );
      expect(job.outcome.conclusion).toBe('failure');
      expect(job.text).toContain('path: An artifact has a name of 1 to 255 characters');
    },
  );

  test('a damaged artifact is unpacked where digest-mismatch says so', async () => {
    const damage = 'for f in .runner/runs/*/artifacts/*.txt; do printf other > "$f"; done';
    const down = (mismatch: string): string => `
      - if: always()
        uses: actions/download-artifact@v8
        with: { name: a.txt, path: ${mismatch}, digest-mismatch: ${mismatch} }`;
    const job = await runJob(
      `
      - { uses: actions/upload-artifact@v7, with: { path: a.txt, archive: false } }
      - run: ${JSON.stringify(damage)}${['error', 'warn', 'ignore', 'some'].map(down).join('')}
      - { if: always(), run: cat warn/a.txt ignore/a.txt; test ! -e error/a.txt }`,
      { files: { 'a.txt': 'as it was' } },
    );
    expect(job.steps.map(({ conclusion }) => conclusion?.[0]).join('')).toBe('ssfssfs');
    expect(job.steps.at(-1)?.lines).toEqual(['otherother']);
    expect(job.annotations.filter(({ level }) => level === 'warning')).toHaveLength(1);
  });

  test('links that lead out of the workspace are left out', async () => {
    const projectDir = temporaryDir();
    const outside = temporaryDir();
    writeFiles(outside, { secret: 'outside' });
    writeFiles(projectDir, { 'dist/real': 'r', inside: 'i' });
    symlinkSync(join(outside, 'secret'), join(projectDir, 'dist', 'leak'));
    symlinkSync(outside, join(projectDir, 'dist', 'folder'));
    symlinkSync('../inside', join(projectDir, 'dist', 'fine'));
    const job = await runJob(
      `
      - uses: actions/upload-artifact@v4
        with: { path: dist }
      - uses: actions/download-artifact@v4
        with: { path: got, name: artifact }
      - run: find got -type f | sort
    `,
      { projectDir },
    );
    expect(job.steps[2]?.lines).toEqual(['got/fine', 'got/real']);
    expect(job.text).not.toContain('outside\n');
    expect(job.annotations).toHaveLength(2);
  });
});

describe('cache', () => {
  test('is saved after the job and restored by the next, exactly or by prefix', async () => {
    const projectDir = temporaryDir();
    const steps = (key: string): string => `
      - id: cache
        uses: actions/cache@v4
        with: { path: deps, key: "${key}", restore-keys: "deps-" }
      - run: |
          echo "hit=[\${{ steps.cache.outputs.cache-hit }}]"
          cat deps/x || true
          mkdir -p deps && echo "${key}" > deps/x
    `;
    const run = (key: string): ReturnType<typeof runJob> => runJob(steps(key), { projectDir });
    const first = await run('deps-1');
    expect(first.steps.map((step) => step.name)).toEqual([
      'Run actions/cache@v4',
      'Run echo "hit=[]"',
      'Post Run actions/cache@v4',
    ]);
    expect(first.steps[1]?.lines[0]).toBe('hit=[]');
    execFileSync('rm', ['-r', join(projectDir, 'deps')]);
    const second = await run('deps-2');
    expect(second.steps[1]?.lines).toEqual(['hit=[false]', 'deps-1']);
    const third = await run('deps-1');
    expect(third.steps[1]?.lines).toEqual(['hit=[true]', 'deps-1']);
    // The very key was there: nothing to save.
    expect(third.steps).toHaveLength(2);
  });

  test('is not saved when the job failed; fail-on-cache-miss', async () => {
    const projectDir = temporaryDir();
    const job = await runJob(
      `
      - uses: actions/cache@v4
        with: { path: x, key: k }
      - run: exit 1
      - if: always()
        uses: actions/cache/restore@v4
        with: { path: x, key: k, fail-on-cache-miss: true }
      - if: always()
        uses: actions/cache/save@v4
        with: { path: x, key: k2 }
      - if: always()
        uses: actions/cache/restore@v4
        with: { path: x, key: k2, fail-on-cache-miss: true }
    `,
      { projectDir, files: { x: 'x' } },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual([
      'success',
      'failure',
      'failure',
      'success',
      'success',
      'skipped',
    ]);
  });
});

describe('checkout', () => {
  test('the own repository is there already', async () => {
    const job = await runJob(
      `
      - uses: actions/checkout@v4
      - uses: actions/checkout@v4
        with: { repository: OWNER/repo, fetch-depth: 0 }
      - run: cat kept
    `,
      { files: { kept: 'kept' } },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.text).toContain('kept');
  });

  test('another ref in the sandbox, and a path of its own', async () => {
    const projectDir = join(temporaryDir(), 'project');
    const [old, recent] = repository(projectDir);
    const workspaceDir = join(dirname(projectDir), 'sandbox');
    git(projectDir, 'clone', '-q', projectDir, workspaceDir);
    const job = await runJob(
      `
      - uses: actions/checkout@v4
        with: { ref: "${old}", path: side }
      - run: cat file side/file
      - id: moved
        uses: actions/checkout@v4
        with: { ref: "${old}" }
      - run: cat file; echo; echo "\${{ steps.moved.outputs.commit }}"
    `,
      {
        projectDir,
        request: { workspaceDir },
        contexts: { github: { repository: 'owner/repo', sha: recent } },
      },
    );
    expect(job.outcome.conclusion).toBe('success');
    expect(job.steps[1]?.lines).toEqual(['newold']);
    expect(job.steps[3]?.lines).toEqual(['old', old]);
    expect(readFileSync(join(projectDir, 'file'), 'utf8')).toBe('new');
    expect(git(projectDir, 'rev-parse', 'HEAD')).toBe(recent);
  });

  test('a copy without a repository gets one', async () => {
    const projectDir = join(temporaryDir(), 'project');
    const [old] = repository(projectDir);
    const workspaceDir = join(dirname(projectDir), 'sandbox');
    writeFiles(workspaceDir, { file: 'dirty', stray: '' });
    const job = await runJob(
      `
      - uses: actions/checkout@v4
        with: { ref: "${old}" }
      - run: cat file; git status --short
    `,
      { projectDir, request: { workspaceDir } },
    );
    expect(job.steps[1]?.lines).toEqual(['old']);
    expect(existsSync(join(workspaceDir, 'stray'))).toBe(false);
    expect(git(projectDir, 'status', '--short')).toBe('');
  });

  test('what it cannot do is a clear failure', async () => {
    const projectDir = temporaryDir();
    const [old] = repository(projectDir);
    const job = await runJob(
      `
      - uses: actions/checkout@v4
        with: { repository: other/repo }
      - if: always()
        uses: actions/checkout@v4
        with: { ref: no-such-branch, path: x }
      - if: always()
        uses: actions/checkout@v4
        with: { ref: "--upload-pack=touch evil", path: x }
      - if: always()
        uses: actions/checkout@v4
        with: { path: ../outside }
      - if: always()
        uses: actions/checkout@v4
        with: { ref: "${old}" }
    `,
      { projectDir },
    );
    expect(job.steps.map((step) => step.conclusion)).toEqual(Array(5).fill('failure'));
    expect(job.text).toContain('cannot be checked out');
    expect(job.text).toContain('could not be found');
    expect(job.text).toContain('not under the workspace');
    expect(job.text).toContain('sandbox none');
    expect(readFileSync(join(projectDir, 'file'), 'utf8')).toBe('new');
    expect(existsSync(join(projectDir, 'evil'))).toBe(false);
  });
});

test('an action in the folder wins over a built-in one', async () => {
  const job = await runJob(
    `
      - uses: actions/checkout@v4
    `,
    {
      files: {
        '.runner/actions/actions/checkout@v4/action.yml':
          'name: own\nruns: { using: composite, steps: [{ run: echo own one, shell: bash }] }',
      },
    },
  );
  expect(job.outcome.conclusion).toBe('success');
  expect(job.text).toContain('own one');
});
