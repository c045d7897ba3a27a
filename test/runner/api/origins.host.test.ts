/*
 * Every route of the runner, asked by every kind of page: none changes anything unless it is near (the own
 * page, loopback, listed) or has the token; reading is open.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHttpServer } from '../../../src/http/listener/http-server.ts';
import { Access } from '../../../src/runner/api/access.ts';
import { serveApi } from '../../../src/runner/api/api-server.ts';
import { EVENTS_PATH } from '../../../src/runner/api/event-routes.ts';
import type { ApiRoute } from '../../../src/runner/api/router.ts';
import { INBOX_PATH } from '../../../src/runner/api/sync-routes.ts';
import type { Runner } from '../../../src/runner/runner.ts';
import { loadRunnerSettings } from '../../../src/runner/settings/settings.ts';
import { writeEndpoint } from '../../../src/runner/storage/endpoint-file.ts';
import { routesOf } from '../../../src/runner/wiring/runner-routes.ts';
import { hostRequest, type RawAnswer } from '../../support/host-request.ts';
import { makeWorkspace, runEnded, startRunner, type TestRunner } from '../../support/runner.ts';
import { byLength, inShort } from '../../support/test-length.ts';
import { runCli } from '../cli/cli-process.ts';

const WORKFLOW = `on: workflow_dispatch
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo hello }] } }
`;
const FILES = { '.github/workflows/touch.yml': WORKFLOW };
const START = JSON.stringify({ workflow: 'touch' });
const JSON_TYPE = { 'content-type': 'application/json' };
const LONG = `https://${'a'.repeat(8_000)}.example`;

type Headers = Readonly<Record<string, string>>;
type Kind = 'none' | 'near' | 'foreign';
type Page = { readonly name: string; readonly kind: Kind; readonly headers: Headers };

const origin =
  (kind: Kind) =>
  (text: string): Page => ({
    name: `Origin ${text.length > 60 ? `of ${text.length} characters` : JSON.stringify(text)}`,
    kind,
    headers: { origin: text },
  });
const site = (kind: Kind, text: string, from?: string): Page => ({
  name: `Sec-Fetch-Site ${text}${from === undefined ? '' : `, Origin ${from}`}`,
  kind,
  headers: { 'sec-fetch-site': text, ...(from === undefined ? {} : { origin: from }) },
});

/** PORT stands for the runner's own. */
const PAGES: readonly Page[] = [
  { name: 'no header', kind: 'none', headers: {} },
  ...[
    'http://127.0.0.1:PORT',
    'http://localhost:PORT',
    'http://localhost',
    'http://localhost:1',
    'https://localhost:8443',
    'HTTP://LocalHost:3000',
    'http://localhost.:3000',
    'http://app.localhost:5173',
    'http://127.0.0.1:3000',
    'http://127.9.9.9',
    'http://[::1]:3000',
    'https://[::1]',
  ].map(origin('near')),
  ...[
    'null',
    'NULL',
    '*',
    'https://evil.example',
    'HTTPS://EVIL.EXAMPLE',
    'http://evil.example:PORT',
    'http://localhost.evil.test',
    'http://localhost.evil.test:PORT',
    'http://127.0.0.1.evil.test',
    'http://127.0.0.1.evil.test:PORT',
    'http://notlocalhost',
    'http://evil.test/localhost',
    'http://localhost@evil.test',
    'http://evil.test#.localhost',
    'http://[::1].evil.test',
    'http://[::1]evil.test',
    'http://10.1.2.3:PORT',
    'http://0.0.0.0:PORT',
    'http://[::]:PORT',
    'http://[::ffff:127.0.0.1]',
    'http://127.1',
    'http://2130706433',
    'http://0x7f.0.0.1',
    'http://localhost:PORT/',
    'http://localhost:PORT, https://evil.example',
    'http://localhost:PORT https://evil.example',
    'http://localhost:PORT\r\nOrigin: https://evil.example',
    'https://evil.example\r\nOrigin: http://localhost:PORT',
    'http://localhost:123456',
    'http://localhost..',
    'http://',
    'localhost',
    '//localhost',
    'file://',
    'file://localhost',
    'ftp://localhost',
    'chrome-extension://localhost',
    LONG,
  ].map(origin('foreign')),
  site('none', 'none'),
  site('none', 'same-origin'),
  site('near', 'same-site'),
  site('foreign', 'cross-site'),
  site('foreign', 'Cross-Site'),
  site('foreign', 'none, cross-site'),
  site('foreign', 'whatever'),
  // It counts only where there is no Origin.
  site('near', 'cross-site', 'http://localhost:3000'),
  site('foreign', 'same-origin', 'https://evil.example'),
  site('foreign', 'none', 'null'),
];

/** One or two of each kind, for settings under which the others are told apart no further. */
const FEW_PAGES = PAGES.filter(({ name }) =>
  /no header|"(null|http:..localhost:1|https:..evil.example|http:..127.0.0.1.evil.test)"|Site/.test(
    name,
  ),
);

/** What each route is asked; nothing that would do something even where it is allowed. */
const BODY = '{"unknown":true}';

type Ask = {
  readonly method: string;
  readonly path: string;
  readonly isChange: boolean;
  readonly isInbox: boolean;
};

/** Every route that this runner serves, and what no route serves. */
function asksOf(runner: Runner): readonly Ask[] {
  const { routes, inbox } = routesOf(runner.parts, () => false, false);
  const served = [...routes, inbox].flatMap(({ method, pattern }: ApiRoute) => {
    const path = pattern.replaceAll(/:\w+/g, 'NOBODY');
    const isInbox = pattern === INBOX_PATH;
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
    return methods.map((one) => ({ method: one, path, isChange: method !== 'GET', isInbox }));
  });
  const unserved = ['PATCH', 'TRACE', 'post', 'get', 'PROPFIND'].flatMap((method) =>
    ['/api/runs', '/', '/api/nothing', '/health'].map((path) => ({
      method,
      path,
      isChange: true,
      isInbox: false,
    })),
  );
  return [...served, ...unserved];
}

function ask(url: string, { method, path }: Ask, headers: Headers): Promise<RawAnswer> {
  const { port } = new URL(url);
  const isSafe = method === 'GET' || method === 'HEAD';
  const sent = Object.entries(headers).map(([name, value]) => [
    name,
    value.replaceAll('PORT', port),
  ]);
  return hostRequest(url, path, '127.0.0.1:PORT', {
    method,
    headers: { ...(isSafe ? {} : JSON_TYPE), ...Object.fromEntries(sent) },
    ...(isSafe ? {} : { body: BODY }),
  });
}

const codeOf = ({ status, body }: RawAnswer): string =>
  `${status} ${/"code":"(\w+)"/.exec(body)?.[1] ?? ''}`;

type Credential = readonly [name: string, headers: (token: string) => Headers, isRight: boolean];

const CREDENTIALS: readonly Credential[] = [
  ['no token', () => ({}), false],
  ['half of the token', (token) => ({ authorization: `Bearer ${token.slice(0, 20)}` }), false],
  ['the token', (token) => ({ authorization: `Bearer ${token}` }), true],
];

type Expected = {
  /** The code of a refusal; undefined: the answer must be the one that curl gets with the token. */
  readonly refusal: (page: Page, asked: Ask, hasToken: boolean) => string | undefined;
  /** Access-Control-Allow-Origin; undefined: no header of CORS at all. */
  readonly cors: (page: Page) => string | undefined;
};

/** Of the requests of a walk one in so many is made. */
const SHARE = byLength(18, 1);

/** Asks every route as every page with every credential; the number of requests. */
async function walk(
  { url, runner }: Pick<TestRunner, 'url' | 'runner'>,
  token: string,
  { refusal, cors }: Expected,
  pages = PAGES,
): Promise<number> {
  let count = 0;
  const wrong: unknown[] = [];
  const asks = asksOf(runner);
  expect(asks.length).toBeGreaterThan(60);
  const check = async (asked: Ask, plain: RawAnswer, page: Page, credential: Credential) => {
    const [name, headers, isRight] = credential;
    const answer = await ask(url, asked, { ...page.headers, ...headers(token) });
    const code = refusal(page, asked, isRight) ?? codeOf(plain);
    // HEAD is answered with a status alone.
    const isMet =
      asked.method === 'HEAD' ? code.startsWith(`${answer.status} `) : codeOf(answer) === code;
    const allowed = Object.entries(answer.headers).filter(([one]) => one.includes('allow-origin'));
    const isCorsMet = (allowed[0]?.[1] ?? '') === (cors(page) ?? '').replace('PORT', portOf(url));
    const shown = [asked.method, asked.path, page.name, name];
    if (!isMet || !isCorsMet) wrong.push([...shown, codeOf(answer), allowed, code]);
    count += 1;
  };
  for (const [row, asked] of asks.entries()) {
    const plain = await ask(url, asked, { authorization: `Bearer ${token}` });
    for (const [column, credential] of CREDENTIALS.entries()) {
      // In short: each page with each credential asks one of 18 routes, each route has a sixth of the pages.
      const some = pages.filter((_, index) => (index + row + column) % SHARE === 0);
      await Promise.all(some.map((page) => check(asked, plain, page, credential)));
    }
  }
  expect(wrong).toEqual([]);
  return count;
}

const portOf = (url: string): string => new URL(url).port;
const madeToken = (workspace: string): string =>
  readFileSync(join(workspace, '.runner/api-token'), 'utf8').trim();
const everybody = (): string => '*';
const isApi = ({ path }: Ask): boolean => path.startsWith('/api/');

describe('every route, asked by every page, with and without the token', () => {
  test('by default all may read, and only near ones may change something', async () => {
    const started = await startRunner(makeWorkspace(FILES));
    const count = await walk(started, madeToken(started.workspace), {
      refusal: (page, { isChange, isInbox }, hasToken) =>
        isChange && !isInbox && page.kind === 'foreign' && !hasToken
          ? '403 origin_needs_token'
          : undefined,
      cors: everybody,
    });
    expect(count).toBeGreaterThan(10_000 / SHARE);
  }, 300_000);

  test('a list refuses all that are not near, whatever they ask and have', async () => {
    const listed = ['https://good.example', 'HTTPS://Good.Example:443', 'vscode-webview://abc'];
    const pages = [
      ...FEW_PAGES,
      ...listed.map(origin('near')),
      ...['http://good.example', 'https://good.example:8443', 'https://x.good.example'].map(
        origin('foreign'),
      ),
    ];
    const started = await startRunner(makeWorkspace(FILES), {
      RUNNER_ALLOWED_ORIGINS: 'https://good.example:443,vscode-webview://abc',
    });
    const token = madeToken(started.workspace);
    const rules: Expected = {
      refusal: (page, asked, hasToken) => {
        if (page.kind !== 'foreign') return undefined;
        // A link of another site to a page of the runner: it shows, and that is all.
        const isLink = page.headers['origin'] === undefined && !isApi(asked);
        if (!isLink) return '403 origin_not_allowed';
        return asked.isChange && !hasToken ? '403 origin_needs_token' : undefined;
      },
      cors: ({ kind, headers }) => (kind === 'near' ? headers['origin'] : undefined),
    };
    await walk(started, token, rules, pages);
  }, 300_000);

  test('`*` written out lets every page do everything, with a warning', async () => {
    const started = await startRunner(makeWorkspace(FILES), { RUNNER_ALLOWED_ORIGINS: '*' });
    const token = madeToken(started.workspace);
    await walk(started, token, { refusal: () => undefined, cors: everybody }, FEW_PAGES);
    const warned = started.logLines().filter(({ msg }) => msg === 'every_origin_allowed');
    expect(warned.map(({ level }) => level)).toEqual(['warn']);
  }, 300_000);

  test('RUNNER_API_TOKEN is demanded below /api of all, but of the inbox', async () => {
    const token = 'correct-horse-battery-staple';
    const started = await startRunner(makeWorkspace(FILES), { RUNNER_API_TOKEN: token });
    await walk(
      started,
      token,
      {
        refusal: (page, asked, hasToken) => {
          if (hasToken || asked.isInbox) return undefined;
          if (isApi(asked)) return '401 unauthorized';
          return asked.isChange && page.kind === 'foreign' ? '403 origin_needs_token' : undefined;
        },
        cors: everybody,
      },
      FEW_PAGES,
    );
    expect(globSync(join(started.workspace, '.runner/api-token'))).toEqual([]);
    expect(started.logLines().some(({ msg }) => msg === 'api_token_unset')).toBe(false);
  }, 300_000);

  test('while the token is demanded, of all that would change something', async () => {
    const started = await startRunner(makeWorkspace(FILES), { RUNNER_ALLOWED_ORIGINS: '*' });
    const token = madeToken(started.workspace);
    let isDemanded = true;
    const url = await serveAgain(started, token, () => isDemanded);
    const served = { runner: started.runner, url };
    await walk(
      served,
      token,
      {
        refusal: (_page, { isChange, isInbox }, hasToken) =>
          isChange && !isInbox && !hasToken ? '401 unauthorized' : undefined,
        cors: everybody,
      },
      FEW_PAGES,
    );
    const start = { method: 'POST', headers: JSON_TYPE, body: START };
    expect((await fetch(`${url}/api/runs`, start)).status).toBe(401);
    isDemanded = false;
    expect((await fetch(`${url}/api/runs`, start)).status).toBe(201);
  }, 300_000);
});

/** The same routes behind a listener of their own, where the test says whether the token is demanded. */
async function serveAgain(
  { runner }: TestRunner,
  apiToken: string,
  isTokenDemanded: () => boolean,
): Promise<string> {
  const { routes, inbox } = routesOf(runner.parts, () => false, false);
  const settings = loadRunnerSettings({ RUNNER_ALLOWED_ORIGINS: '*' });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  let port = 0;
  const options = {
    routes: [...routes, inbox],
    access: new Access(settings, { apiToken, isTokenDemanded }),
    openPaths: new Set([INBOX_PATH]),
    queryTokenPaths: new Set([EVENTS_PATH]),
    maxBodyBytes: 100_000,
    onFault: () => undefined,
    onRequest: () => undefined,
  };
  serveApi(server, options, () => port);
  ({ port } = await server.listen());
  onTestFinished(() => server.stop(0));
  return `http://127.0.0.1:${port}`;
}

test.each([{}, { RUNNER_ALLOWED_ORIGINS: '*' }])(
  'preflights of every path let no foreign page into the private network: %j',
  async (env) => {
    const { url, runner } = await startRunner(makeWorkspace(FILES), env);
    const paths = new Set(asksOf(runner).map(({ path }) => path));
    for (const [row, path] of [...paths].entries()) {
      for (const page of PAGES.filter((_, index) => (index + row) % SHARE === 0)) {
        const asked = { method: 'OPTIONS', path, isChange: false, isInbox: false };
        const answer = await ask(url, asked, {
          ...page.headers,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization, content-type',
          'access-control-request-private-network': 'true',
        });
        const { headers } = answer;
        const shown = [path, page.name];
        expect([...shown, answer.status]).toEqual([...shown, 204]);
        expect(headers['access-control-allow-origin']).toBe('*');
        expect(headers['access-control-allow-headers']).toMatch(/\bAuthorization\b/);
        const isNear = page.kind === 'near';
        const granted = headers['access-control-allow-private-network'];
        expect([...shown, granted]).toEqual([...shown, isNear ? 'true' : undefined]);
      }
    }
  },
  120_000,
);

inShort(test)(
  'a list answers foreign preflights with nothing that a browser could use',
  async () => {
    const { url } = await startRunner(makeWorkspace(FILES), {
      RUNNER_ALLOWED_ORIGINS: 'https://good.example',
    });
    for (const { kind, headers } of PAGES) {
      if (kind !== 'foreign' || headers['origin'] === undefined) continue;
      const asked = { method: 'OPTIONS', path: '/api/runs', isChange: false, isInbox: false };
      const asking = { ...headers, 'access-control-request-private-network': 'true' };
      const answer = await ask(url, asked, asking);
      expect(codeOf(answer)).toBe('403 origin_not_allowed');
      expect(Object.keys(answer.headers).filter((name) => name.includes('access-control'))).toEqual(
        [],
      );
    }
  },
);

inShort(test)(
  'the page of a runner with another name is its own, with and without TLS in front',
  async () => {
    const { url, runner } = await startRunner(makeWorkspace(FILES), {
      RUNNER_ALLOWED_HOSTS: 'runner.example,proxy.example:443',
    });
    const cancel = async (host: string, from: string): Promise<string> =>
      codeOf(
        await hostRequest(url, '/api/runs/x/cancel', host, {
          method: 'POST',
          headers: { origin: from.replace('PORT', String(runner.port)) },
        }),
      );
    const done = '404 run_not_found';
    const refused = '403 origin_needs_token';
    expect(await cancel('runner.example:PORT', 'http://runner.example:PORT')).toBe(done);
    expect(await cancel('proxy.example', 'https://proxy.example')).toBe(done);
    expect(await cancel('proxy.example:443', 'https://proxy.example')).toBe(done);
    expect(await cancel('proxy.example', 'https://proxy.example:444')).toBe(refused);
    expect(await cancel('proxy.example', 'https://runner.example')).toBe(refused);
    expect(await cancel('runner.example:PORT', 'http://runner.example')).toBe(refused);
    // A sibling is of the same site, but not of this machine.
    const sibling = await hostRequest(url, '/api/runs/x/cancel', 'proxy.example', {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-site' },
    });
    expect(codeOf(sibling)).toBe(refused);
  },
);

inShort(test)(
  'what a foreign page sends is done with the token alone, and told in the log',
  async () => {
    const { url, runner, workspace, logLines } = await startRunner(makeWorkspace(FILES));
    const evil = { ...JSON_TYPE, origin: 'https://evil.example' };
    const secret = JSON.stringify({ value: 'planted-by-a-page' });
    const attacks: readonly (readonly [string, string, string?])[] = [
      ['POST', '/api/runs', START],
      ['PUT', '/api/secrets/X', secret],
      ['PUT', '/api/variables/X', secret],
      ['POST', '/api/secrets/import', JSON.stringify({ content: 'X=planted-by-a-page' })],
      ['PUT', '/api/sync/config', JSON.stringify({ enabled: false })],
      ['POST', '/api/sync/pr'],
      ['DELETE', '/api/secrets/X'],
    ];
    const overrides = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'];
    for (const [method, path, body] of attacks) {
      const refused = await fetch(url + path, { method, headers: evil, body: body ?? null });
      expect(refused.status).toBe(403);
      for (const name of overrides) {
        const query = `?_method=${method}&access_token=${madeToken(workspace)}`;
        const headers = { ...evil, [name]: method };
        const tricked = await fetch(`${url}${path}${query}`, { headers });
        expect([404, 405, 200]).toContain(tricked.status);
      }
    }
    expect(runner.parts.runs.list({ limit: 1 })).toEqual([]);
    expect(await (await fetch(`${url}/api/secrets`)).json()).toEqual([]);
    expect(await (await fetch(`${url}/api/variables`)).json()).toEqual([]);
    const told = logLines().filter(({ msg }) => msg === 'foreign_page_refused');
    expect(told[0]?.['detail']).toBe('POST /api/runs from https://evil.example');

    const token = madeToken(workspace);
    const headers = { ...evil, authorization: `Bearer ${token}` };
    const started = await fetch(`${url}/api/runs`, { method: 'POST', headers, body: START });
    expect(started.status).toBe(201);
    const { id } = (await started.json()) as { id: string };
    expect((await runEnded(url, id)).conclusion).toBe('success');
    // In the log by the path of its file alone.
    const [unset] = logLines().filter(({ msg }) => msg === 'api_token_unset');
    expect(unset?.['token_file']).toBe(join(workspace, '.runner/api-token'));
    expect(JSON.stringify(logLines())).not.toContain(token);
    expect(JSON.stringify(logLines())).not.toContain('planted-by-a-page');
  },
);

/** Every file below `folder` with the digest of its content, and of folders that they are there. */
function contentsOf(folder: string): Readonly<Record<string, string>> {
  const paths = globSync('**/*', { cwd: folder }).concat(globSync('**/.*', { cwd: folder }));
  const entries = paths.map((path): [string, string] => {
    const isFile = statSync(join(folder, path)).isFile();
    const digest = isFile
      ? createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex')
      : 'folder';
    return [path, digest];
  });
  return Object.fromEntries(entries);
}

/** A run has ended for who asks before its folder is gone and its journal is one record; nothing comes after that. */
async function tidiedUp(workspace: string, id: string): Promise<void> {
  const journal = join(workspace, '.runner', 'runs', id, 'journal.jsonl');
  const records = (): readonly string[] => readFileSync(journal, 'utf8').trim().split('\n');
  await expect.poll(records, { timeout: 20_000 }).toEqual([expect.stringContaining('"snapshot"')]);
}

inShort(test)('what every page may ask for changes nothing', async () => {
  const { url, runner, workspace } = await startRunner(makeWorkspace(FILES));
  const started = await fetch(`${url}/api/runs`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: START,
  });
  const { id } = (await started.json()) as { id: string };
  await runEnded(url, id);
  await tidiedUp(workspace, id);
  const before = contentsOf(join(workspace, '.runner'));
  expect(Object.keys(before)).toContain('api-token');
  for (const asked of asksOf(runner)) {
    if (asked.isChange) continue;
    for (const name of [id, 'touch.yml', 'NOBODY']) {
      const path = asked.path.replace('NOBODY', name);
      await ask(url, { ...asked, path }, { origin: 'https://evil.example' });
    }
  }
  expect(contentsOf(join(workspace, '.runner'))).toEqual(before);
});

inShort(test)(
  "the runner's command shows the token that the runner has made, where it is wanted",
  async () => {
    const started = await startRunner(makeWorkspace(FILES));
    const { workspace, url } = started;
    const token = madeToken(workspace);
    const guarded = await serveAgain(started, token, () => true);
    await writeEndpoint(join(workspace, '.runner'), '127.0.0.1', Number(portOf(guarded)));
    const set = await runCli(workspace, ['secrets', 'set', 'NAME'], { input: 'value' });
    expect([set.code, set.stderr]).toEqual([0, expect.not.stringContaining(token)]);
    expect(await (await fetch(`${url}/api/secrets`)).json()).toEqual(['NAME']);
  },
);
