/* Commands of operators, as they are typed: projects, budgets and callers. */
import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type CommandParts, type Ended, gatehouseIn } from '../support/gatehouse-command.ts';
import { type Service, startService } from '../support/service.ts';

vi.setConfig({ testTimeout: 60_000 });

const folder = mkdtempSync(join(tmpdir(), 'operate-commands-'));
let service: Service;
/** All that any command wrote. */
let written = '';

beforeAll(async () => {
  service = await startService({ postgres: 'shared' });
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

async function gatehouse(...rest: CommandParts): Promise<Ended> {
  const ended = await gatehouseIn(folder, ...rest);
  written += ended.out + ended.err;
  return ended;
}

const portOf = (url: string): string => new URL(url).port;

describe('project', () => {
  const project = (...args: readonly string[]): Promise<Ended> =>
    gatehouse(['project', ...args, '--url', service.baseUrl], {
      GATEHOUSE_TOKEN: service.token,
      GATEHOUSE_ADMIN_SECRET: service.adminSecret,
    });

  test('is created, changed, shown and listed', async () => {
    const created = await project(
      'create',
      'atlas',
      '--name',
      'Atlas X',
      '--data-region',
      'eu-1',
      '--max-check-reads',
      '50000',
      '--refuse-unknown-relations',
      'true',
      '--json',
    );
    expect(created).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(created.out)).toMatchObject({
      id: 'atlas',
      name: 'Atlas X',
      status: 'PROJECT_STATUS_ACTIVE',
      data_region: 'eu-1',
      max_check_reads: 50_000,
      refuse_unknown_relations: true,
    });
    const updated = await project(
      'update',
      'atlas',
      '--status',
      'suspended',
      '--name',
      'Atlas',
      '--clear-data-region',
      '--clear-max-check-reads',
      '--refuse-unknown-relations',
      'false',
    );
    expect(updated.out.split('\n').slice(0, 7)).toEqual([
      'id: atlas',
      'name: Atlas',
      'status: suspended',
      'model: built-in',
      'region: any',
      'read budget: the default',
      'unknown relations: admitted',
    ]);
    const listed = await project('list');
    expect(listed.out).toMatch(/^ID +NAME +STATUS +REGION +READS +MODEL$/m);
    expect(listed.out).toMatch(/^atlas +Atlas +suspended +built-in$/m);
    expect((await project('get', 'nowhere')).code).toBe(2);
  });

  test.each([
    [['update', 'atlas'], 'error: give what is to change, such as --name\n'],
    [
      ['update', 'atlas', '--status', 'off'],
      'error: --status: must be active or suspended, not off\n',
    ],
    [['get'], 'error: name a project\n'],
    [
      ['create', 'x', '--max-check-reads', '0'],
      'error: --max-check-reads: must be a whole number from 1 to 1000000000\n',
    ],
  ])('%j is refused', async (args, message) => {
    const ended = await project(...args);
    expect(ended).toMatchObject({ code: 2, out: '' });
    expect(ended.err.startsWith(message)).toBe(true);
  });

  test('a budget that it is given is the one that the report shows', async () => {
    const environment = {
      GATEWAY_CONNECT_PORT: portOf(service.baseUrl),
      GATEWAY_SERVICE_AUTH_TOKENS: service.token,
      GATEWAY_ADMIN_API_SECRET: service.adminSecret,
    };
    const set = await gatehouse(['budget', 'default', '--set', '4000'], environment);
    expect(set).toMatchObject({ code: 0, err: '' });
    expect(set.out).toMatch(
      /^project default: budget 4000 reads \(its own; the default is 10000\)\nevaluations.*: 0 answered, 0 refused\nsuggestion: unknown \(nothing was asked since the start\)\n$/,
    );
    const cleared = await gatehouse(['budget', 'default', '--clear', '--json'], environment);
    expect(JSON.parse(cleared.out)).toMatchObject({
      instances: [{ url: service.baseUrl, budget: { effective_max_check_reads: 10_000 } }],
      suggestion: { verdict: 'unknown' },
    });
    const nobody = await gatehouse(['budget', '--url', `http://127.0.0.1:65534`]);
    expect(nobody).toMatchObject({ code: 2, out: '' });
  });
});

describe('callers', () => {
  const TOKEN = 'a-token-of-billing';
  const CALLER = {
    name: 'billing',
    tokens: [TOKEN],
    scopes: [
      {
        projects: ['atlas'],
        tenants: ['', 'acme'],
        services: ['workspace.v1.AuthzService'],
        methods: ['read'],
      },
    ],
    rate_limit: { per_second: 5 },
  };
  const callersFile = (name: string, ...callers: readonly object[]): string => {
    writeFileSync(join(folder, name), JSON.stringify({ callers }), { mode: 0o600 });
    chmodSync(join(folder, name), 0o600);
    return name;
  };

  test('a file that is right: who may do what, without tokens', async () => {
    const file = callersFile('callers.json', CALLER, {
      name: 'all',
      token_sha256: ['0'.repeat(64)],
      scopes: [{ projects: '*', tenants: '*', services: '*', methods: '*' }],
    });
    expect(await gatehouse(['callers', 'check', file])).toEqual({
      code: 0,
      err: '',
      out: `${[
        'CALLER   CREDENTIALS  RATE          PROJECTS  TENANTS   SERVICES                   METHODS',
        'billing  1 tokens     5/s, burst 5  atlas     "", acme  workspace.v1.AuthzService  read',
        'all      1 hashes     any           *         *         *                          *',
      ].join('\n')}\n`,
    });
    const may = (...args: readonly string[]): Promise<Ended> =>
      gatehouse(['callers', 'may', file, 'billing', ...args]);
    const check = 'workspace.v1.AuthzService/Check';
    expect(await may(check, '-p', 'atlas', '-t', 'acme')).toMatchObject({
      code: 0,
      out: `yes: ${check} needs read\n`,
    });
    expect((await may(check, '-p', 'atlas', '-t', 'other')).code).toBe(1);
    expect((await may(check)).code).toBe(1);
    expect(await may('workspace.v1.AuthzService/Chekc')).toMatchObject({ code: 2, out: '' });
    expect(await may('fsck/start')).toMatchObject({
      code: 1,
      out: 'no: fsck/start needs manage\n',
    });
  });

  const wrongScope = { ...CALLER.scopes[0], methods: ['reed'] };
  test.each([
    [
      'callers[0].tokens[1] must be printable ASCII without spaces',
      [{ ...CALLER, tokens: [TOKEN, 'two words'] }],
    ],
    [
      'callers[0].scopes[0].methods[0] must be one of read, write, manage, export, stores',
      [{ ...CALLER, scopes: [wrongScope] }],
    ],
    ['callers[1] has a token that callers[0] has, too', [CALLER, { ...CALLER, name: 'second' }]],
    ['callers is empty', []],
  ])('a mistake is named by its place: %s', async (problem, callers) => {
    const file = callersFile('wrong.json', ...callers);
    expect(await gatehouse(['callers', 'check', file])).toEqual({
      code: 1,
      out: `wrong.json: ${problem}\n`,
      err: '',
    });
  });

  test('a hash is that of the token alone', async () => {
    const expected = createHash('sha256').update(TOKEN).digest('hex');
    const { code, out } = await gatehouse(['callers', 'hash'], {}, `${TOKEN}\n`);
    expect([code, out]).toEqual([0, `${expected}\n`]);
  });

  test('no token is ever shown', () => {
    expect(written).toContain('billing');
    expect(written).not.toContain(TOKEN);
  });
});
