import { AppError } from '../../shared/app-error.ts';
import { createGit, type GitOptions, type GitResult } from '../host/git/run-git.ts';
import { fetchArguments } from '../host/sandbox/commit-repository.ts';
import type { CommitFetcher } from '../model/storage.ts';
import type { SyncConfig } from './sync-config.ts';

/** The code host as git sees it: where repositories are, and with which credentials. */
export interface RemoteGit {
  /** Of `<owner>/<repo><suffix>.git`. */
  url(owner: string, repo: string, suffix?: '' | '.wiki'): string;
  /**
   * Runs git in `dir` with the credentials, which only this host gets: they stand in no argument, are
   * not given to another host on a redirect, and the user's own helpers are not asked.
   * Errors: those of Git.tryRun.
   */
  run(dir: string, args: readonly string[], options?: GitOptions): Promise<GitResult>;
}

const PROTOCOLS: readonly string[] = ['https:', 'http:', 'file:'];

/**
 * `gitUrl`: where repositories are found, such as `https://github.com`; `file:` for a folder of bare ones.
 * Errors: CONFIG_INVALID for anything else (git would run programs for `ext::`).
 */
export function createRemoteGit(gitUrl: string, token: string | undefined): RemoteGit {
  const base = URL.parse(gitUrl);
  if (base === null || !PROTOCOLS.includes(base.protocol) || base.username !== '') {
    throw new AppError('CONFIG_INVALID', 'hostGitUrl must be an http, https or file URL', {
      field: 'hostGitUrl',
    });
  }
  const prefix = base.href.replace(/\/+$/, '');
  const scheme = base.protocol.slice(0, -1);
  const config = remoteConfig(prefix, scheme, scheme === 'file' ? undefined : token);
  return {
    url: (owner, repo, suffix = '') => `${prefix}/${owner}/${repo}${suffix}.git`,
    run: (dir, args, options = {}) =>
      createGit(dir).tryRun(args, { ...options, config: { ...config, ...options.config } }),
  };
}

function remoteConfig(
  prefix: string,
  scheme: string,
  token: string | undefined,
): Record<string, string> {
  return {
    'credential.helper': '',
    // git would go on to send the header to where it was sent to.
    'http.followRedirects': 'false',
    // Whatever the project's own settings rewrite the address to.
    'protocol.allow': 'never',
    [`protocol.${scheme}.allow`]: 'always',
    ...(token === undefined
      ? {}
      : {
          [`http.${prefix}/.extraHeader`]: `Authorization: Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`,
        }),
  };
}

/**
 * A failed remote command for the caller: what it means when git's text says so, without addresses.
 * The text itself is the cause, for the log.
 */
export function remoteFailure(what: string, result: GitResult): AppError {
  const { stderr } = result;
  const cause = new Error(stderr.trim());
  if (/not found|does not exist|not appear to be a git repository/i.test(stderr)) {
    return new AppError(
      'UPSTREAM_ERROR',
      `${what}: the code host has no such repository`,
      { kind: 'missing' },
      cause,
    );
  }
  if (/Authentication failed|could not read Username|returned error: 40[13]/i.test(stderr)) {
    return new AppError(
      'UPSTREAM_ERROR',
      `${what}: the code host refused the credentials`,
      { kind: 'credentials' },
      cause,
    );
  }
  return new AppError(
    'UPSTREAM_ERROR',
    `${what}: git ended with code ${result.exitCode}`,
    {},
    cause,
  );
}

const FETCH_TIMEOUT_MS = 10 * 60_000;

/**
 * Fetches from the repository of the sync configuration, or another one of the same host, with the
 * runner's credentials, which are written nowhere.
 */
export function createCommitFetcher(remote: RemoteGit, config: () => SyncConfig): CommitFetcher {
  return {
    async fetch(dir, what, repository) {
      const { owner, repo } = config().host;
      const [otherOwner, otherRepo] = repository?.split('/') ?? [owner, repo];
      if (owner === '' || repo === '' || !otherOwner || !otherRepo) return false;
      const url = remote.url(otherOwner, otherRepo);
      const result = await remote.run(dir, fetchArguments(url, what), {
        timeoutMs: FETCH_TIMEOUT_MS,
      });
      return result.exitCode === 0;
    },
  };
}
