import { readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { Annotation } from '../model/run.ts';
import type { Command } from './command.ts';
import type { ProblemMatch } from './problem-matchers.ts';

/** Folders that are looked at on the way from a file to its repository. */
const LEVELS_MAX = 50;

type OpenPlace = Pick<Annotation, 'file' | 'line' | 'endLine' | 'column' | 'endColumn'>;

/** The repository that a job works on, to distinguish its files from those of repositories inside it. */
export type RepositoryPlace = {
  /** Absolute: GITHUB_WORKSPACE. */
  readonly workspaceDir: string;
  /** `owner/name` and its server; without them every repository within the workspace counts as other. */
  readonly name?: string | undefined;
  readonly serverUrl?: string | undefined;
  /** The job may read less than the runner. */
  readonly isApart?: boolean | undefined;
};

/**
 * Where an error, warning or notice command points. What does not fit together is left out: ends without
 * starts, ends before starts, columns over several lines (the rules of the official runner).
 */
export function placeOfCommand(command: Command, workspaceDir: string): OpenPlace {
  const { properties } = command;
  const file = properties.get('file');
  const endLine = readNumber(properties.get('endline'));
  let line = readNumber(properties.get('line')) ?? endLine;
  const endColumn = readNumber(properties.get('endcolumn'));
  let column =
    readNumber(properties.get('col')) ?? readNumber(properties.get('column')) ?? endColumn;
  const hasBadColumns =
    line === undefined ||
    (endLine !== undefined && endLine !== line) ||
    (column !== undefined && endColumn !== undefined && endColumn < column);
  if (hasBadColumns) {
    column = undefined;
  }
  if (line !== undefined && endLine !== undefined && endLine < line) {
    line = undefined;
  }
  return {
    file: file === undefined ? undefined : shownPath(file, workspaceDir),
    line,
    endLine: line === undefined ? undefined : endLine,
    column,
    endColumn: column === undefined ? undefined : endColumn,
  };
}

function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/u.test(text.trim()) ? Number(text) : undefined;
}

function shownPath(file: string, workspaceDir: string): string {
  const path = isAbsolute(file) ? relative(workspaceDir, file) : file;
  const isInside = path !== '' && path !== '..' && !path.startsWith(`..${sep}`);
  return (isInside ? path : file).replaceAll('\\', '/');
}

/**
 * Where a problem matcher's match points; a file that does not exist, or belongs to no or another
 * repository, is left out.
 */
export function placeOfMatch(match: ProblemMatch, repository: RepositoryPlace): OpenPlace {
  return {
    file: fileOfMatch(match, repository),
    line: readNumber(match.line),
    column: readNumber(match.column),
  };
}

function fileOfMatch(match: ProblemMatch, repository: RepositoryPlace): string | undefined {
  const named = match.file?.trim() ?? '';
  if (named === '' || named.includes('\0')) {
    return undefined;
  }
  const { workspaceDir } = repository;
  const from = match.fromPath ?? '';
  const rooted = from.trim() === '' || isAbsolute(named) ? named : join(dirname(from), named);
  const file = resolve(workspaceDir, rooted);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) {
    return undefined;
  }
  const isInside = file.startsWith(workspaceDir + sep);
  // Another repository is not looked into on behalf of a job that may read less than the runner.
  const root = repository.isApart === true && isInside ? workspaceDir : rootOf(file, repository);
  return root === undefined ? undefined : relative(root, file).replaceAll(sep, '/');
}

/** The folder of the repository that `file` is in, if that is the one of the job. */
function rootOf(file: string, repository: RepositoryPlace): string | undefined {
  let folder = dirname(file);
  for (let level = 0; level < LEVELS_MAX; level += 1) {
    // The workspace itself, repository or not, is what the job works on.
    if (folder === repository.workspaceDir) {
      return folder;
    }
    const config = readGitConfig(folder);
    if (config !== undefined) {
      return isConfigOf(config, repository) ? folder : undefined;
    }
    const parent = dirname(folder);
    if (parent === folder) {
      return undefined;
    }
    folder = parent;
  }
  return undefined;
}

function readGitConfig(folder: string): string | undefined {
  const path = join(folder, '.git', 'config');
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    return undefined;
  }
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not for us to read: some repository, and not the job's.
    return '';
  }
}

function isConfigOf(config: string, repository: RepositoryPlace): boolean {
  const { name, serverUrl = 'https://github.com' } = repository;
  if (name === undefined || name === '') {
    return false;
  }
  const host = URL.canParse(serverUrl) ? new URL(serverUrl).host : serverUrl;
  const urls = new Set(
    [
      `url = ${serverUrl}/${name}`,
      `url = ${serverUrl}/${name}.git`,
      `url = git@${host}:${name}.git`,
    ].map((line) => line.toLowerCase()),
  );
  return config.split('\n').some((line) => urls.has(line.trim().toLowerCase()));
}
