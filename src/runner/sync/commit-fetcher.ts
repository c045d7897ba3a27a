import { fetchArguments } from '../host/sandbox/commit-repository.ts';
import type { CommitFetcher } from '../model/storage.ts';
import type { RemoteGit } from './remote-git.ts';
import type { SyncConfig } from './sync-config.ts';

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
