import { AppError } from '../../shared/app-error.ts';
import { isCount, objectOf, textOf } from './cache-entry.ts';
import { STACKS_API_VERSION, type HostClient } from './host-client.ts';

/** A pull request as far as a stack needs it. */
export type Pull = {
  readonly number: number;
  readonly url: string;
  readonly base: string;
  readonly body: string;
  readonly title: string;
  /** Number of the stack that the host knows it in. */
  readonly stackNumber?: number | undefined;
};

/** The pull requests of one repository. All methods fail as HostClient.send does. */
export interface Pulls {
  /** The open one whose head is this branch of the repository itself. */
  findOpen(branch: string): Promise<Pull | undefined>;
  create(request: {
    readonly head: string;
    readonly base: string;
    readonly title: string;
    readonly body: string;
    readonly draft: boolean;
  }): Promise<Pull>;
  update(
    number: number,
    change: { readonly base?: string; readonly body?: string; readonly title?: string },
  ): Promise<Pull>;
  /**
   * Makes the host show the pull requests (bottom first) as one stack; the number of the stack,
   * undefined when it knows no stacks or does not take this one.
   */
  registerStack(pulls: readonly Pull[]): Promise<number | undefined>;
  /** Makes the host forget a stack; its pull requests stay. Nothing when it knows no such stack. */
  dissolveStack(number: number): Promise<void>;
}

export function createPulls(client: HostClient, owner: string, repo: string): Pulls {
  const repository = `/repos/${owner}/${repo}`;
  return {
    async findOpen(branch) {
      const query = new URLSearchParams({ state: 'open', head: `${owner}:${branch}` });
      const { json } = await client.send({
        method: 'GET',
        path: `${repository}/pulls?${query.toString()}`,
        apiVersion: STACKS_API_VERSION,
      });
      const items: readonly unknown[] = Array.isArray(json) ? json : [];
      // A host that does not know the filter answers with all of them.
      const own = items.find(
        (item) => textOf(objectOf(objectOf(item)?.['head'])?.['ref']) === branch,
      );
      return own === undefined ? undefined : pullOf(own);
    },
    async create(request) {
      const { json } = await client.send({
        method: 'POST',
        path: `${repository}/pulls`,
        body: request,
        apiVersion: STACKS_API_VERSION,
      });
      return pullOf(json);
    },
    async update(number, change) {
      const { json } = await client.send({
        method: 'PATCH',
        path: `${repository}/pulls/${number}`,
        body: change,
        apiVersion: STACKS_API_VERSION,
      });
      return pullOf(json);
    },
    registerStack: (pulls) => registerStack(client, repository, pulls),
    async dissolveStack(number) {
      await postStack(client, repository, `/${number}/unstack`);
    },
  };
}

/** No such API; not this stack (a fork's, one that overlaps another…). Plain bases do without. */
const NO_STACK: readonly number[] = [403, 404, 405, 409, 410, 422];

/**
 * A host extends stacks at the top only; for any other change its stack is dissolved and made anew
 * (github.github.io/gh-stack/reference/rest-api).
 */
async function registerStack(
  client: HostClient,
  repository: string,
  pulls: readonly Pull[],
): Promise<number | undefined> {
  const numbers = pulls.map(({ number }) => number);
  // The host wants two at least.
  if (numbers.length < 2) return undefined;
  const post = (path: string, body?: Readonly<Record<string, unknown>>): Promise<unknown> =>
    postStack(client, repository, path, body);
  for (const number of new Set(pulls.map(({ stackNumber }) => stackNumber))) {
    if (number === undefined) continue;
    const present = await membersOf(client, repository, number);
    if (present.length === 0) continue;
    // Ours is the bottom of it; others build on top.
    if (numbers.every((own, index) => own === present[index])) return number;
    if (present.every((member, index) => member === numbers[index])) {
      const added = numbers.slice(present.length);
      const extended = await post(`/${number}/add`, { pull_requests: added });
      if (extended !== undefined) return stackNumberOf(extended);
    }
    await post(`/${number}/unstack`);
  }
  return stackNumberOf(await post('', { pull_requests: numbers }));
}

/** The stack of the answer; undefined when the host does not do it. */
async function postStack(
  client: HostClient,
  repository: string,
  path: string,
  body?: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const { status, json } = await client.send({
    method: 'POST',
    path: `${repository}/stacks${path}`,
    ...(body === undefined ? {} : { body }),
    apiVersion: STACKS_API_VERSION,
    accept: NO_STACK,
  });
  return status >= 200 && status < 300 ? (json ?? {}) : undefined;
}

async function membersOf(
  client: HostClient,
  repository: string,
  stack: number,
): Promise<readonly number[]> {
  const { status, json } = await client.send({
    method: 'GET',
    path: `${repository}/stacks/${stack}`,
    apiVersion: STACKS_API_VERSION,
    accept: NO_STACK,
  });
  const members = status === 200 ? objectOf(json)?.['pull_requests'] : undefined;
  if (!Array.isArray(members)) return [];
  // What was merged stays in a stack, below what is still open.
  return members
    .map(objectOf)
    .filter((member) => member?.['state'] !== 'closed')
    .map((member) => member?.['number'])
    .filter(isCount);
}

function stackNumberOf(json: unknown): number | undefined {
  const number = objectOf(json)?.['number'];
  return isCount(number) ? number : undefined;
}

function pullOf(json: unknown): Pull {
  const pull = objectOf(json);
  const number = pull?.['number'];
  if (pull === undefined || !isCount(number)) {
    throw new AppError('UPSTREAM_ERROR', 'the code host answered without a pull request');
  }
  const stackNumber = stackNumberOf(pull['stack']);
  return {
    number,
    url: textOf(pull['html_url']),
    base: textOf(objectOf(pull['base'])?.['ref']),
    body: textOf(pull['body']),
    title: textOf(pull['title']),
    ...(stackNumber === undefined ? {} : { stackNumber }),
  };
}
