import { originRepository } from '../host/git/origin-repository.ts';
import type { Git } from '../host/git/run-git.ts';
import type { ProjectIdentity } from '../scheduler/scheduler-options.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import type { SyncService } from '../sync/sync-service.ts';

/**
 * What workflows see in `github`: the repository that the synchronisation names, else the one that the
 * project was cloned from. Nobody said that the token is for that one. Undefined when there is neither.
 */
export async function identityOf(
  settings: RunnerSettings,
  sync: SyncService,
  git: Git,
): Promise<ProjectIdentity | undefined> {
  const { owner, repo } = sync.getConfig().host;
  if (owner !== '' && repo !== '') {
    return identityAt(settings, `${owner}/${repo}`, settings.hostToken ?? '');
  }
  const repository = await originRepository(git);
  return repository === undefined ? undefined : identityAt(settings, repository, '');
}

function identityAt(settings: RunnerSettings, repository: string, token: string): ProjectIdentity {
  const apiUrl = settings.hostApiUrl.replace(/\/+$/, '');
  return {
    repository,
    serverUrl: settings.hostGitUrl.replace(/\/+$/, ''),
    apiUrl,
    graphqlUrl: apiUrl.endsWith('/v3') ? `${apiUrl.slice(0, -3)}/graphql` : `${apiUrl}/graphql`,
    token,
  };
}
