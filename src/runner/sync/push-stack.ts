import { AppError } from '../../shared/app-error.ts';
import { createGit, type Git } from '../host/git/run-git.ts';
import type { ProblemReporter } from '../model/ports.ts';
import type { HostClient } from './host-client.ts';
import { knownRemote } from './known-remote.ts';
import { openPushMemory } from './push-memory.ts';
import type { RemoteGit } from './remote-git.ts';
import { planStack, type Layer } from './stack-plan.ts';
import { createPulls, type Pull, type Pulls } from './stack-pulls.ts';
import {
  leasesOf,
  mustBranchName,
  pushLeases,
  readRemote,
  type Lease,
  type PushTarget,
  type RemoteState,
} from './stack-push.ts';
import { withoutStackTable, withStackTable } from './stack-table.ts';
import type { PushRequest } from './sync-requests.ts';

/** A host takes titles of 256 and texts of 65,536 characters; the table needs some of these. */
const TITLE_CHARS_MAX = 256;
const TEXT_CHARS_MAX = 60_000;

/** Answer of POST /api/sync/pr, bottom first. */
export type PushResult = {
  readonly stack: readonly {
    readonly branch: string;
    readonly sha: string;
    readonly base: string;
    /** Absent in a dry run for a pull request that is not there yet. */
    readonly number?: number | undefined;
    readonly url?: string | undefined;
    readonly action: 'created' | 'updated' | 'unchanged';
  }[];
  readonly hostStackNumber?: number | undefined;
  readonly dryRun?: true | undefined;
  /**
   * Of a dry run without a token, to which the host did not show all: `branches` (no pull requests are known),
   * `project` (what the project saw of it last).
   */
  readonly knownFrom?: KnownFrom | undefined;
};

type KnownFrom = 'branches' | 'project';

export type PushContext = {
  readonly client: HostClient;
  readonly remote: RemoteGit;
  readonly projectDir: string;
  /** The sync folder. */
  readonly directory: string;
  readonly owner: string;
  readonly repo: string;
  /** Without one only dry runs are made, as far as the host shows itself to everybody. */
  readonly hasToken: boolean;
  readonly report: ProblemReporter;
  /** Ends git when the runner stops. */
  readonly signal: AbortSignal;
};

/** A layer with what it builds on and the pull request that it has already. */
type Planned = Lease & { readonly base: string; readonly pull: Pull | undefined };

/**
 * Pushes the commits between the host's `base` and `head` (or given branches) as one pull request each,
 * every one on the branch below it (the way of ghstack, spr and gh-stack). Pushed again it updates the
 * same pull requests. Nothing is changed when any branch was changed on the host by somebody else.
 * Errors: NOTHING_TO_PUSH (also for uncommitted changes), INVALID_REF, INVALID_REQUEST, LEASE_FAILED,
 * REMOTE_MISSING outside a git repository, UPSTREAM_ERROR.
 */
export async function pushStack(context: PushContext, request: PushRequest): Promise<PushResult> {
  const { projectDir, owner, repo, signal } = context;
  const target = {
    remote: context.remote,
    projectDir,
    url: context.remote.url(owner, repo),
    signal,
  };
  const git = createGit(projectDir);
  await mustBeReady(git, request);
  const { state, isSeen } = await stateFor(context, target, git, request);
  const layers = await planStack(git, request, state.baseSha, [...state.branches.keys()]);
  if (layers.some(({ branch }) => branch === request.base)) {
    throw new AppError('INVALID_REQUEST', 'the base cannot be part of the stack', {
      field: 'branches',
    });
  }
  const memory = await openPushMemory(context.directory, `${owner}/${repo}`, context.report);
  const leases = await leasesOf(git, layers, state, memory);
  const pulls = createPulls(context.client, owner, repo);
  if (request.isDryRun) return await dryRun(context, leases, isSeen ? pulls : undefined, request);
  const plan = await withPulls(leases, pulls, request.base);

  // A pull request whose head its base has come to contain counts as merged: while branches change
  // places, each stands on the trunk.
  await moveToTrunk(plan, pulls, request.base);
  await pushLeases(target, leases);
  await memory.remember(layers);
  const { stack, present } = await writePulls(plan, pulls, request);
  const hostStackNumber = await registered(pulls, present, context.report);
  return { stack, ...(hostStackNumber === undefined ? {} : { hostStackNumber }) };
}

/** `isSeen`: it is the host that reported. Without a token a dry run makes do with what the project knows. */
async function stateFor(
  { owner, repo, hasToken }: PushContext,
  target: PushTarget,
  git: Git,
  { base, branches, prefix }: PushRequest,
): Promise<{ readonly state: RemoteState; readonly isSeen: boolean }> {
  const patterns = branches ?? [`${prefix}*`];
  try {
    return { state: await readRemote(target, base, patterns), isSeen: true };
  } catch (error) {
    if (hasToken || !isUnseen(error)) throw error;
    return { state: await knownRemote(git, { owner, repo }, base, patterns), isSeen: false };
  }
}

/** What would be done; `pulls` undefined: the host showed nothing. */
async function dryRun(
  { hasToken }: PushContext,
  leases: readonly Lease[],
  pulls: Pulls | undefined,
  { base }: PushRequest,
): Promise<PushResult> {
  const answer = (plan: readonly Planned[], knownFrom?: KnownFrom): PushResult => ({
    stack: plan.map((layer) => dryRow(layer, knownFrom !== undefined)),
    dryRun: true,
    ...(knownFrom === undefined ? {} : { knownFrom }),
  });
  if (pulls === undefined) return answer(await withPulls(leases, undefined, base), 'project');
  try {
    return answer(await withPulls(leases, pulls, base));
  } catch (error) {
    if (hasToken || !isUnseen(error)) throw error;
    return answer(await withPulls(leases, undefined, base), 'branches');
  }
}

/** The host did not answer, or not to somebody without a token. */
function isUnseen(error: unknown): boolean {
  const reasons: readonly string[] = ['UPSTREAM_ERROR', 'DEADLINE_EXCEEDED'];
  return error instanceof AppError && reasons.includes(error.reason);
}

async function moveToTrunk(plan: readonly Planned[], pulls: Pulls, trunk: string): Promise<void> {
  const moving = plan.flatMap(({ pull, base }) =>
    pull !== undefined && pull.base !== base && pull.base !== trunk ? [pull] : [],
  );
  // The host's stack holds the old order.
  for (const number of new Set(moving.map(({ stackNumber }) => stackNumber))) {
    if (number !== undefined) await pulls.dissolveStack(number);
  }
  for (const { number } of moving) await pulls.update(number, { base: trunk });
}

/** The pull requests are there and work without: a host that cannot make them a stack is reported. */
async function registered(
  pulls: Pulls,
  present: readonly Pull[],
  report: ProblemReporter,
): Promise<number | undefined> {
  try {
    return await pulls.registerStack(present);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    report('sync.stack_failed', error);
    return undefined;
  }
}

async function mustBeReady(git: Git, request: PushRequest): Promise<void> {
  const inside = await git.tryRun(['rev-parse', '--git-dir']);
  if (inside.exitCode !== 0) {
    throw new AppError('REMOTE_MISSING', 'the project is not a git repository');
  }
  await mustBranchName(git, request.base, 'base');
  await mustBranchName(git, `${request.prefix}x`, 'prefix');
  for (const branch of request.branches ?? []) await mustBranchName(git, branch, 'branches');
  if (request.branches !== undefined || request.hasHead) return;
  // Only what is checked out can have changes that the push would leave behind.
  const status = await git.run(['status', '--porcelain', '--untracked-files=no']);
  if (status.trim() !== '') {
    throw new AppError(
      'NOTHING_TO_PUSH',
      'the working tree has uncommitted changes; commit them, or name the head to push without them',
      { field: 'head' },
    );
  }
}

/** `pulls` undefined: none can be asked for. */
async function withPulls(
  leases: readonly Lease[],
  pulls: Pulls | undefined,
  trunk: string,
): Promise<readonly Planned[]> {
  const plan: Planned[] = [];
  let base = trunk;
  for (const lease of leases) {
    const pull = lease.expected === '' ? undefined : await pulls?.findOpen(lease.branch);
    plan.push({ ...lease, base, pull });
    base = lease.branch;
  }
  return plan;
}

/** `isUnknown`: whether the branch has a pull request was not reported. */
function dryRow(layer: Planned, isUnknown: boolean): PushResult['stack'][number] {
  const { branch, sha, base, pull, isPushed, expected } = layer;
  if (pull === undefined && expected !== '' && isUnknown) {
    return { branch, sha, base, action: isPushed ? 'unchanged' : 'updated' };
  }
  if (pull === undefined) return { branch, sha, base, action: 'created' };
  const action = isPushed && pull.base === base ? 'unchanged' : 'updated';
  return { branch, sha, base, number: pull.number, url: pull.url, action };
}

/** First all pull requests, then their tables, which name the numbers of all. */
async function writePulls(
  plan: readonly Planned[],
  pulls: Pulls,
  request: PushRequest,
): Promise<{ readonly stack: PushResult['stack']; readonly present: readonly Pull[] }> {
  const present: Pull[] = [];
  for (const layer of plan) {
    present.push(
      layer.pull ??
        (await pulls.create({
          head: layer.branch,
          base: layer.base,
          title: titleOf(layer, plan, request),
          body: textOf(layer, plan, request),
          draft: request.isDraft,
        })),
    );
  }
  const numbers = present.map(({ number }) => number);
  const stack: PushResult['stack'][number][] = [];
  for (const [index, layer] of plan.entries()) {
    const { branch, sha, base, isPushed, pull: known } = layer;
    const pull = present[index];
    if (pull === undefined) continue;
    const change = changeOf(layer, pull, numbers, request);
    const isChanged = Object.keys(change).length > 0;
    if (isChanged) await pulls.update(pull.number, change);
    const action =
      known === undefined ? 'created' : isChanged || !isPushed ? 'updated' : 'unchanged';
    stack.push({ branch, sha, base, number: pull.number, url: pull.url, action });
  }
  return { stack, present };
}

function changeOf(
  layer: Planned,
  pull: Pull,
  numbers: readonly number[],
  request: PushRequest,
): { readonly base?: string; readonly body?: string; readonly title?: string } {
  const isAlone = numbers.length === 1;
  // What people wrote stays, unless this push brings a text of its own.
  const text = isAlone && request.body !== undefined ? request.body : pull.body;
  const body = isAlone
    ? withoutStackTable(text)
    : withStackTable(text, numbers, pull.number, request.base, request.title);
  // Moved to the trunk before the push, or never where it belongs.
  const mustMove = layer.pull !== undefined && layer.pull.base !== layer.base;
  return {
    ...(mustMove ? { base: layer.base } : {}),
    ...(body.trim() === pull.body.trim() ? {} : { body }),
    ...(isAlone && request.title !== undefined && request.title !== pull.title
      ? { title: request.title }
      : {}),
  };
}

/** `title` and `body` are those of a single pull request; of several, the title heads the table. */
function titleOf(layer: Layer, plan: readonly Layer[], request: PushRequest): string {
  const title = (plan.length === 1 ? request.title : undefined) ?? layer.subject;
  return shortened(title, TITLE_CHARS_MAX, '…');
}

function textOf(layer: Layer, plan: readonly Layer[], request: PushRequest): string {
  const isTop = layer === plan.at(-1);
  const text = (isTop ? request.body : undefined) ?? layer.text;
  return shortened(text, TEXT_CHARS_MAX, '\n\n… (the message of the commit goes on)');
}

function shortened(text: string, charsMax: number, mark: string): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - mark.length)}${mark}`;
}
