import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { AppError } from '../../../shared/app-error.ts';
import type { RemoteReference } from '../../language/action-reference.ts';
import { createGit, type Git, type GitResult, mustRef } from '../git/run-git.ts';

const TIMEOUT_MS = 10 * 60_000;
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** Files as they are in the commit, whatever the user's settings would make of them. */
const CHECKOUT = {
  'core.autocrlf': 'false',
  'core.symlinks': 'true',
  'core.fileMode': 'true',
  'filter.lfs.smudge': '',
  'filter.lfs.required': 'false',
};

export type ActionOrigin = {
  /** Without a `/` at its end. */
  readonly url: string;
  /** For that host alone. */
  readonly token?: string | undefined;
};

/**
 * Checks out an action's repository into `target`, which is not there yet, without its history, and answers
 * with the commit. `commit`: this one and no other. Submodules and files of LFS are not fetched.
 * Errors: UPSTREAM_ERROR, INVALID_REF.
 */
export async function fetchAction(
  { repository, ref }: Pick<RemoteReference, 'repository' | 'ref'>,
  target: string,
  origin: ActionOrigin,
  commit?: string,
): Promise<string> {
  const gitDir = `${target}.${randomUUID()}.git`;
  await mkdir(gitDir, { recursive: true, mode: 0o700 });
  await mkdir(target, { mode: 0o700 });
  try {
    const remote = new Remote(createGit(gitDir), `${origin.url}/${repository}`, origin);
    const wanted = commit ?? (COMMIT.test(ref) ? ref : undefined);
    const found = wanted ?? (await remote.resolve(mustRef(ref)));
    const name = `${repository}@${ref}`;
    if (found === undefined) {
      throw new AppError('INVALID_REF', `${name}: there is no such branch, tag or commit`);
    }
    await remote.fetch(found, name);
    const args = ['--work-tree', target, 'checkout', '--quiet', '--force', found, '--', '.'];
    await createGit(gitDir).run(args, { config: CHECKOUT, timeoutMs: TIMEOUT_MS });
    return found;
  } finally {
    await rm(gitDir, { recursive: true, force: true });
  }
}

class Remote {
  readonly #git: Git;
  readonly #url: string;
  readonly #config: Readonly<Record<string, string>>;

  constructor(git: Git, url: string, { token, url: base }: ActionOrigin) {
    this.#git = git;
    this.#url = url;
    const basic = Buffer.from(`x-access-token:${token ?? ''}`).toString('base64');
    this.#config =
      token === undefined
        ? {}
        : {
            [`http.${base}/.extraHeader`]: `Authorization: Basic ${basic}`,
            // git would send the header on to where it is sent to.
            'http.followRedirects': 'false',
          };
  }

  /** The commit of a tag, else of a branch. */
  async resolve(ref: string): Promise<string | undefined> {
    const names = [`refs/tags/${ref}^{}`, `refs/tags/${ref}`, `refs/heads/${ref}`, ref];
    const patterns = [`refs/tags/${ref}^{}`, `refs/tags/${ref}`, `refs/heads/${ref}`];
    if (ref.startsWith('refs/')) patterns.push(ref);
    const result = await this.#run([
      'ls-remote',
      '--quiet',
      '--end-of-options',
      this.#url,
      ...patterns,
    ]);
    if (result.exitCode !== 0) throw failure(this.#url, result);
    const found = new Map<string, string>();
    for (const line of result.stdout.toString('utf8').split('\n')) {
      const [commit = '', name = ''] = line.split('\t');
      found.set(name, commit);
    }
    return names.map((name) => found.get(name)).find((commit) => commit !== undefined);
  }

  /** Makes `commit` be there. A server that gives no single commits is asked for all branches and tags. */
  async fetch(commit: string, name: string): Promise<void> {
    const format = commit.length === 64 ? 'sha256' : 'sha1';
    await this.#git.run(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`]);
    const common = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head'];
    const one = await this.#run([...common, '--depth=1', '--end-of-options', this.#url, commit]);
    if (one.exitCode === 0) return;
    const refs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];
    const all = await this.#run([...common, '--end-of-options', this.#url, ...refs]);
    if (all.exitCode !== 0) throw failure(this.#url, all);
    const args = ['cat-file', '-e', `${commit}^{commit}`];
    const { exitCode } = await this.#git.tryRun(args);
    if (exitCode === 0) return;
    throw new AppError('INVALID_REF', `${name}: its repository has no commit ${commit}`);
  }

  async #run(args: readonly string[]): Promise<GitResult> {
    return await this.#git.tryRun(args, { config: this.#config, timeoutMs: TIMEOUT_MS });
  }
}

function failure(url: string, { stderr, exitCode }: GitResult): AppError {
  const line = stderr.split('\n').findLast((text) => /^(?:fatal|error|remote):/.test(text));
  const why = (line ?? `git ended with code ${exitCode}`).replace(
    /^(?:fatal|error|remote):\s*/,
    '',
  );
  const cause = new Error(stderr.trim());
  return new AppError('UPSTREAM_ERROR', `${url}: ${why.slice(0, 300)}`, {}, cause);
}
