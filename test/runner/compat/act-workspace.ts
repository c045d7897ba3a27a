import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDocument } from 'yaml';
import { slugOf, type ActCase } from './act-cases.ts';

const WORKFLOWS = join('.github', 'workflows');
/** A job that each of act's shell tests has beside the others, for containers. */
const CONTAINER_JOB = 'check-container';

/** What this project keeps of it; see the README there. */
const KEPT = fileURLToPath(new URL('./act', import.meta.url));

/**
 * `pkg/runner/testdata` of the public project nektos/act (MIT): the part that is kept here, or all of it
 * where ACT_DIR names the whole (v0.2.87 is what the cases were written for).
 */
export function actTestData(): string {
  const whole = process.env['ACT_DIR'];
  const path = join(
    whole === undefined || whole === '' ? KEPT : whole,
    'pkg',
    'runner',
    'testdata',
  );
  if (!existsSync(path)) throw new Error('ACT_DIR has no pkg/runner/testdata');
  return path;
}

/** Whether a case can be run with this test data. */
export function isRunnable(testData: string, one: ActCase): boolean {
  if (one.left !== undefined) return false;
  return one.needs === undefined || existsSync(join(testData, one.needs));
}

/**
 * A repository that is a copy of act's test data, as its workflows expect: paths in them start there.
 * The workflow files of each case also lie where workflows belong, under the names of `fileNamesOf`.
 */
export function makeActWorkspace(testData: string, cases: readonly ActCase[]): string {
  const workspace = mkdtempSync(join(tmpdir(), 'gatehouse-compat-'));
  cpSync(testData, workspace, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('node_modules'),
  });
  mkdirSync(join(workspace, WORKFLOWS), { recursive: true });
  for (const one of cases) {
    for (const file of sourcesOf(workspace, one)) {
      dropContainerJob(file);
      copyFileSync(file, join(workspace, WORKFLOWS, targetOf(one, file)));
    }
  }
  const git = (...args: readonly string[]): void => {
    const author = ['-c', 'user.name=n', '-c', 'user.email=n@example.com'];
    execFileSync('git', [...author, ...args], { cwd: workspace, stdio: 'ignore' });
  };
  git('init', '-q', '-b', 'master');
  git('remote', 'add', 'origin', 'https://github.com/nektos/act.git');
  git('add', '--all');
  git('commit', '-qm', 'test data');
  return workspace;
}

export function removeWorkspace(workspace: string): void {
  rmSync(workspace, { recursive: true, force: true, maxRetries: 5 });
}

/** The workflow files of a case, below .github/workflows. */
export function fileNamesOf(workspace: string, one: ActCase): readonly string[] {
  return sourcesOf(workspace, one).map((file) => targetOf(one, file));
}

function sourcesOf(workspace: string, { path }: ActCase): readonly string[] {
  const whole = join(workspace, path);
  if (!statSync(whole).isDirectory()) return [whole];
  return readdirSync(whole)
    .filter((name) => /\.ya?ml$/.test(name))
    .toSorted()
    .map((name) => join(whole, name));
}

function targetOf(one: ActCase, file: string): string {
  return `${slugOf(one)}--${file.split('/').at(-1) ?? ''}`;
}

function dropContainerJob(file: string): void {
  const text = readFileSync(file, 'utf8');
  if (!text.includes(CONTAINER_JOB)) return;
  const document = parseDocument(text);
  document.deleteIn(['jobs', CONTAINER_JOB]);
  writeFileSync(file, document.toString());
}
