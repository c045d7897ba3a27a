import { spawn } from 'node:child_process';
import { once } from 'node:events';
/* How `gatehouse` reaches a service: contexts and credentials, and what no answer means. */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Ended, gatehouseCommand } from '../support/gatehouse-command.ts';
import { instanceForFile } from '../support/instance.ts';

const { instance } = await instanceForFile();
const command = gatehouseCommand();
const QUERY = 'resource:plan#viewer@user:ann';
const CONTEXTS = join(command.folder, 'gatehouse', 'contexts.json');

describe('no answer is never an allow', () => {
  test('nobody listens: 4', async () => {
    const { code, out, err } = await command.run([
      'check',
      'doc:a#b@user:c',
      '--url',
      'http://127.0.0.1:9',
    ]);
    expect({ code, out }).toEqual({ code: 4, out: '' });
    expect(err).toMatch(/^error: http:\/\/127\.0\.0\.1:9: /);
  });

  test.each([
    ['a page of something else', 200, '<html>', 4],
    ['a proxy without a service', 502, 'bad gateway', 4],
    ['another service', 404, 'not found', 2],
    ['a redirection', 302, '', 2],
    ['a deny without its field', 200, '{}', 1],
    ['an error that may pass', 503, '{"code":"unavailable","message":"later"}', 4],
    ['an error that will not', 400, '{"code":"invalid_argument","message":"no"}', 2],
  ])('%s', async (_, status, body, expected) => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(String(request.headers.authorization));
      response.writeHead(status, { location: 'http://127.0.0.1:9/' }).end(body);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, out } = await command.run(['check', 'doc:a#b@user:c', '--url', url]);
    server.close();
    expect(code).toBe(expected);
    expect(out).toBe(expected === 1 ? 'deny\n' : '');
    expect(seen).toEqual(['undefined']);
  });

  test('a deny that nobody reads is no allow', async () => {
    const child = spawn(join(import.meta.dirname, '../../bin/gatehouse'), ['check', QUERY], {
      env: {
        PATH: process.env['PATH'],
        HOME: command.folder,
        GATEHOUSE_URL: instance.baseUrl,
        GATEHOUSE_TOKEN: instance.token,
      },
    });
    // As `| head` does that has seen enough.
    child.stdout.destroy();
    expect(await once(child, 'close')).toEqual([4, null]);
  });

  test('a silent service ends by the time that is given: 4', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const result = await command.run(['check', 'doc:a#b@user:c', '--url', url, '--timeout', '1']);
    server.closeAllConnections();
    server.close();
    expect(result).toEqual({ code: 4, out: '', err: `error: ${url}: no answer within 1 s\n` });
  });

  test('a wrong token is 2, a missing one says where it comes from', async () => {
    const url = ['--url', instance.baseUrl];
    const wrong = await command.run(['check', 'doc:a#b@user:c', ...url], {
      GATEHOUSE_TOKEN: 'wrong-token',
    });
    expect(wrong.code).toBe(2);
    expect(wrong.err).not.toContain('wrong-token');
    const none = await command.run(['check', 'doc:a#b@user:c', ...url]);
    expect(none.code).toBe(2);
    expect(none.err).toContain('set GATEHOUSE_TOKEN, or give --token-file');
  });
});

describe('contexts', () => {
  const own = (args: readonly string[], input = ''): Promise<Ended> => command.run(args, {}, input);

  test('keep a service and its credentials for this user alone', async () => {
    const set = [
      'context',
      'set',
      'here',
      '--url',
      `${instance.baseUrl}/`,
      '-p',
      'default',
      '--token-file',
      '-',
    ];
    expect(await own(set, `${instance.token}\n`)).toEqual({
      code: 0,
      out: '',
      err: `here: ${instance.baseUrl}, the current context\n`,
    });
    expect(statSync(CONTEXTS).mode & 0o777).toBe(0o600);
    expect(statSync(join(CONTEXTS, '..')).mode & 0o777).toBe(0o700);
    expect(await own(['check', 'resource:plan#viewer@user:ann'])).toMatchObject({
      code: 1,
      out: 'deny\n',
    });
    const list = await own(['context', 'list']);
    expect(list.out).not.toContain(instance.token);
    expect(list.out).toMatch(/^\* {2}here {2}\S+ {2}default +token$/m);
  });

  test('another address does not get the token', async () => {
    expect(
      await own(['check', 'resource:plan#viewer@user:ann', '--url', instance.baseUrl]),
    ).toMatchObject({ code: 2 });
    await own(['context', 'set', 'here', '--url', 'http://127.0.0.1:9']);
    expect(readFileSync(CONTEXTS, 'utf8')).not.toContain(instance.token);
  });

  test('a file that others can read is refused, as is one that is cut', async () => {
    chmodSync(CONTEXTS, 0o644);
    expect(await own(['check', 'resource:plan#viewer@user:ann'])).toEqual({
      code: 2,
      out: '',
      err: `error: ${CONTEXTS}: holds credentials and is open to others: chmod 600 ${CONTEXTS}\n`,
    });
    writeFileSync(CONTEXTS, '{"contexts":', { mode: 0o600 });
    chmodSync(CONTEXTS, 0o600);
    const { code, err } = await own(['context', 'list']);
    expect(code).toBe(2);
    expect(err).toContain(`${CONTEXTS}: `);
  });

  test.each([
    [
      ['context', 'set', 'a b', '--url', 'http://a'],
      'a b: a name has 1 to 64 letters, digits, dots, dashes and underscores',
    ],
    [
      ['context', 'set', 'x', '--url', 'http://u:p@a'],
      '--url: must have no user, password or query; a token comes from a file or GATEHOUSE_TOKEN',
    ],
    [
      ['context', 'set', 'x', '--url', 'localhost:8080'],
      '--url: localhost:8080 must read http://HOST:PORT or https://HOST:PORT',
    ],
    [['context', 'set', 'x'], 'there is no context x yet: give --url'],
    [['context', 'use', 'x'], 'there is no context x'],
    [['check', 'a:b#c@user:d', '-c', 'x'], 'there is no context x'],
    [
      ['check', 'a:b#c@user:d', '-c', 'x', '--url', 'http://a'],
      '--context: has its own service, so that --url cannot name another',
    ],
  ])('%s is refused', async (args, message) => {
    writeFileSync(CONTEXTS, '{"contexts":{}}', { mode: 0o600 });
    const { code, err } = await own(args);
    expect({ code, err: err.split('\n')[0] }).toEqual({ code: 2, err: `error: ${message}` });
  });
});
