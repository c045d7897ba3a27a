import type { Git } from './run-git.ts';

/** With a scheme, or as scp(1) writes it; a path on this machine names no owner. */
const ON_A_HOST =
  /^(?:(?:https?|ssh|git):\/\/[^/]+\/|[^/\s]+@[^/:\s]+:(?!\/))(?:\S*\/)?([\w.-]+)\/([\w.-]+?)(?:\.git)?\/?$/;

/**
 * `owner/name` of the repository that the project was cloned from: the remote `origin`. Undefined when
 * there is none, it is on no host, or there is no git. Cost: one process.
 */
export async function originRepository(git: Git): Promise<string | undefined> {
  const result = await git.tryRun(['config', '--get', 'remote.origin.url']).catch(() => undefined);
  const url = result?.exitCode === 0 ? result.stdout.toString('utf8').trim() : '';
  const parts = ON_A_HOST.exec(url);
  return parts === null ? undefined : `${parts[1]}/${parts[2]}`;
}
