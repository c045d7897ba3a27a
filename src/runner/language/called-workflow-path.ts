import { join } from 'node:path';

const WORKFLOWS_FOLDER = join('.github', 'workflows');
const REMOTE_PATH = /^([^/@]+\/[^/@]+)\/(\.github\/workflows\/[^/@]+)@(.+)$/;

export type CalledWorkflowPlace = {
  /** Below the folder of the project, or of the remote ones. */
  readonly file: string;
  /** As it is shown, and as references of its own are read. */
  readonly path: string;
  readonly isRemote: boolean;
};

/** Whose a workflow is by its path, with the file's path there; undefined for one of the project. */
export function remoteOfWorkflow(
  path: string,
): { readonly repository: string; readonly file: string; readonly ref: string } | undefined {
  const [, repository, file, ref] = REMOTE_PATH.exec(path) ?? [];
  return repository === undefined || file === undefined || ref === undefined
    ? undefined
    : { repository, file, ref };
}

/**
 * Where a called workflow lies, relative to the project: below `.github/workflows` for `./` and `$/` of
 * the project's own, below `.runner/actions/<owner>/<repo>@<ref>` for a remote one and for `./` of a
 * remote caller. undefined for a reference that would leave those folders.
 */
export function locateCalledWorkflow(uses: string, from: string): CalledWorkflowPlace | undefined {
  if (uses.split(/[/\\]/).includes('..') || uses.includes('\0')) {
    return undefined;
  }
  const local = /^[.$]\/\.github\/workflows\/([^/\\@]+)$/.exec(uses)?.[1];
  const own = remoteOfWorkflow(from);
  if (local !== undefined && own !== undefined) {
    return locateRemote(own.repository, local, own.ref);
  }
  if (local !== undefined) {
    return {
      file: join(WORKFLOWS_FOLDER, local),
      path: `.github/workflows/${local}`,
      isRemote: false,
    };
  }
  const remote = /^([^/\\@]+\/[^/\\@]+)\/\.github\/workflows\/([^/\\@]+)@(.+)$/.exec(uses);
  const [, repo, file, ref] = remote ?? [];
  return repo === undefined || file === undefined || ref === undefined
    ? undefined
    : locateRemote(repo, file, ref);
}

function locateRemote(repo: string, file: string, ref: string): CalledWorkflowPlace {
  return {
    file: join('.runner', 'actions', `${repo}@${ref}`, WORKFLOWS_FOLDER, file),
    path: `${repo}/.github/workflows/${file}@${ref}`,
    isRemote: true,
  };
}
