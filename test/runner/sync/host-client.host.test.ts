import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { gitIn } from '../../support/fake-host-git.ts';
import { commit, createFixture, seedProject } from './fixture.ts';

const SECONDS = 1000;

describe('retries', () => {
  test('errors of the host and broken connections are repeated, with growing pauses', async () => {
    const { host, sync, waits } = await createFixture();
    host.state.addIssue();
    host.plan({ match: /issues/, status: 502, body: '<html>Bad gateway</html>' });
    host.plan({ match: /issues/, isBroken: true });
    host.plan({ match: /issues/, status: 500 });
    expect((await sync.pull({ only: ['issues'] })).issues).toMatchObject({ fetched: 1 });
    expect(waits).toEqual([750, 1500, 3000]);
  });

  test('not for ever, and refusals not at all', async () => {
    const { host, sync, waits } = await createFixture();
    host.plan({ match: /issues/, status: 503, times: 100 });
    const report = await sync.pull({ only: ['issues'] });
    expect(report.errors).toMatchObject([
      {
        kind: 'issues',
        reason: 'UPSTREAM_ERROR',
        message: expect.stringContaining('answered 503'),
      },
    ]);
    expect(host.requests).toHaveLength(4);
    host.plan({
      match: /releases/,
      status: 403,
      body: '{"message":"Resource not accessible\\u0007"}',
    });
    const refused = await sync.pull({ only: ['releases'] });
    expect(refused.errors[0]?.message).toMatch(
      /^the code host answered 403 to GET .*: Resource not accessible$/,
    );
    expect(waits).toHaveLength(3);
  });

  test('a query that may have been obeyed is repeated: it changes nothing', async () => {
    const { host, sync } = await createFixture();
    host.plan({ match: /graphql/, losesAnswer: true });
    expect((await sync.pull({ only: ['discussions'] })).errors).toEqual([]);
    expect(host.requests.filter(({ path }) => path.includes('graphql'))).toHaveLength(2);
  });

  test('a creation that may have been obeyed is not; the next push finds what was made', async () => {
    const fixture = await createFixture();
    await seedProject(fixture);
    await commit(fixture.projectDir, 'One');
    const { host, sync } = fixture;
    host.plan({ match: /POST .*pulls/, losesAnswer: true });
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'UPSTREAM_ERROR' });
    const creations = host.requests.filter(
      ({ method, path }) => method === 'POST' && path.endsWith('/pulls'),
    );
    expect(creations).toHaveLength(1);
    expect((await sync.push({})).stack).toMatchObject([{ number: 1, action: 'unchanged' }]);
    expect(host.state.issues.size).toBe(1);
  });
});

describe('rate limits', () => {
  test('Retry-After is waited for', async () => {
    const { host, sync, waits } = await createFixture();
    host.state.addIssue();
    host.plan({ match: /issues/, status: 429, headers: { 'retry-after': '7' } });
    expect((await sync.pull({ only: ['issues'] })).issues).toMatchObject({ fetched: 1 });
    expect(waits).toEqual([7 * SECONDS]);
  });

  test('a secondary limit without a time is given a minute', async () => {
    const { host, sync, waits } = await createFixture();
    const body = '{"message":"You have exceeded a secondary rate limit."}';
    host.plan({ match: /issues/, status: 403, body });
    await sync.pull({ only: ['issues'] });
    expect(waits).toEqual([60 * SECONDS]);
  });

  test('an exhausted budget that GraphQL tells with status 200 is one', async () => {
    const { host, sync } = await createFixture();
    host.plan({
      match: /graphql/,
      status: 200,
      body: '{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}',
      headers: {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(Math.floor(Date.now() / 1000) + 600),
      },
    });
    const report = await sync.pull({ only: ['discussions', 'releases'] });
    expect(report.errors.map(({ kind }) => kind)).toEqual(['discussions', 'releases']);
    expect(report.errors[0]?.retryAfterSeconds).toBeGreaterThan(500);
    expect(host.requests).toHaveLength(1);
  });

  test('a long pause is told instead of waited for, and obeyed until it is over', async () => {
    const { host, sync, waits, clock } = await createFixture();
    host.state.addIssue();
    host.state.addRelease({ tag_name: 'v1' });
    host.state.rateLimit.remaining = 0;
    const report = await sync.pull({ only: ['issues', 'releases'] });
    expect(waits).toEqual([]);
    expect(report.errors.map(({ kind }) => kind)).toEqual(['issues', 'releases']);
    expect(report.errors[0]?.retryAfterSeconds).toBeGreaterThan(3500);
    expect(report.rateLimit).toEqual({
      remaining: 0,
      resetAt: new Date(host.state.rateLimit.resetSeconds * 1000).toISOString(),
    });
    // The second kind was not even asked for.
    expect(host.requests).toHaveLength(1);
    host.state.rateLimit.remaining = 100;
    await sync.pull({ only: ['issues'] });
    expect(host.requests).toHaveLength(1);
    clock.ms += 3700 * SECONDS;
    expect((await sync.pull({ only: ['issues'] })).issues).toMatchObject({ fetched: 1 });
  });
});

describe('a hostile host', () => {
  /** Another origin, which remembers what it is sent. */
  async function otherOrigin(): Promise<{ url: string; seen: IncomingMessage[] }> {
    const seen: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      seen.push(request);
      response.end('[]');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen };
  }

  test.each([301, 302, 307, 308])(
    'does not get us elsewhere by a redirect (%i)',
    async (status) => {
      const { host, sync } = await createFixture();
      const other = await otherOrigin();
      host.plan({ match: /issues/, status, headers: { location: other.url }, times: 9 });
      host.plan({ match: /graphql/, status, headers: { location: other.url }, times: 9 });
      const report = await sync.pull({ only: ['issues', 'discussions'] });
      expect(report.errors).toMatchObject([
        { kind: 'issues', message: expect.stringContaining('another origin') },
        { kind: 'discussions', message: expect.stringContaining('another origin') },
      ]);
      expect(other.seen).toEqual([]);
    },
  );

  test('a redirect of its own is followed, as for a renamed repository, but not in circles', async () => {
    const { host, sync } = await createFixture();
    host.state.addIssue();
    host.plan({
      match: /issues/,
      status: 301,
      headers: { location: `${host.apiUrl}/repos/octo/demo/issues?state=all` },
    });
    expect((await sync.pull({ only: ['issues'] })).issues).toMatchObject({ fetched: 1 });
    const location = `${host.apiUrl}/repos/octo/demo/releases`;
    host.plan({ match: /releases/, status: 301, headers: { location }, times: 99 });
    const report = await sync.pull({ only: ['releases'] });
    expect(report.errors).toMatchObject([{ kind: 'releases', reason: 'UPSTREAM_ERROR' }]);
    expect(host.requests.length).toBeLessThan(12);
  });

  test('does not get us elsewhere by the link of a page', async () => {
    const { host, sync } = await createFixture();
    const other = await otherOrigin();
    const link = `<${other.url}>; rel="next"`;
    host.plan({ match: /issues/, status: 200, body: '[]', headers: { link } });
    const report = await sync.pull({ only: ['issues'] });
    expect(report.errors[0]?.message).toContain('another origin');
    expect(other.seen).toEqual([]);
  });

  test('cannot fill memory: announced, streamed or compressed', async () => {
    const { host, sync } = await createFixture();
    const big = Buffer.alloc(40 * 1024 * 1024, ' ');
    host.plan({ match: /issues/, status: 200, body: big });
    const bomb = gzipSync(big);
    host.plan({
      match: /releases/,
      status: 200,
      body: bomb,
      headers: { 'content-encoding': 'gzip', 'content-length': String(bomb.length) },
    });
    const report = await sync.pull({ only: ['issues', 'releases'] });
    expect(report.errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('more than 33554432 bytes'),
      expect.stringContaining('more than 33554432 bytes'),
    ]);
  });

  test('cannot keep us busy with a list without an end', async () => {
    const { host, sync } = await createFixture();
    const link = `<${host.apiUrl}/repos/octo/demo/releases?page=2>; rel="next"`;
    host.plan({ match: /releases/, status: 200, body: '[]', headers: { link }, times: 9999 });
    const report = await sync.pull({ only: ['releases'] });
    expect(report.errors[0]?.message).toContain('without an end');
    expect(host.requests).toHaveLength(2);
  });

  test('answers that are none of JSON, a list or a discussion are errors, not crashes', async () => {
    const { host, sync } = await createFixture();
    for (const body of ['<html>', '{"a":1}', '[null, 3, {"number":"x"}, {"number":-1}]']) {
      host.plan({ match: /issues/, status: 200, body });
    }
    expect((await sync.pull({ only: ['issues'] })).errors).toHaveLength(1);
    expect((await sync.pull({ only: ['issues'] })).errors).toHaveLength(1);
    expect((await sync.pull({ only: ['issues'] })).issues).toMatchObject({ fetched: 0 });
    for (const body of [
      'null',
      '{"data":null}',
      '{"data":{"repository":{"discussions":{"nodes":[null]}}}}',
    ]) {
      host.plan({ match: /graphql/, status: 200, body });
    }
    expect((await sync.pull({ only: ['discussions'] })).errors).toHaveLength(1);
    expect((await sync.pull({ only: ['discussions'] })).errors).toHaveLength(1);
    expect((await sync.pull({ only: ['discussions'] })).discussions).toMatchObject({ fetched: 0 });
  });

  test('never finds the token repeated in our messages', async () => {
    const { host, sync } = await createFixture();
    const body = JSON.stringify({ message: `no rights for ${host.token}` });
    host.plan({ match: /issues/, status: 403, body });
    const report = await sync.pull({ only: ['issues'] });
    expect(report.errors[0]?.message).toContain('no rights for ***');
    expect(JSON.stringify(await sync.audit({}))).not.toContain(host.token);
  });

  test('git does not carry the credentials to where it is redirected', async () => {
    const { host, sync } = await createFixture();
    const other = await otherOrigin();
    host.plan({
      match: /wiki\.git/,
      status: 302,
      headers: { location: `${other.url}octo/demo.wiki.git/info/refs?service=git-upload-pack` },
      times: 9,
    });
    const report = await sync.pull({ only: ['wiki'] });
    expect(report.errors).toMatchObject([{ kind: 'wiki', reason: 'UPSTREAM_ERROR' }]);
    expect(other.seen).toEqual([]);
  });
});

test('the project cannot turn git to another program by its settings', async () => {
  const fixture = await createFixture();
  await seedProject(fixture);
  const { host, projectDir, sync, stateDir } = fixture;
  await commit(projectDir, 'One');
  const trace = join(stateDir, 'owned');
  await gitIn(projectDir, 'config', `url.ext::touch ${trace} .insteadOf`, host.gitUrl);
  await gitIn(projectDir, 'config', 'protocol.ext.allow', 'always');
  await writeFile(join(projectDir, '.git', 'hooks', 'pre-push'), `#!/bin/sh\ntouch ${trace}\n`, {
    mode: 0o755,
  });
  await expect(sync.push({})).rejects.toMatchObject({ reason: 'UPSTREAM_ERROR' });
  await gitIn(projectDir, 'config', '--unset', `url.ext::touch ${trace} .insteadOf`);
  expect((await sync.push({})).stack).toHaveLength(1);
  expect(existsSync(trace)).toBe(false);
});

describe('settings', () => {
  test.each([
    ['hostGitUrl', 'ext::sh -c touch% /tmp/owned'],
    ['hostGitUrl', 'ssh://-oProxyCommand=x/y'],
    ['hostGitUrl', '--upload-pack=x'],
    ['hostGitUrl', 'https://user:password@example.com'],
    ['hostApiUrl', 'file:///etc/passwd'],
    ['hostApiUrl', 'api.example.com'],
  ] as const)('%s %s is refused at the start', async (name, value) => {
    await expect(createFixture({ settings: { [name]: value } })).rejects.toMatchObject({
      reason: 'CONFIG_INVALID',
      metadata: { field: name },
    });
  });

  test('without a token the host is asked without one', async () => {
    const { host, sync } = await createFixture({ settings: { hostToken: undefined } });
    const report = await sync.pull({ only: ['issues'] });
    expect(report.errors[0]?.message).toContain('answered 401');
    expect(host.requests[0]?.headers.authorization).toBeUndefined();
  });
});
