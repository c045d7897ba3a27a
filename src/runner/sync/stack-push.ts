import { AppError } from '../../shared/app-error.ts';
import { createGit, mustRef, type Git, type GitResult } from '../host/git/run-git.ts';
import { printable } from './host-answer.ts';
import type { PushMemory } from './push-memory.ts';
import { remoteFailure, type RemoteGit } from './remote-git.ts';
import type { Layer } from './stack-plan.ts';

const PUSH_TIMEOUT_MS = 300_000;

/** The project's repository and the one of the host. */
export type PushTarget = {
  readonly remote: RemoteGit;
  readonly projectDir: string;
  readonly url: string;
  readonly signal: AbortSignal;
};

/** The host's branches as the stack sees them. */
export type RemoteState = {
  readonly baseSha: string;
  /** Commit of each branch below the prefix and of each branch asked for. */
  readonly branches: ReadonlyMap<string, string>;
};

/**
 * Fetches `base` and lists the branches that a stack may touch.
 * Errors: INVALID_REF when the host has no such base, UPSTREAM_ERROR.
 */
export async function readRemote(
  target: PushTarget,
  base: string,
  patterns: readonly string[],
): Promise<RemoteState> {
  const { remote, projectDir, url, signal } = target;
  const branches = await listBranches(target, [base, ...patterns]);
  const baseSha = branches.get(base);
  if (baseSha === undefined) {
    throw new AppError('INVALID_REF', `the code host has no branch ${base}`, { field: 'base' });
  }
  const fetched = await remote.run(
    projectDir,
    [
      'fetch',
      '--quiet',
      '--no-tags',
      '--no-write-fetch-head',
      '--no-recurse-submodules',
      '--end-of-options',
      url,
      `refs/heads/${base}`,
    ],
    { timeoutMs: PUSH_TIMEOUT_MS, signal },
  );
  if (fetched.exitCode !== 0) throw remoteFailure('fetching the base', fetched);
  // No ref is left in the project's repository: commits without one stay for weeks.
  if (!(await isKnown(createGit(projectDir), baseSha))) {
    throw new AppError('UPSTREAM_ERROR', `branch ${base} was rewritten just now; try again`);
  }
  return { baseSha, branches };
}

/** The commits of the host's branches that match. Errors: UPSTREAM_ERROR. */
async function listBranches(
  { remote, projectDir, url, signal }: PushTarget,
  patterns: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = patterns.map((name) => `refs/heads/${name}`);
  const args = ['ls-remote', '--end-of-options', url, ...wanted];
  const listed = await remote.run(projectDir, args, { signal });
  if (listed.exitCode !== 0) throw remoteFailure('reading branches', listed);
  const branches = new Map<string, string>();
  for (const line of listed.stdout.toString('utf8').split('\n')) {
    const [, sha, name] = /^([0-9a-f]{40,64})\trefs\/heads\/(.+)$/.exec(line) ?? [];
    if (sha !== undefined && name !== undefined) branches.set(name, sha);
  }
  return branches;
}

export type Lease = Layer & {
  /** What the branch must still be on the host; '' when it must not exist. */
  readonly expected: string;
  readonly isPushed: boolean;
};

/**
 * What each branch may be replaced from. That is what this workspace pushed last; without a memory of
 * it, a commit that this repository knows (an amended one stays in it); or one that the new stack
 * contains. Anything else was pushed by somebody else.
 * Errors: LEASE_FAILED, metadata.branch.
 */
export async function leasesOf(
  git: Git,
  layers: readonly Layer[],
  state: RemoteState,
  memory: PushMemory,
): Promise<readonly Lease[]> {
  const leases: Lease[] = [];
  const top = layers.at(-1)?.sha ?? '';
  for (const layer of layers) {
    const present = state.branches.get(layer.branch) ?? '';
    const isPushed = present === layer.sha;
    const isOurs =
      present === '' ||
      isPushed ||
      present === memory.get(layer.branch) ||
      (await isAncestor(git, present, top)) ||
      (memory.get(layer.branch) === undefined && (await isKnown(git, present)));
    if (!isOurs) throw leaseFailed(layer.branch);
    leases.push({ ...layer, expected: present, isPushed });
  }
  return leases;
}

/**
 * Pushes all branches that differ, in one transaction on the host.
 * Errors: LEASE_FAILED when one has moved meanwhile, UPSTREAM_ERROR when the host refuses; nothing is
 * pushed then.
 */
export async function pushLeases(target: PushTarget, leases: readonly Lease[]): Promise<void> {
  const { remote, projectDir, url, signal } = target;
  const changed = leases.filter(({ isPushed }) => !isPushed);
  if (changed.length === 0) return;
  const result = await remote.run(
    projectDir,
    [
      'push',
      '--porcelain',
      '--atomic',
      '--no-verify',
      '--no-signed',
      '--no-follow-tags',
      '--recurse-submodules=no',
      ...changed.map(
        ({ branch, expected }) => `--force-with-lease=refs/heads/${branch}:${expected}`,
      ),
      '--end-of-options',
      url,
      ...changed.map(({ branch, sha }) => `${sha}:refs/heads/${branch}`),
    ],
    { timeoutMs: PUSH_TIMEOUT_MS, signal },
  );
  if (result.exitCode !== 0) throw await pushFailure(target, changed, result);
}

/** The host names the branch it did not take; of a transaction that failed it says nothing more. */
async function pushFailure(
  target: PushTarget,
  leases: readonly Lease[],
  result: GitResult,
): Promise<AppError> {
  const rejected = result.stdout
    .toString('utf8')
    .split('\n')
    .map((line) => /^!\t[^\t]*:refs\/heads\/([^\t]+)\t\[[^\]]*\] \((.*)\)$/.exec(line))
    .filter((match) => match !== null);
  const stale = rejected.find(([, , why]) =>
    /stale info|fetch first|non-fast-forward/.test(why ?? ''),
  );
  const moved = stale?.[1] ?? (await movedBranch(target, leases));
  if (moved !== undefined) return leaseFailed(moved);
  const first = rejected.find(([, , why]) => !/atomic/.test(why ?? '')) ?? rejected[0];
  if (first === undefined) return remoteFailure('pushing', result);
  return new AppError(
    'UPSTREAM_ERROR',
    `the code host did not take branch ${first[1] ?? ''}: ${printable(first[2] ?? '')}`,
    {},
    new Error(result.stderr.trim()),
  );
}

/** A branch that is no longer where its lease says. */
async function movedBranch(
  target: PushTarget,
  leases: readonly Lease[],
): Promise<string | undefined> {
  const now = await listBranches(
    target,
    leases.map(({ branch }) => branch),
  );
  return leases.find(({ branch, expected }) => (now.get(branch) ?? '') !== expected)?.branch;
}

/**
 * `name` as a branch of the host: what git takes as one. Errors: INVALID_REF, metadata.field.
 * Cost: one process.
 */
export async function mustBranchName(git: Git, name: string, field: string): Promise<string> {
  const isFine = await git
    .tryRun(['check-ref-format', `refs/heads/${mustRef(name)}`])
    .then(({ exitCode }) => exitCode === 0);
  if (!isFine || /[*?[\\]/.test(name)) {
    throw new AppError('INVALID_REF', `${field}: not the name of a branch`, { field });
  }
  return name;
}

async function isAncestor(git: Git, older: string, newer: string): Promise<boolean> {
  return (
    (await isKnown(git, older)) &&
    (await git.tryRun(['merge-base', '--is-ancestor', older, newer])).exitCode === 0
  );
}

async function isKnown(git: Git, sha: string): Promise<boolean> {
  return (await git.tryRun(['cat-file', '-e', `${sha}^{commit}`])).exitCode === 0;
}

function leaseFailed(branch: string): AppError {
  return new AppError(
    'LEASE_FAILED',
    `branch ${branch} was changed on the code host by somebody else; fetch and rebase first`,
    { branch },
  );
}
