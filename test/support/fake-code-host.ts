import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gitIn, serveGit } from './fake-host-git.ts';
import { answerGraphql } from './fake-host-graphql.ts';
import { settlePulls } from './fake-host-pulls.ts';
import { answerRest } from './fake-host-rest.ts';
import { createHostState, type HostState } from './fake-host-state.ts';

/** A request as the host saw it. */
export type SeenRequest = {
  readonly method: string;
  /** With the query, without `/api/v3`. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  status: number;
};

/** A planned misbehaviour: answers instead of the host, to the next `times` requests that match. */
export type PlannedAnswer = {
  readonly match?: RegExp;
  times?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Ends the connection without an answer. */
  readonly isBroken?: boolean;
  /** Does what was asked once this has resolved. */
  readonly delay?: Promise<void>;
  /** Does what was asked, then ends the connection: the answer is lost. */
  readonly losesAnswer?: boolean;
};

export type FakeHostOptions = {
  readonly owner?: string;
  readonly repo?: string;
  /** Default `host-token-for-tests`. */
  readonly token?: string;
  /** Whether it knows stacks of pull requests. Default true. */
  readonly hasStacks?: boolean;
  readonly port?: number;
};

/**
 * A code host of one repository on the loopback interface: a part of GitHub's REST and GraphQL APIs
 * (issues, comments, pull requests, stacks, releases, discussions, secrets; Link paging, ETags, rate
 * limits) and real bare repositories over smart HTTP. Knows nothing of the project's own code.
 */
export interface FakeCodeHost {
  readonly apiUrl: string;
  readonly gitUrl: string;
  /** The same repositories by path. */
  readonly fileGitUrl: string;
  readonly token: string;
  readonly owner: string;
  readonly repo: string;
  /** Everything it knows; tests write to it directly. */
  readonly state: HostState;
  readonly repositoryDir: string;
  readonly wikiDir: string;
  /** All API and git requests, oldest first. */
  readonly requests: SeenRequest[];
  plan(answer: PlannedAnswer): void;
  /** Runs git in the bare repository. */
  git(...args: readonly string[]): Promise<string>;
  /** Commits files to the wiki; an undefined text removes the file. */
  writeWiki(files: Readonly<Record<string, string | undefined>>, date?: string): Promise<void>;
  /** Sends a signed webhook to `url`. */
  deliver(
    url: string,
    event: string,
    payload: unknown,
    secret: string,
    deliveryId?: string,
  ): Promise<Response>;
  close(): Promise<void>;
}

export async function startFakeCodeHost(options: FakeHostOptions = {}): Promise<FakeCodeHost> {
  const { owner = 'octo', repo = 'demo', token = 'host-token-for-tests' } = options;
  const root = await mkdtemp(join(tmpdir(), 'fake-host-'));
  const repositoryDir = join(root, owner, `${repo}.git`);
  const wikiDir = join(root, owner, `${repo}.wiki.git`);
  for (const dir of [repositoryDir, wikiDir]) {
    await gitIn(root, 'init', '--quiet', '--bare', '--template=', '--initial-branch=main', dir);
  }
  const server = createServer();
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const state = createHostState(owner, repo, origin, repositoryDir, options.hasStacks ?? true);
  const requests: SeenRequest[] = [];
  const plans: PlannedAnswer[] = [];
  const host = { token, root, state, requests, plans };
  server.on('request', (request, response) => {
    handle(host, request, response).catch((error: unknown) => {
      response.destroy(error as Error);
    });
  });
  return {
    apiUrl: `${origin}/api/v3`,
    gitUrl: origin,
    fileGitUrl: pathToFileURL(root).href,
    token,
    owner,
    repo,
    state,
    repositoryDir,
    wikiDir,
    requests,
    plan: (answer) => plans.push({ ...answer }),
    git: (...args) => gitIn(repositoryDir, ...args),
    writeWiki: (files, date) => writeWiki(root, wikiDir, files, date),
    deliver,
    async close() {
      await closeServer(server);
      await rm(root, { recursive: true, force: true });
    },
  };
}

type Host = {
  readonly token: string;
  readonly root: string;
  readonly state: HostState;
  readonly requests: SeenRequest[];
  readonly plans: PlannedAnswer[];
};

async function handle(
  host: Host,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { headers, method = 'GET', url = '/' } = request;
  const isGit = /^\/[^/]+\/[^/]+\.git\//.test(url);
  const path = url.replace(/^\/api\/v3(?=\/)/, '');
  const bytes = await bodyOf(request);
  const seen: SeenRequest = {
    method,
    path,
    headers,
    body: isGit ? '' : bytes.toString('utf8'),
    status: 0,
  };
  host.requests.push(seen);
  response.on('finish', () => {
    seen.status = response.statusCode;
  });
  const plan = takePlan(host.plans, `${method} ${path}`);
  if (plan?.isBroken === true) {
    response.destroy();
    return;
  }
  await plan?.delay;
  const isOwnAnswer = plan?.losesAnswer !== true && plan?.delay === undefined;
  if (plan !== undefined && isOwnAnswer) {
    response.writeHead(plan.status ?? 500, plan.headers);
    response.end(plan.body ?? '');
    return;
  }
  if (isGit) {
    await serveGit(host.root, host.token, request, bytes, response);
    await settlePulls(host.state);
    return;
  }
  const answer = await answerApi(host, request, path, bytes);
  if (plan?.losesAnswer === true) {
    response.destroy();
    return;
  }
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
}

type ApiAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

async function answerApi(
  host: Host,
  request: IncomingMessage,
  path: string,
  bytes: Buffer,
): Promise<ApiAnswer> {
  const { state, token } = host;
  const { method = 'GET', headers } = request;
  if (headers.authorization !== `Bearer ${token}`) {
    return json(401, { message: 'Bad credentials' }, {});
  }
  const limit = state.rateLimit;
  const limitHeaders = (): Record<string, string> => ({
    'x-ratelimit-limit': String(limit.limit),
    'x-ratelimit-remaining': String(limit.remaining),
    'x-ratelimit-reset': String(limit.resetSeconds),
  });
  if (limit.remaining <= 0) {
    return json(403, { message: 'API rate limit exceeded' }, limitHeaders());
  }
  let body: unknown;
  try {
    body = bytes.length === 0 ? undefined : JSON.parse(bytes.toString('utf8'));
  } catch {
    return json(400, { message: 'Problems parsing JSON' }, limitHeaders());
  }
  const answer =
    path === '/api/graphql' || path === '/graphql'
      ? answerGraphql(state, body)
      : await answerRest(state, method, new URL(path, state.origin), body);
  const complete = json(answer.status, answer.json, answer.headers ?? {});
  const etag = `W/"${createHmac('sha256', 'etag').update(complete.body).digest('hex')}"`;
  const isCached = method === 'GET' && answer.status === 200;
  if (isCached && headers['if-none-match'] === etag) {
    return { status: 304, headers: { ...limitHeaders(), etag }, body: '' };
  }
  limit.remaining--;
  return {
    ...complete,
    headers: { ...complete.headers, ...limitHeaders(), ...(isCached ? { etag } : {}) },
  };
}

function json(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>>,
): ApiAnswer {
  const body = value === undefined ? '' : JSON.stringify(value);
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body,
  };
}

function takePlan(plans: PlannedAnswer[], line: string): PlannedAnswer | undefined {
  const index = plans.findIndex(({ match }) => match === undefined || match.test(line));
  const plan = plans[index];
  if (plan === undefined) return undefined;
  plan.times = (plan.times ?? 1) - 1;
  if (plan.times <= 0) plans.splice(index, 1);
  return plan;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function writeWiki(
  root: string,
  wikiDir: string,
  files: Readonly<Record<string, string | undefined>>,
  date = '2026-03-01T10:00:00Z',
): Promise<void> {
  const work = await mkdtemp(join(root, 'wiki-'));
  await gitIn(root, 'clone', '--quiet', wikiDir, work);
  for (const [name, text] of Object.entries(files)) {
    if (text === undefined) {
      await gitIn(work, 'rm', '--quiet', '--', name);
      continue;
    }
    await mkdir(join(work, name, '..'), { recursive: true });
    await writeFile(join(work, name), text);
    await gitIn(work, 'add', '--', name);
  }
  await gitIn(work, 'commit', '--quiet', '--allow-empty', `--date=${date}`, '-m', 'edit', { date });
  await gitIn(work, 'push', '--quiet', 'origin', 'HEAD:main');
  await rm(work, { recursive: true });
}

async function deliver(
  url: string,
  event: string,
  payload: unknown,
  secret: string,
  deliveryId: string = randomUUID(),
): Promise<Response> {
  const body = JSON.stringify(payload);
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-host-event': event,
      'x-host-delivery': deliveryId,
      'x-host-signature-256': `sha256=${signature}`,
    },
    body,
  });
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}
