import { spawn } from 'node:child_process';
/** Attacks on the runner's API, point by point of the design's security checklist (§6, §2.10). */
import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { EventClient } from '../../support/event-client.ts';
import {
  afterLastTest,
  makeWorkspace,
  rawRequest,
  runEnded,
  startRun,
  startRunner,
  type TestRunner,
} from '../../support/runner.ts';

const TOUCH = `on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: echo hello > result.txt
      - uses: actions/upload-artifact@v4
        with: { name: result, path: result.txt }
`;
const FILES = { '.github/workflows/touch.yml': TOUCH };
const START = JSON.stringify({ workflow: 'touch' });
const JSON_HEADER = { 'content-type': 'application/json' };

/** A runner for all tests that have no settings of their own and leave no run behind. */
let shared: TestRunner;
const whenDone = afterLastTest();
beforeAll(async () => {
  const folder = makeWorkspace(FILES, true, whenDone);
  shared = await startRunner(folder, {}, undefined, {}, whenDone);
});

async function codeOf(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { code: string } };
  return `${response.status} ${body.error.code}`;
}

function statusOf(answer: string): number {
  return Number(answer.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
}

async function runCount(url: string): Promise<number> {
  const response = await fetch(`${url}/api/runs`);
  return ((await response.json()) as unknown[]).length;
}

describe('bind', () => {
  test('the default listens on loopback addresses only', async () => {
    const { runner } = await startRunner(makeWorkspace(FILES), { HOST: 'localhost' });
    const addresses = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ internal, family }) => !internal && family === 'IPv4');
    for (const { address } of addresses) {
      await expect(fetch(`http://${address}:${runner.port}/health`)).rejects.toThrow(
        'fetch failed',
      );
    }
    expect((await fetch(`http://127.0.0.1:${runner.port}/health`)).status).toBe(200);
    const hasIpv6 = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .some(({ address }) => address === '::1');
    if (hasIpv6) expect((await fetch(`http://[::1]:${runner.port}/health`)).status).toBe(200);
  });

  test('a process told to listen for others refuses to start without a token', async () => {
    const child = spawn(process.execPath, ['src/runner/main.ts', makeWorkspace(FILES)], {
      env: { ...process.env, HOST: '0.0.0.0', PORT: '0' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const code = await new Promise((resolve) => child.once('exit', resolve));
    expect(code).toBe(2);
    expect(stderr).toContain('demands RUNNER_API_TOKEN');
  });
});

describe('Host', () => {
  test.each([
    ['evil.example', 403],
    ['evil.example:PORT', 403],
    ['localhost.evil.example:PORT', 403],
    ['127.0.0.1.evil.example:PORT', 403],
    ['notlocalhost:PORT', 403],
    ['10.1.2.3:PORT', 403],
    ['localhost', 403],
    ['localhost:1', 403],
    ['', 403],
    ['localhost:PORT, evil.example', 403],
    ['localhost:PORT@evil.example', 403],
    ['[::1', 403],
    ['localhost:PORT', 200],
    ['LOCALHOST:PORT', 200],
    ['app.localhost:PORT', 200],
    ['127.0.0.1:PORT', 200],
    ['[::1]:PORT', 200],
  ])('%s: %i', async (host, status) => {
    const { runner } = shared;
    const value = host.replace('PORT', String(runner.port));
    for (const path of ['/health', '/api/runs', '/nothing']) {
      const answer = await rawRequest(
        runner.port,
        `GET ${path} HTTP/1.1\r\nHost: ${value}\r\nConnection: close\r\n\r\n`,
      );
      // Probes name no host: health alone is told to those.
      const expected = status === 200 && path === '/nothing' ? 404 : status;
      if (host === '') expect(statusOf(answer)).toBe(path === '/health' ? 200 : 403);
      else expect(statusOf(answer)).toBe(expected);
    }
  });

  test('holds for event streams, preflights and starts as well, and two Host headers help nobody', async () => {
    const { runner, url } = shared;
    const body = `Content-Type: application/json\r\nContent-Length: ${START.length}\r\n\r\n${START}`;
    for (const request of [
      'GET /api/events HTTP/1.1\r\nHost: rebound.example\r\n\r\n',
      'OPTIONS /api/runs HTTP/1.1\r\nHost: rebound.example\r\n\r\n',
      `POST /api/runs HTTP/1.1\r\nHost: rebound.example:${runner.port}\r\n${body}`,
      `POST /api/sync/inbox HTTP/1.1\r\nHost: rebound.example\r\n${body}`,
    ]) {
      const answer = await rawRequest(runner.port, request);
      expect(statusOf(answer)).toBe(403);
      expect(answer).toContain('"code":"host_not_allowed"');
      expect(answer.toLowerCase()).not.toContain('access-control-allow-origin');
    }
    const hosts = `Host: localhost:${runner.port}\r\nHost: evil.example`;
    const twice = await rawRequest(runner.port, `POST /api/runs HTTP/1.1\r\n${hosts}\r\n${body}`);
    expect(statusOf(twice)).toBe(400);
    expect(await runCount(url)).toBe(0);
  });

  test('a list admits more names, at the own port or at a stated one', async () => {
    const { runner } = await startRunner(makeWorkspace(FILES), {
      RUNNER_ALLOWED_HOSTS: 'runner.example,proxy.example:443',
    });
    const status = async (host: string): Promise<number> =>
      statusOf(await rawRequest(runner.port, `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`));
    expect(await status(`runner.example:${runner.port}`)).toBe(200);
    expect(await status('runner.example')).toBe(403);
    expect(await status('proxy.example')).toBe(200);
    expect(await status('proxy.example:443')).toBe(200);
    expect(await status(`proxy.example:${runner.port}`)).toBe(403);
  });
});

describe('bodies', () => {
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'text/json',
    'application/jsonp',
    '',
  ])('a cross-site form with %j starts nothing', async (type) => {
    const { url } = shared;
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type };
    const response = await fetch(`${url}/api/runs`, {
      method: 'POST',
      headers,
      body: Buffer.from(START),
    });
    expect(await codeOf(response)).toBe('415 unsupported_media_type');
    const cancel = await fetch(`${url}/api/runs/x/cancel`, {
      method: 'POST',
      headers,
      body: Buffer.from('a=b'),
    });
    expect(cancel.status).toBe(415);
    expect(await runCount(url)).toBe(0);
  });

  test('a wrong type is refused without a body as well', async () => {
    const { url } = shared;
    const send = (path: string, headers: Record<string, string>): Promise<Response> =>
      fetch(url + path, { method: 'POST', headers });
    expect((await send('/api/runs', {})).status).toBe(415);
    expect((await send('/api/runs/x/cancel', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await send('/api/runs/x/cancel', {})).status).toBe(404);
  });

  test('compressed bodies are refused, so that none can explode', async () => {
    const { url } = shared;
    const response = await fetch(`${url}/api/runs`, {
      method: 'POST',
      headers: { ...JSON_HEADER, 'content-encoding': 'gzip' },
      body: 'x',
    });
    expect(response.status).toBe(415);
  });

  test('a body beyond the limit is 413 and its connection closed, not read to the end', async () => {
    const { url } = await startRunner(makeWorkspace(FILES), { RUNNER_MAX_BODY_BYTES: '2048' });
    const response = await fetch(`${url}/api/runs`, {
      method: 'POST',
      headers: JSON_HEADER,
      body: JSON.stringify({ workflow: 'x'.repeat(4096) }),
    });
    expect(await codeOf(response)).toBe('413 body_too_large');
  });

  test('broken JSON is named without being quoted', async () => {
    const { url } = shared;
    const response = await fetch(`${url}/api/secrets/TOKEN`, {
      method: 'PUT',
      headers: JSON_HEADER,
      body: '{"value":"hunter2-secret',
    });
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain('"invalid_json"');
    expect(text).not.toContain('hunter2');
    const wrongUtf8 = await fetch(`${url}/api/runs`, {
      method: 'POST',
      headers: JSON_HEADER,
      body: Buffer.from([0x22, 0xff, 0x22]),
    });
    expect(await codeOf(wrongUtf8)).toBe('400 invalid_json');
  });

  test('prototype names in bodies are fields like any other', async () => {
    const { url } = shared;
    for (const body of ['{"workflow":"touch","__proto__":{"a":1}}', '{"constructor":1}']) {
      const response = await fetch(`${url}/api/runs`, {
        method: 'POST',
        headers: JSON_HEADER,
        body,
      });
      expect(await codeOf(response)).toBe('400 invalid_request');
    }
    const response = await fetch(`${url}/api/runs`, {
      method: 'POST',
      headers: JSON_HEADER,
      body: '{"workflow":"touch","inputs":{"__proto__":"x"}}',
    });
    expect(await codeOf(response)).toBe('422 invalid_inputs');
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });
});

describe('origins', () => {
  test('any page may read by default, without credentials', async () => {
    const { url } = shared;
    const response = await fetch(`${url}/api/runs`, { headers: { origin: 'https://a.example' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
    const preflight = await fetch(`${url}/no/such/path`, {
      method: 'OPTIONS',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE, OPTIONS',
      'access-control-max-age': '600',
    });
    const allowed = preflight.headers.get('access-control-allow-headers');
    expect(allowed).toContain('Authorization');
    expect(allowed).toContain('Last-Event-ID');
    expect(preflight.headers.get('content-length')).toBeNull();
  });

  test('a list refuses all other pages before anything happens, and tells them nothing', async () => {
    const { url } = await startRunner(makeWorkspace(FILES), {
      RUNNER_ALLOWED_ORIGINS: 'https://good.example',
    });
    for (const origin of [
      'https://evil.example',
      'https://good.example.evil.example',
      'http://good.example',
      'https://good.example:8443',
      'null',
    ]) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const response = await fetch(`${url}/api/runs`, {
          method,
          headers: { origin, ...JSON_HEADER },
          body: method === 'POST' ? START : null,
        });
        expect(response.status).toBe(403);
        expect(response.headers.get('access-control-allow-origin')).toBeNull();
        if (method === 'GET') expect(await codeOf(response)).toBe('403 origin_not_allowed');
      }
    }
    expect(await runCount(url)).toBe(0);
    const good = await fetch(`${url}/api/runs`, { headers: { origin: 'https://good.example' } });
    expect(good.headers.get('access-control-allow-origin')).toBe('https://good.example');
    expect(good.headers.get('vary')).toBe('Origin');
    const own = await fetch(`${url}/api/runs`, { headers: { origin: url } });
    expect(own.status).toBe(200);
    // A request of a page that carries no Origin: an image, a link.
    const { port } = new URL(url);
    const hidden = await rawRequest(
      Number(port),
      `GET /api/runs HTTP/1.1\r\nHost: localhost:${port}\r\nSec-Fetch-Site: cross-site\r\n\r\n`,
    );
    expect(statusOf(hidden)).toBe(403);
  });
});

describe('token', () => {
  const TOKEN = 'correct-horse-battery-staple';

  test('all of /api demands it, in the header alone but for the event stream', async () => {
    const { url } = await startRunner(makeWorkspace(FILES), { RUNNER_API_TOKEN: TOKEN });
    const paths = [
      '/api/runs',
      '/api/workflows',
      '/api/events',
      '/api/secrets',
      '/api/nothing',
      '/api',
    ];
    for (const path of paths) {
      const response = await fetch(url + path);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      expect(await codeOf(response)).toBe('401 unauthorized');
    }
    for (const authorization of [
      '',
      'Bearer',
      'Bearer ',
      `Basic ${TOKEN}`,
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      TOKEN,
    ]) {
      const response = await fetch(`${url}/api/runs`, { headers: { authorization } });
      expect(response.status).toBe(401);
    }
    expect((await fetch(`${url}/api/runs?access_token=${TOKEN}`)).status).toBe(401);
    expect((await fetch(`${url}/api//events?access_token=${TOKEN}`)).status).toBe(401);
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await fetch(`${url}/api/runs`, { headers })).status).toBe(200);
    const client = await EventClient.open(`${url}/api/events?access_token=${TOKEN}`);
    await client.untilType('ping');
    await expect(EventClient.open(`${url}/api/events?access_token=x`)).rejects.toThrow('401');
  });

  test('health, preflights and the inbox do without; the inbox has its signature', async () => {
    const secret = 'webhook-secret';
    const { url } = await startRunner(makeWorkspace(FILES), {
      RUNNER_API_TOKEN: TOKEN,
      RUNNER_WEBHOOK_SECRET: secret,
    });
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/api/runs`, { method: 'OPTIONS' })).status).toBe(204);
    const body = '{"zen":"x"}';
    const digest = createHmac('sha256', secret).update(body).digest('hex');
    const send = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${url}/api/sync/inbox`, { method: 'POST', headers, body });
    const event = { 'x-host-event': 'ping', 'x-host-delivery': 'd-1' };
    expect(await codeOf(await send(event))).toBe('401 invalid_signature');
    expect((await send({ ...event, 'x-host-signature-256': `sha256=${digest}` })).status).toBe(200);
    // The signature opens the inbox and nothing beside it.
    expect((await fetch(`${url}/api/sync/inbox/../runs`)).status).toBe(401);
  });

  test('never reaches the log', async () => {
    const { url, logLines } = await startRunner(makeWorkspace(FILES), { RUNNER_API_TOKEN: TOKEN });
    const client = await EventClient.open(`${url}/api/events?access_token=${TOKEN}`);
    await client.untilType('ping');
    await fetch(`${url}/api/runs?access_token=${TOKEN}`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect(logLines().some(({ path }) => path === '/api/runs')).toBe(true);
    expect(JSON.stringify(logLines())).not.toContain(TOKEN);
  });
});

describe('paths', () => {
  test('names of artifacts are looked up, never walked', async () => {
    const { url, runner, workspace } = await startRunner(makeWorkspace(FILES));
    const id = await startRun(url, 'touch');
    expect((await runEnded(url, id)).conclusion).toBe('success');
    expect((await fetch(`${url}/api/runs/${id}/artifacts/result`)).status).toBe(200);
    const [{ path = '' } = {}] = (await (
      await fetch(`${url}/api/runs/${id}/artifacts`)
    ).json()) as { path?: string }[];
    expect(path.startsWith(join(workspace, '.runner'))).toBe(true);
    const host = `Host: localhost:${runner.port}\r\n\r\n`;
    for (const name of [
      '../face',
      '%2e%2e',
      '..%2f..%2f..%2fetc%2fpasswd',
      '..%5c..%5cetc',
      '%2fetc%2fpasswd',
      encodeURIComponent(path),
      'result%00',
      'result%00.txt',
      '%252e%252e%252fresult',
      'RESULT',
      'result/',
      './result',
    ]) {
      const answer = await rawRequest(
        runner.port,
        `GET /api/runs/${id}/artifacts/${name} HTTP/1.1\r\n${host}`,
      );
      expect(statusOf(answer)).toBe(404);
      expect(answer).not.toContain('root:');
    }
    for (const badId of ['../face', '%2e%2e', '..%2f..', `${id}%2f..`, 'x'.repeat(100), '%00']) {
      const answer = await rawRequest(runner.port, `GET /api/runs/${badId} HTTP/1.1\r\n${host}`);
      expect(statusOf(answer)).toBe(404);
    }
    const broken = await rawRequest(runner.port, `GET /api/runs/%zz HTTP/1.1\r\n${host}`);
    expect(statusOf(broken)).toBe(400);
  });

  test('workflows are named, not pathed', async () => {
    const { url } = shared;
    for (const workflow of ['../workflows/touch', '/etc/passwd', '../face', 'a\\b', 'a/b']) {
      const response = await fetch(`${url}/api/runs`, {
        method: 'POST',
        headers: JSON_HEADER,
        body: JSON.stringify({ workflow }),
      });
      expect(await codeOf(response)).toBe('422 invalid_name');
      const named = await fetch(`${url}/api/workflows/${encodeURIComponent(workflow)}`);
      expect([404, 422]).toContain(named.status);
    }
  });

  test('refs that git would take for an option are refused', async () => {
    const { url } = shared;
    for (const ref of ['--upload-pack=touch /tmp/x', '-c core.pager=x', 'main..main', '']) {
      const response = await fetch(`${url}/api/runs`, {
        method: 'POST',
        headers: JSON_HEADER,
        body: JSON.stringify({ workflow: 'touch', sandbox: { ref } }),
      });
      expect(await codeOf(response)).toBe('422 invalid_ref');
    }
  });

  test('names of artifacts cannot break out of their header', async () => {
    const workflow = TOUCH.replace('name: result', 'name: "a b;é \u{1F600}\'%"');
    const { url } = await startRunner(makeWorkspace({ '.github/workflows/touch.yml': workflow }));
    const id = await startRun(url, 'touch');
    expect((await runEnded(url, id)).conclusion).toBe('success');
    const name = "a b;é \u{1F600}'%";
    const response = await fetch(`${url}/api/runs/${id}/artifacts/${encodeURIComponent(name)}`);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('content-disposition')).toBe(
      `attachment; filename="a b;_ _'_"; filename*=UTF-8''a%20b%3B%C3%A9%20%F0%9F%98%80%27%25`,
    );
  });

  test('the files of a job are attachments of their own type and name, and run nothing', async () => {
    const script = '<script>document.title = origin</script>';
    const files = { "Ü;'1'%.HTML": 'text/html', 'x.svg': 'image/svg+xml', plain: undefined };
    const steps = Object.keys(files).map(
      (name) => `
      - run: printf %s "$TEXT" > "$NAME"
        env: { TEXT: '${script}', NAME: "${name}" }
      - { uses: actions/upload-artifact@v7, with: { path: "${name}", archive: false } }`,
    );
    const workflow = TOUCH.slice(0, TOUCH.indexOf('    steps:')) + `    steps:${steps.join('')}\n`;
    const { url } = await startRunner(makeWorkspace({ '.github/workflows/touch.yml': workflow }));
    const id = await startRun(url, 'touch');
    expect((await runEnded(url, id)).conclusion).toBe('success');
    const list = (await (await fetch(`${url}/api/runs/${id}/artifacts`)).json()) as unknown[];
    expect(list).toMatchObject([
      { name: 'plain', mimeType: 'application/octet-stream' },
      { name: 'x.svg', mimeType: 'image/svg+xml' },
      { name: "Ü;'1'%.HTML", mimeType: 'text/html' },
    ]);
    for (const [name, type = 'application/octet-stream'] of Object.entries(files)) {
      const path = `${url}/api/runs/${id}/artifacts/${encodeURIComponent(name)}`;
      for (const method of ['GET', 'HEAD']) {
        const { headers } = await fetch(path, { method });
        expect(headers.get('content-type')).toBe(type);
        expect(headers.get('content-disposition')).toMatch(/^attachment; filename="/);
        expect(headers.get('x-content-type-options')).toBe('nosniff');
        expect(headers.get('content-security-policy')).toBe(
          "default-src 'none'; sandbox; frame-ancestors 'none'",
        );
      }
      expect(await (await fetch(path)).text()).toBe(script);
    }
    const named = await fetch(
      `${url}/api/runs/${id}/artifacts/${encodeURIComponent("Ü;'1'%.HTML")}`,
    );
    expect(named.headers.get('content-disposition')).toBe(
      `attachment; filename="_;'1'_.HTML"; filename*=UTF-8''%C3%9C%3B%271%27%25.HTML`,
    );
  });
});

test('a separate port for webhooks serves nothing else', async () => {
  const { runner } = await startRunner(makeWorkspace(FILES), {
    RUNNER_INBOX_PORT: '0',
    RUNNER_ALLOWED_HOSTS: 'tunnel.example:443',
  });
  const url = `http://127.0.0.1:${runner.inboxPort}`;
  for (const path of ['/api/runs', '/health', '/api/secrets', '/', '/api/events']) {
    expect(await codeOf(await fetch(url + path))).toBe('404 not_found');
  }
  const start = await fetch(`${url}/api/runs`, {
    method: 'POST',
    headers: JSON_HEADER,
    body: START,
  });
  expect(start.status).toBe(404);
  const inbox = await fetch(`${url}/api/sync/inbox`, { method: 'POST', body: '{}' });
  expect(await codeOf(inbox)).toBe('412 webhook_secret_missing');
  const request = `POST /api/sync/inbox HTTP/1.1\r\nHost: tunnel.example\r\nContent-Length: 0\r\n\r\n`;
  expect(statusOf(await rawRequest(runner.inboxPort ?? 0, request))).toBe(412);
});

test('a request that never ends is cut, and others are served meanwhile', async () => {
  const { runner, url } = shared;
  const slow = connect(runner.port, '127.0.0.1', () => slow.write('GET /api/ru'));
  const closed = new Promise((resolve) => slow.once('close', resolve));
  slow.on('error', () => undefined);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  await closed;
});

test('what changes something is told in the audit, with origin and user agent', async () => {
  const { url, logLines } = await startRunner(makeWorkspace(FILES));
  const origin = 'http://localhost:3000';
  const headers = { ...JSON_HEADER, origin, 'user-agent': 'attacker/1' };
  await fetch(`${url}/api/runs`, { method: 'POST', headers, body: START });
  await fetch(`${url}/api/variables/NAME`, {
    method: 'PUT',
    headers,
    body: JSON.stringify({ value: 'a-value' }),
  });
  const audit = logLines().filter(({ msg }) => msg === 'audit');
  expect(audit).toMatchObject([
    {
      action: 'run.started',
      origin,
      user_agent: 'attacker/1',
      ip: '127.0.0.1',
    },
    { action: 'PUT /api/variables/:name', name: 'NAME' },
  ]);
  expect(JSON.stringify(audit)).not.toContain('a-value');
});

test.runIf(process.platform === 'linux')('steps inherit no connection of a caller', async () => {
  const { url } = await startRunner(
    makeWorkspace({
      '.github/workflows/look.yml':
        "on: workflow_dispatch\njobs: { a: { runs-on: x, steps: [{ run: 'ls -l /proc/self/fd' }] } }\n",
    }),
  );
  // While the step runs, a stream is open that it could otherwise write to and keep alive.
  const client = await EventClient.open(`${url}/api/events`);
  const id = await startRun(url, 'look');
  await client.untilType('run.completed');
  const log = await (await fetch(`${url}/api/runs/${id}/logs`)).text();
  expect(log).toContain('/dev/null');
  expect(log).not.toContain('socket:');
});
