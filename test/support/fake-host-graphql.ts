import type { RestAnswer } from './fake-host-answers.ts';
import type { FakeDiscussion, HostState } from './fake-host-state.ts';

/**
 * Discussions of the repository, newest update first, by pages of the query's `first`. Cursors name
 * the last discussion of a page, as the real ones do: what moves to the front does not shift the rest.
 */
export function answerGraphql(state: HostState, body: unknown): RestAnswer {
  const { query, variables } = (body ?? {}) as {
    query?: string;
    variables?: { owner?: string; repo?: string; after?: string | null };
  };
  const first = Number(/discussions\(\s*first:\s*(\d+)/.exec(query ?? '')?.[1] ?? Number.NaN);
  if (
    Number.isNaN(first) ||
    !/orderBy:\s*\{\s*field:\s*UPDATED_AT,\s*direction:\s*DESC/.test(query ?? '')
  ) {
    return {
      status: 200,
      json: { errors: [{ type: 'undefinedField', message: 'unknown query' }] },
    };
  }
  if (first < 1 || first > 100) {
    return {
      status: 200,
      json: { errors: [{ type: 'ARGUMENT_LIMIT', message: 'first is 1 to 100' }] },
    };
  }
  if (variables?.owner !== state.owner || variables.repo !== state.repo) {
    const message = 'Could not resolve to a Repository with that name.';
    return {
      status: 200,
      json: { data: { repository: null }, errors: [{ type: 'NOT_FOUND', message }] },
    };
  }
  const sorted = state.discussions.toSorted((a, b) => (orderOf(a) < orderOf(b) ? 1 : -1));
  const after = variables.after ?? null;
  const limit = after === null ? undefined : Buffer.from(after, 'base64').toString('utf8');
  const rest = limit === undefined ? sorted : sorted.filter((item) => orderOf(item) < limit);
  const nodes = rest.slice(0, first);
  const last = nodes.at(-1);
  const discussions = {
    pageInfo: {
      hasNextPage: rest.length > first,
      endCursor: last === undefined ? null : Buffer.from(orderOf(last)).toString('base64'),
    },
    nodes: nodes.map((item) => nodeOf(state, item)),
  };
  return { status: 200, json: { data: { repository: { discussions } } } };
}

function orderOf(discussion: FakeDiscussion): string {
  return `${discussion.updatedAt} ${String(discussion.number).padStart(10, '0')}`;
}

function nodeOf(state: HostState, discussion: FakeDiscussion): unknown {
  const { number, title, body, closed, createdAt, updatedAt, user, labels, category } = discussion;
  return {
    number,
    title,
    body,
    closed,
    createdAt,
    updatedAt,
    url: `${state.origin}/${state.owner}/${state.repo}/discussions/${number}`,
    author: { login: user },
    category: { name: category },
    labels: { nodes: labels.map((name) => ({ name })) },
  };
}
