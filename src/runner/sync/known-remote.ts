import { AppError } from '../../shared/app-error.ts';
import type { Git } from '../host/git/run-git.ts';
import type { RemoteState } from './stack-push.ts';

const ORIGIN = 'origin';

/**
 * The host's branches as the project saw them last, where the host shows nothing: its remote-tracking
 * branches of `owner/repo`, else of `origin`; of `base` also the branch of the project itself. `patterns` as
 * for readRemote. Errors: INVALID_REF when the project has no `base` either. Cost: two processes.
 */
export async function knownRemote(
  git: Git,
  repository: { readonly owner: string; readonly repo: string },
  base: string,
  patterns: readonly string[],
): Promise<RemoteState> {
  const tracked = `refs/remotes/${(await remoteNameOf(git, repository)) ?? ORIGIN}/`;
  const own = `refs/heads/${base}`;
  const listed = await git.run([
    'for-each-ref',
    '--format=%(objectname) %(refname)',
    own,
    ...[base, ...patterns].map((name) => tracked + name),
  ]);
  const branches = new Map<string, string>();
  let baseSha: string | undefined;
  for (const line of listed.split('\n')) {
    const [sha, ref = ''] = line.split(' ');
    if (sha === undefined || sha === '') continue;
    if (ref.startsWith(tracked)) branches.set(ref.slice(tracked.length), sha);
    else if (ref === own) baseSha = sha;
  }
  baseSha = branches.get(base) ?? baseSha;
  if (baseSha === undefined) {
    const text = `the code host shows its branches only with a token (RUNNER_HOST_TOKEN), and the project has no branch ${base}`;
    throw new AppError('INVALID_REF', text, { field: 'base' });
  }
  return { baseSha, branches };
}

/** The remote of the project whose address names the repository. */
async function remoteNameOf(
  git: Git,
  { owner, repo }: { readonly owner: string; readonly repo: string },
): Promise<string | undefined> {
  const { stdout } = await git.tryRun(['config', '--get-regexp', String.raw`^remote\..*\.url$`]);
  for (const line of stdout.toString('utf8').split('\n')) {
    const [, name, path] = /^remote\.(.+)\.url \S*?([^/:]+\/[^/]+?)(?:\.git)?\/?$/.exec(line) ?? [];
    if (path?.toLowerCase() === `${owner}/${repo}`.toLowerCase()) return name;
  }
  return undefined;
}
