import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  invalid,
  issueJson,
  NOT_FOUND,
  page,
  type RestAnswer,
  type RestCall,
} from './fake-host-answers.ts';
import { gitIn } from './fake-host-git.ts';
import type { FakeIssue, FakePull, FakeStack, HostState } from './fake-host-state.ts';

type PullIssue = FakeIssue & { pull: FakePull };

/** Pull requests of branches of the repository itself; their commits are looked up in the real one. */
export async function answerPulls(state: HostState, call: RestCall): Promise<RestAnswer> {
  const { method, path, url, body } = call;
  if (path === 'pulls' && method === 'GET') {
    const wanted = url.searchParams.get('state') ?? 'open';
    const head = url.searchParams.get('head');
    const found = pullsOf(state)
      .filter((issue) => wanted === 'all' || issue.state === wanted)
      .filter((issue) => head === null || head === `${state.owner}:${issue.pull.head}`);
    const list: unknown[] = [];
    for (const issue of found.toReversed()) list.push(await pullJson(state, issue));
    return page(list, url);
  }
  if (path === 'pulls' && method === 'POST') return await createPull(state, body);
  const issue = state.issues.get(Number(/^pulls\/(\d+)$/.exec(path)?.[1]));
  if (issue === undefined || !isPull(issue)) return NOT_FOUND;
  if (method === 'GET') return { status: 200, json: await pullJson(state, issue) };
  if (method !== 'PATCH') return NOT_FOUND;
  const { base, title, body: text, state: newState } = body;
  if (typeof base === 'string') {
    if ((await shaOf(state, base)) === undefined) return invalid('base is not a branch');
    // Stricter than it may be: whoever works here works there.
    const isStacked = state.stacks.some(({ pulls }) => pulls.includes(issue.number));
    if (isStacked && issue.pull.base !== base) return invalid('the base belongs to the stack');
    issue.pull.base = base;
  }
  if (typeof title === 'string') issue.title = title;
  if (typeof text === 'string') issue.body = text;
  if (newState === 'open' || newState === 'closed') issue.state = newState;
  issue.updated_at = state.now();
  await settlePulls(state);
  return { status: 200, json: await pullJson(state, issue) };
}

/** As on the real host: a pull request whose head its base contains counts as merged, for good. */
export async function settlePulls(state: HostState): Promise<void> {
  for (const issue of pullsOf(state)) {
    if (issue.state === 'closed') continue;
    const head = await shaOf(state, issue.pull.head);
    const base = await shaOf(state, issue.pull.base);
    if (head === undefined || base === undefined) continue;
    if (!(await isAncestor(state, head, base))) continue;
    issue.state = 'closed';
    issue.pull.merged_at = state.now();
  }
}

async function createPull(
  state: HostState,
  body: Readonly<Record<string, unknown>>,
): Promise<RestAnswer> {
  const { head, base, title, body: text, draft } = body;
  if (typeof head !== 'string' || typeof base !== 'string' || typeof title !== 'string') {
    return invalid('head, base and title are required');
  }
  const headSha = await shaOf(state, head);
  const baseSha = await shaOf(state, base);
  if (headSha === undefined || baseSha === undefined) return invalid('head or base is invalid');
  const isDouble = pullsOf(state).some(
    ({ pull, state: is }) => is === 'open' && pull.head === head,
  );
  if (isDouble) return invalid(`A pull request already exists for ${state.owner}:${head}.`);
  if (await isAncestor(state, headSha, baseSha))
    return invalid(`No commits between ${base} and ${head}`);
  const issue = state.addIssue({
    title,
    body: typeof text === 'string' ? text : '',
    pull: { head, base, draft: draft === true, merged_at: null },
  });
  return { status: 201, json: await pullJson(state, issue as PullIssue) };
}

async function pullJson(state: HostState, issue: PullIssue): Promise<unknown> {
  const { head, base, draft, merged_at } = issue.pull;
  const stack = state.stacks.find(({ pulls }) => pulls.includes(issue.number));
  return {
    ...(issueJson(state, issue) as object),
    draft,
    merged_at,
    head: { ref: head, sha: (await shaOf(state, head)) ?? '' },
    base: { ref: base, sha: (await shaOf(state, base)) ?? '' },
    stack:
      stack === undefined
        ? null
        : {
            id: stack.id,
            number: stack.number,
            size: stack.pulls.length,
            position: stack.pulls.indexOf(issue.number) + 1,
          },
  };
}

/** The Stacks API (github.github.io/gh-stack/reference/rest-api). */
export function answerStacks(state: HostState, call: RestCall): RestAnswer {
  const { method, path, body, url } = call;
  if (!state.hasStacks) return NOT_FOUND;
  const numbers = Array.isArray(body['pull_requests']) ? (body['pull_requests'] as number[]) : [];
  if (path === 'stacks' && method === 'GET') {
    return page(
      state.stacks.map((stack) => stackJson(state, stack)),
      url,
    );
  }
  if (path === 'stacks' && method === 'POST') {
    const problem = numbers.length < 2 ? 'at least 2' : chainProblem(state, numbers, undefined);
    if (problem !== undefined) return invalid(problem);
    const id = state.nextId();
    const stack: FakeStack = { id, number: id - 900, pulls: [...numbers] };
    state.stacks.push(stack);
    return { status: 201, json: stackJson(state, stack) };
  }
  const [, number, action] = /^stacks\/(\d+)(?:\/(add|unstack))?$/.exec(path) ?? [];
  const index = state.stacks.findIndex((stack) => stack.number === Number(number));
  const stack = state.stacks[index];
  if (stack === undefined) return NOT_FOUND;
  if (method === 'GET' && action === undefined)
    return { status: 200, json: stackJson(state, stack) };
  if (method === 'POST' && action === 'unstack') {
    state.stacks.splice(index, 1);
    return { status: 204, json: undefined };
  }
  if (method !== 'POST' || action !== 'add') return NOT_FOUND;
  const problem = chainProblem(state, numbers, stack.pulls.at(-1));
  if (problem !== undefined) return invalid(problem);
  stack.pulls.push(...numbers);
  return { status: 200, json: stackJson(state, stack) };
}

function chainProblem(
  state: HostState,
  numbers: readonly number[],
  below: number | undefined,
): string | undefined {
  let previous = below === undefined ? undefined : pullOf(state, below);
  for (const number of numbers) {
    const pull = pullOf(state, number);
    if (pull === undefined || pull.state !== 'open')
      return `#${number} is not an open pull request`;
    if (state.stacks.some(({ pulls }) => pulls.includes(number))) return `#${number} is in a stack`;
    if (previous !== undefined && pull.pull.base !== previous.pull.head) {
      return `the base of #${number} is not the head of the one below it`;
    }
    previous = pull;
  }
  return undefined;
}

function stackJson(state: HostState, stack: FakeStack): unknown {
  const bottom = pullOf(state, stack.pulls[0] ?? 0);
  return {
    id: stack.id,
    number: stack.number,
    base: { ref: bottom?.pull.base ?? '' },
    open: true,
    pull_requests: stack.pulls.map((number) => ({ number, state: pullOf(state, number)?.state })),
  };
}

function pullsOf(state: HostState): readonly PullIssue[] {
  return [...state.issues.values()].filter(isPull);
}

function pullOf(state: HostState, number: number): PullIssue | undefined {
  const issue = state.issues.get(number);
  return issue !== undefined && isPull(issue) ? issue : undefined;
}

function isPull(issue: FakeIssue): issue is PullIssue {
  return issue.pull !== undefined;
}

/** Of the file that git writes for a branch: a process for each question was most of what these tests took. */
async function shaOf({ repositoryDir }: HostState, branch: string): Promise<string | undefined> {
  try {
    return (await readFile(join(repositoryDir, 'refs/heads', branch), 'utf8')).trim();
  } catch {
    return undefined;
  }
}

/** Commits that are there stay as they are. */
const ancestors = new Map<string, boolean>();

async function isAncestor(state: HostState, older: string, newer: string): Promise<boolean> {
  const key = `${state.repositoryDir} ${older} ${newer}`;
  const known = ancestors.get(key);
  if (known !== undefined) return known;
  const answer = await gitIn(state.repositoryDir, 'merge-base', '--is-ancestor', older, newer).then(
    () => true,
    // 1 says no; any other status, that a commit is not there.
    (error: { readonly code?: unknown }) => (error.code === 1 ? false : undefined),
  );
  if (answer !== undefined) ancestors.set(key, answer);
  return answer ?? false;
}
