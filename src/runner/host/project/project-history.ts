import { AppError } from '../../../shared/app-error.ts';
import type { CommitFacts, ProjectHistory } from '../../model/ports.ts';
import type { Git } from '../git/run-git.ts';

const SHA = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** Of what `git show` prints, one a line; the message, which may have several, is the last. */
const COMMIT_FORMAT = '--format=%H%n%P%n%cI%n%an%n%ae%n%B';
/** git's own trees of nothing, in both of its object formats. */
const EMPTY_TREES: Readonly<Record<number, string>> = {
  40: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  64: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
};
const PATHS_ONLY: readonly string[] = ['--name-only', '--no-renames', '--no-ext-diff', '-z'];

/** The history of the repository that the project lies in. Cost: one process a question, two for the default branch. */
export function createProjectHistory(git: Git): ProjectHistory {
  return {
    async commit(sha) {
      if (!SHA.test(sha)) return undefined;
      const text = await outputOf(git, ['show', '--no-patch', COMMIT_FORMAT, sha, '--']);
      return text === undefined ? undefined : commitIn(text);
    },
    async changedPaths(from, to) {
      if (!SHA.test(from) || !SHA.test(to)) return undefined;
      const start = /^0+$/.test(from) ? EMPTY_TREES[to.length] : from;
      if (start === undefined) return undefined;
      return pathsIn(await outputOf(git, ['diff', ...PATHS_ONLY, start, to, '--']));
    },
    async changedPathsSince(base, to) {
      if (!SHA.test(base) || !SHA.test(to)) return undefined;
      return pathsIn(await outputOf(git, ['diff', ...PATHS_ONLY, `${base}...${to}`, '--']));
    },
    async uncommittedPaths() {
      const changed = pathsIn(await outputOf(git, ['diff', ...PATHS_ONLY, 'HEAD', '--']));
      const args = ['ls-files', '--others', '--exclude-standard', '--full-name', '-z'];
      const others = pathsIn(await outputOf(git, args));
      return changed === undefined || others === undefined ? undefined : [...changed, ...others];
    },
    async defaultBranch() {
      const remote = 'refs/remotes/origin/';
      const head = await outputOf(git, ['symbolic-ref', '--quiet', `${remote}HEAD`]);
      const named = head?.trim() ?? '';
      if (named.startsWith(remote)) return named.slice(remote.length);
      const args = [
        'for-each-ref',
        '--format=%(refname:short)',
        'refs/heads/main',
        'refs/heads/master',
      ];
      const [first = ''] = (await outputOf(git, args))?.split('\n') ?? [];
      return first === '' ? undefined : first;
    },
  };
}

/** Undefined where git says that there is no such thing, or is not there itself. */
async function outputOf(git: Git, args: readonly string[]): Promise<string | undefined> {
  try {
    const { exitCode, stdout } = await git.tryRun(args);
    return exitCode === 0 ? stdout.toString('utf8') : undefined;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

function commitIn(text: string): CommitFacts | undefined {
  const [sha = '', parents = '', timestamp = '', name = '', email = '', ...message] =
    text.split('\n');
  if (!SHA.test(sha)) return undefined;
  return {
    sha,
    parents: parents.split(' ').filter((parent) => parent !== ''),
    message: message.join('\n').trimEnd(),
    timestamp,
    author: { name, email },
  };
}

function pathsIn(text: string | undefined): readonly string[] | undefined {
  return text?.split('\0').filter((path) => path !== '');
}
