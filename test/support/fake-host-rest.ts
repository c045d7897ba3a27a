import {
  invalid,
  issueJson,
  NOT_FOUND,
  page,
  type RestAnswer,
  type RestCall,
} from './fake-host-answers.ts';
import { answerPulls, answerStacks } from './fake-host-pulls.ts';
import type { FakeComment, FakeIssue, FakeRelease, HostState } from './fake-host-state.ts';

/** The part of GitHub's REST API that a runner needs. Anything else is 404. */
export async function answerRest(
  state: HostState,
  method: string,
  url: URL,
  body: unknown,
): Promise<RestAnswer> {
  const match = /^\/repos\/([^/]+)\/([^/]+)\/(.+)$/.exec(url.pathname);
  const isOurs =
    match?.[1]?.toLowerCase() === state.owner.toLowerCase() &&
    match[2]?.toLowerCase() === state.repo.toLowerCase();
  if (!isOurs) return NOT_FOUND;
  const call: RestCall = {
    method,
    path: match[3] ?? '',
    url,
    body: (body ?? {}) as Readonly<Record<string, unknown>>,
  };
  const area = call.path.split('/')[0];
  if (area === 'issues') return answerIssues(state, call);
  if (area === 'pulls') return await answerPulls(state, call);
  if (area === 'stacks') return answerStacks(state, call);
  if (area === 'releases' && method === 'GET' && call.path === 'releases') {
    return page(
      state.releases.map((release) => releaseJson(state, release)),
      url,
    );
  }
  return answerSecrets(state, call);
}

function answerIssues(state: HostState, call: RestCall): RestAnswer {
  const { method, path, url } = call;
  if (path === 'issues' && method === 'GET') return listIssues(state, url);
  const ofIssue = /^issues\/(\d+)\/comments$/.exec(path);
  if (ofIssue !== null) {
    const issue = state.issues.get(Number(ofIssue[1]));
    if (issue === undefined) return NOT_FOUND;
    if (method === 'GET') {
      const comments = state.comments.filter((comment) => comment.issue === issue.number);
      return page(
        comments.map((comment) => commentJson(state, comment)),
        url,
      );
    }
    if (method === 'POST') return addComment(state, issue, call.body['body']);
  }
  const ofComment = /^issues\/comments\/(\d+)$/.exec(path);
  const index = state.comments.findIndex(({ id }) => id === Number(ofComment?.[1]));
  const comment = state.comments[index];
  if (comment === undefined) return NOT_FOUND;
  if (method === 'PATCH') {
    const { body } = call.body;
    if (typeof body !== 'string' || body === '') return invalid("body can't be blank");
    comment.body = body;
    comment.updated_at = state.now();
    return { status: 200, json: commentJson(state, comment) };
  }
  if (method === 'DELETE') {
    state.comments.splice(index, 1);
    return { status: 204, json: undefined };
  }
  return NOT_FOUND;
}

function listIssues(state: HostState, url: URL): RestAnswer {
  const wanted = url.searchParams.get('state') ?? 'open';
  const since = url.searchParams.get('since');
  const key = url.searchParams.get('sort') === 'updated' ? 'updated_at' : 'created_at';
  const sign = url.searchParams.get('direction') === 'asc' ? 1 : -1;
  const found = [...state.issues.values()]
    .filter((issue) => wanted === 'all' || issue.state === wanted)
    .filter((issue) => since === null || Date.parse(issue.updated_at) >= Date.parse(since))
    .sort((a, b) => sign * (Date.parse(a[key]) - Date.parse(b[key]) || a.number - b.number));
  return page(
    found.map((issue) => issueJson(state, issue)),
    url,
  );
}

function addComment(state: HostState, issue: FakeIssue, body: unknown): RestAnswer {
  if (typeof body !== 'string' || body === '') return invalid("body can't be blank");
  const at = state.now();
  const comment: FakeComment = {
    id: state.nextId(),
    issue: issue.number,
    body,
    created_at: at,
    updated_at: at,
  };
  state.comments.push(comment);
  return { status: 201, json: commentJson(state, comment) };
}

function commentJson(state: HostState, comment: FakeComment): unknown {
  const { id, body, created_at, updated_at, issue } = comment;
  const html_url = `${state.origin}/${state.owner}/${state.repo}/issues/${issue}#issuecomment-${id}`;
  return { id, body, created_at, updated_at, html_url, user: { login: 'runner' } };
}

function releaseJson(state: HostState, release: FakeRelease): unknown {
  const html_url = `${state.origin}/${state.owner}/${state.repo}/releases/tag/${release.tag_name}`;
  return { ...release, html_url, author: { login: 'mona' }, published_at: release.created_at };
}

function answerSecrets(state: HostState, call: RestCall): RestAnswer {
  const match = /^(?:actions|environments\/([^/]+))\/secrets(?:\/([^/]+))?$/.exec(call.path);
  if (match === null) return NOT_FOUND;
  const secrets = state.secrets.get(decodeURIComponent(match[1] ?? ''));
  if (secrets === undefined) return NOT_FOUND;
  const name = match[2];
  if (name === undefined) return call.method === 'GET' ? listSecrets(secrets, call.url) : NOT_FOUND;
  if (name === 'public-key' && call.method === 'GET') {
    return { status: 200, json: { key_id: state.keyId, key: state.publicKey } };
  }
  if (call.method === 'DELETE') {
    return secrets.delete(name) ? { status: 204, json: undefined } : NOT_FOUND;
  }
  if (call.method !== 'PUT') return NOT_FOUND;
  const { encrypted_value: sealed, key_id: keyId } = call.body;
  if (typeof sealed !== 'string' || keyId !== state.keyId) return invalid('bad key or value');
  const status = secrets.has(name) ? 204 : 201;
  secrets.set(name, { name, sealed, updated_at: state.now() });
  return { status, json: status === 204 ? undefined : {} };
}

function listSecrets(
  secrets: ReadonlyMap<string, { readonly name: string; readonly updated_at: string }>,
  url: URL,
): RestAnswer {
  const all = [...secrets.values()].map(({ name, updated_at }) => ({
    name,
    created_at: updated_at,
    updated_at,
  }));
  const answer = page(all, url);
  return { ...answer, json: { total_count: all.length, secrets: answer.json } };
}
