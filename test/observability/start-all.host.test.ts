import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inLong, inShort } from '../support/test-length.ts';
import { type AllServices, startAllServices, TOKEN } from './all-services.ts';

/** Nobody was signalled twice, which would have ended it at once. */
async function expectStoppedInOrder(
  all: AllServices,
  names: readonly ('authz' | 'runner')[],
): Promise<void> {
  for (const name of names) expect(all.logOf(name).at(-1)?.msg).toBe('stopped');
  const events = all.logOf('notify').map(({ msg }) => msg);
  expect(events.filter((msg) => msg === 'server_shutdown_signal')).toHaveLength(1);
  expect(events).not.toContain('server_shutdown_error');
  for (const url of [all.runner, all.notifyClient]) {
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  }
}

inShort(describe)('the three services of one machine', () => {
  let all: AllServices;

  beforeAll(async () => {
    all = await startAllServices({ env: { NOTIFY_LOG_LEVEL: 'debug', RUNNER_LOG_LEVEL: 'debug' } });
  }, 120_000);

  afterAll(() => all.stop());

  test('each serves its metrics, with build info and figures of the process', async () => {
    const prefixes = { authz: 'gatehouse', notify: 'notify', runner: 'runner' } as const;
    for (const name of ['authz', 'notify', 'runner'] as const) {
      const response = await fetch(`${all.metrics[name]}/metrics`);
      expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4');
      const lines = (await response.text()).split('\n');
      expect(lines.filter((line) => line.startsWith('# HELP') && line.includes('gateway'))).toEqual(
        [],
      );
      const seriesOf = (start: string): number =>
        lines.filter((line) => line.startsWith(start)).length;
      expect(seriesOf(`${prefixes[name]}_build_info{version="`)).toBe(1);
      expect(lines.join('\n')).toContain(`node="${process.version}"} 1`);
      expect(seriesOf(`${prefixes[name]}_scrape_errors_total 0`)).toBe(1);
      expect(seriesOf('nodejs_eventloop_delay_p99_seconds ')).toBe(1);
      expect(seriesOf('process_resident_memory_bytes ')).toBe(1);
    }
  });

  test.each([
    ['authz, an answer', () => authz('AuthzService/Check', CHECK), 200],
    ['authz, a bad request', () => authz('AuthzService/Check', '{"namespace":7}'), 400],
    ['authz, a bad token', () => authz('AuthzService/Check', CHECK, 'wrong'), 401],
    ['authz, another method', () => authz('AuthzService/Nothing', '{}'), 404],
    ['authz, the general path', () => authz('WorkspaceService/ListWorkspaces', '{}'), 400],
    ['notify, an answer', () => notify('ListNotifications', USER), 200],
    ['notify, a bad request', () => notify('ListNotifications', '{"nonsense":1}'), 400],
    ['notify, a bad token', () => notify('ListNotifications', USER, 'wrong'), 401],
    ['notify, another method', () => notify('Nothing', '{}'), 404],
    ['notify, a stream without token', () => stream(''), 401],
    ['notify, a stream with a bad token', () => stream('wrong'), 401],
    ['runner, an answer', () => runner('/api/runs'), 200],
    ['runner, nothing there', () => runner('/api/runs/none'), 404],
    ['runner, a bad token', () => runner('/api/runs', 'wrong'), 401],
    ['runner, no such path', () => runner('/nowhere'), 404],
  ])('request ids: %s', async (_, send, status) => {
    const given = await send();
    expect(given.status).toBe(status);
    expect(given.headers.get('x-request-id')).toBe('test-id.7');
  });

  test.skipIf(process.platform !== 'linux')('each has its own secrets only', () => {
    const environments = new Map<string, string>();
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const parent = / \(.*\) \S (\d+) /s.exec(
          ` ${readFileSync(`/proc/${pid}/stat`, 'latin1')}`,
        )?.[1];
        if (Number(parent) !== all.pid) continue;
        const [, program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
        environments.set(
          program.replace(/^.*\/src\//, ''),
          readFileSync(`/proc/${pid}/environ`, 'latin1'),
        );
      } catch (error) {
        // It ended meanwhile; or this is not root, from whom they are hidden.
        expect((error as NodeJS.ErrnoException).code).toMatch(/ENOENT|ESRCH|EACCES/);
      }
    }
    expect([...environments.keys()].toSorted()).toEqual(
      process.getuid?.() === 0 ? ['main.ts', 'notify/main.ts', 'runner/main.ts'] : [],
    );
    for (const [program, text] of environments) {
      const names = text.split('\0').map((entry) => entry.split('=')[0]);
      const isOf = (prefix: string): boolean =>
        names.some((name) => name?.startsWith(prefix) === true && /TOKEN|SECRET/.test(name));
      expect({
        program,
        gateway: isOf('GATEWAY_'),
        notify: isOf('NOTIFY_'),
        runner: isOf('RUNNER_'),
      }).toEqual({
        program,
        gateway: program === 'main.ts',
        notify: program === 'notify/main.ts',
        runner: program === 'runner/main.ts',
      });
    }
  });

  test('a request id of our own where the one of the caller is malformed', async () => {
    const wrong = { 'x-request-id': 'no spaces please' };
    const answers = [
      await authz('AuthzService/Check', CHECK, TOKEN, wrong),
      await notify('ListNotifications', USER, TOKEN, wrong),
      await runner('/api/runs', TOKEN, wrong),
    ];
    for (const { headers } of answers) {
      expect(headers.get('x-request-id')).toMatch(/^[\w-]{8}-[0-9a-z]+$/);
    }
  });

  test('the log names the request', async () => {
    await notify('ListNotifications', USER);
    await runner('/api/runs');
    await expect
      .poll(() => all.logOf('notify').findLast(({ msg }) => msg === 'rpc'))
      .toMatchObject({ procedure: expect.stringContaining('Notif'), request_id: 'test-id.7' });
    await expect
      .poll(() => all.logOf('runner').findLast(({ msg }) => msg === 'request'))
      .toMatchObject({ request_id: 'test-id.7' });
  });

  // The last: it ends the services of the others.
  test('when one dies the others stop, each once, and the whole fails', async () => {
    process.kill(await all.runnerPid(), 'SIGKILL');
    expect(await all.exited).toBe(1);
    await expectStoppedInOrder(all, ['authz']);
  });

  const ID = { 'x-request-id': 'test-id.7' };
  const CHECK = JSON.stringify({
    namespace: 'group',
    object_id: 'g',
    relation: 'member',
    subject_user_id: 'u',
  });
  const USER = JSON.stringify({ tenant_id: 't', user_id: 'u' });

  function post(url: string, body: string, token: string, more: object): Promise<Response> {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    return fetch(url, { method: 'POST', body, headers: { ...headers, ...ID, ...more } });
  }

  function authz(method: string, body: string, token = TOKEN, more = {}): Promise<Response> {
    return post(`${all.authz}/workspace.v1.${method}`, body, token, more);
  }

  function notify(method: string, body: string, token = TOKEN, more = {}): Promise<Response> {
    return post(`${all.notifyInternal}/notify.v1.NotifyService/${method}`, body, token, more);
  }

  function stream(token: string): Promise<Response> {
    return fetch(`${all.notifyClient}/v1/stream?access_token=${token}`, { headers: ID });
  }

  function runner(path: string, token = TOKEN, more = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, ...ID, ...more };
    return fetch(all.runner + path, { headers });
  }
});

inLong(test)(
  'a signal stops each once, and the whole ends well',
  async () => {
    const all = await startAllServices();
    expect(await all.stop()).toBe(0);
    await expectStoppedInOrder(all, ['authz', 'runner']);
  },
  120_000,
);

inLong(test)(
  'wrong settings of one end the whole with its code',
  async () => {
    const starting = startAllServices({ env: { GATEWAY_CONNECT_PORT: 'x' } });
    await expect(starting).rejects.toThrow(/ended with 2:[^]*authz +\| .*GATEWAY_CONNECT_PORT/);
  },
  120_000,
);
