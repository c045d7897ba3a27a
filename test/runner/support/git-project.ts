import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

const PERSON = {
  GIT_AUTHOR_NAME: 'n',
  GIT_AUTHOR_EMAIL: 'n@example.com',
  GIT_COMMITTER_NAME: 'n',
  GIT_COMMITTER_EMAIL: 'n@example.com',
};

/** What the user of a project does there; the text that git writes, without white space around it. */
export function git(dir: string, ...args: readonly string[]): string {
  const text = execFileSync('git', args, {
    cwd: dir,
    encoding: 'utf8',
    env: { ...process.env, ...PERSON },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return text.trim();
}

export function put(dir: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
}

/** Commits everything that is not ignored; the commit's id. */
export function commitAll(dir: string, message: string): string {
  git(dir, 'add', '-A');
  git(dir, 'commit', '-q', '--allow-empty', '-m', message);
  return git(dir, 'rev-parse', 'HEAD');
}

/** A workflow that runs one script, with a person for git to name. */
export function scriptWorkflow(script: string, trigger = 'workflow_dispatch'): string {
  const env = Object.entries(PERSON).map(([name, value]) => `  ${name}: ${value}`);
  return [
    `on: ${trigger}`,
    'env:',
    ...env,
    'jobs:',
    '  job:',
    '    runs-on: ubuntu-latest',
    '    steps:',
    '      - run: |',
    ...script.split('\n').map((line) => `          ${line}`),
    '',
  ].join('\n');
}

/**
 * Every file below a git directory but its objects, by path: mode and digest of the content. Two that are
 * equal were not changed in between.
 */
export function fingerprint(gitDir: string): Readonly<Record<string, string>> {
  const seen: Record<string, string> = {};
  const walk = (folder: string): void => {
    for (const name of readdirSync(join(gitDir, folder)).toSorted()) {
      const path = join(folder, name);
      const file = lstatSync(join(gitDir, path));
      if (file.isDirectory()) {
        seen[`${path}/`] = file.mode.toString(8);
        if (path !== 'objects') walk(path);
      } else {
        const content = file.isSymbolicLink()
          ? readlinkSync(join(gitDir, path))
          : readFileSync(join(gitDir, path));
        const digest = createHash('sha256').update(content).digest('hex');
        seen[path] = `${file.mode.toString(8)} ${digest}`;
      }
    }
  };
  walk('');
  return seen;
}
