import type { FakeIssue, HostState } from './fake-host-state.ts';

export type RestAnswer = {
  readonly status: number;
  readonly json: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};
export type RestCall = {
  readonly method: string;
  /** Below the repository, without a slash at its beginning, undecoded. */
  readonly path: string;
  readonly url: URL;
  readonly body: Readonly<Record<string, unknown>>;
};

export const NOT_FOUND: RestAnswer = { status: 404, json: { message: 'Not Found' } };

/** One page of `items` by `per_page` and `page`, with the Link header of the real API. */
export function page(items: readonly unknown[], url: URL): RestAnswer {
  const perPage = Math.min(100, Number(url.searchParams.get('per_page') ?? 30));
  const number = Number(url.searchParams.get('page') ?? 1);
  const last = Math.max(1, Math.ceil(items.length / perPage));
  const link = (target: number, relation: string): string => {
    const next = new URL(`/api/v3${url.pathname}${url.search}`, url);
    next.searchParams.set('page', String(target));
    return `<${next.href}>; rel="${relation}"`;
  };
  const links = number < last ? [link(number + 1, 'next'), link(last, 'last')] : [];
  return {
    status: 200,
    json: items.slice((number - 1) * perPage, number * perPage),
    ...(links.length === 0 ? {} : { headers: { link: links.join(', ') } }),
  };
}

export function invalid(message: string): RestAnswer {
  return { status: 422, json: { message: 'Validation Failed', errors: [{ message }] } };
}

export function issueJson(state: HostState, issue: FakeIssue): unknown {
  const { pull, user, labels, ...rest } = issue;
  const kind = pull === undefined ? 'issues' : 'pull';
  return {
    id: issue.number + 100_000,
    ...rest,
    user: { login: user },
    labels: labels.map((name) => ({ name })),
    html_url: `${state.origin}/${state.owner}/${state.repo}/${kind}/${issue.number}`,
    ...(pull === undefined ? {} : { pull_request: { merged_at: pull.merged_at } }),
  };
}
