/*
 * `gatehouse import openfga`: from our own door for OpenFGA's clients, and from OpenFGA itself where it is here. What is imported
 * answers as the source does, and a planted difference is found.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { findOpenFga, startOpenFga } from '../../scripts/peers/openfga-server.ts';
import { type Ended, gatehouseCommand } from '../support/gatehouse-command.ts';
import { instanceForFile } from '../support/instance.ts';

const { instance } = await instanceForFile({ GATEWAY_OPENFGA_API: 'true' });
const command = gatehouseCommand();
const program = findOpenFga();

const own = (relation: string) => ({ computedUserset: { relation } });
const users = (...types: readonly object[]) => ({ directly_related_user_types: types });
const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'team',
      relations: { member: { this: {} } },
      metadata: { relations: { member: users({ type: 'user' }) } },
    },
    {
      type: 'Doc',
      relations: {
        banned: { this: {} },
        reader: { this: {} },
        viewer: { difference: { base: own('reader'), subtract: own('banned') } },
      },
      metadata: {
        relations: {
          banned: users({ type: 'user' }),
          reader: users(
            { type: 'user' },
            { type: 'user', wildcard: {} },
            { type: 'team', relation: 'member' },
          ),
        },
      },
    },
  ],
};
/** More than a page of Read, so that a second one is asked for. */
const TUPLES = [
  { user: 'user:*', relation: 'reader', object: 'Doc:open' },
  { user: 'team:eng#member', relation: 'reader', object: 'Doc:plan' },
  { user: 'user:mal', relation: 'banned', object: 'Doc:plan' },
  ...Array.from({ length: 120 }, (_, index) => ({
    user: `user:u${index}`,
    relation: 'member',
    object: 'team:eng',
  })),
];

async function json(
  url: string,
  body: object,
  token = '',
): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.status, text).toBeLessThan(300);
  return JSON.parse(text) as Readonly<Record<string, string>>;
}

/** Makes a store with MODEL and TUPLES; its id. */
async function storeOf(endpoint: string, token = ''): Promise<string> {
  const { id = '' } = await json(`${endpoint}/stores`, { name: 'to move' }, token);
  const store = `${endpoint}/stores/${id}`;
  const { authorization_model_id: model } = await json(
    `${store}/authorization-models`,
    MODEL,
    token,
  );
  for (let from = 0; from < TUPLES.length; from += 100) {
    const writes = { tuple_keys: TUPLES.slice(from, from + 100) };
    await json(`${store}/write`, { authorization_model_id: model, writes }, token);
  }
  return id;
}

const move = (args: readonly string[], peerToken = ''): Promise<Ended> =>
  command.run(['import', 'openfga', ...args], {
    GATEHOUSE_URL: instance.baseUrl,
    GATEHOUSE_TOKEN: instance.token,
    GATEHOUSE_ADMIN_SECRET: instance.adminSecret,
    GATEHOUSE_PEER_TOKEN: peerToken,
  });

const ask = (...args: readonly string[]): Promise<Ended> =>
  command.run(args, { GATEHOUSE_URL: instance.baseUrl, GATEHOUSE_TOKEN: instance.token });

describe('from a store of OpenFGA’s API', () => {
  const endpoint = `${instance.baseUrl}/openfga`;
  let from: readonly string[];

  beforeAll(async () => {
    from = ['--endpoint', endpoint, '--store', await storeOf(endpoint, instance.token)];
  });

  test('model and tuples arrive, and a sample has the same answers', async () => {
    const { code, out } = await move(
      [...from, '-p', 'moved', '--create', '--sample', '400'],
      instance.token,
    );
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(
        /^123 tuples\n400 queries asked of both: [1-9]\d* allowed, 0 errors there, 0 differ\n$/,
      ),
    });
    expect(await ask('check', 'doc:plan#viewer@user:u7', '-p', 'moved')).toMatchObject({ code: 0 });
    expect(await ask('check', 'doc:plan#viewer@user:mal', '-p', 'moved')).toMatchObject({
      code: 1,
    });
  });

  test('a dry run writes nothing', async () => {
    const { code, out, err } = await move([...from, '-p', 'dry', '--dry-run'], instance.token);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('dry');
    const known = await move([...from, '-p', 'moved', '-t', 'dry', '--dry-run'], instance.token);
    expect(known).toMatchObject({ code: 0, out: '123 tuples\n' });
    expect(await ask('check', 'doc:plan#viewer@user:u7', '-p', 'moved', '-t', 'dry')).toMatchObject(
      { code: 1 },
    );
  });

  test('an answer that differs is shown, and is 1', async () => {
    await json(
      `${instance.baseUrl}/gatehouse.v1.TupleService/WriteTuples`,
      {
        project_id: 'moved',
        tenant_id: 'planted',
        updates: Array.from({ length: 60 }, (_, index) => ({
          op: 'OP_INSERT',
          tuple: {
            namespace: 'doc',
            object_id: 'open',
            relation: 'banned',
            subject: { user_id: `u${index}` },
          },
        })),
      },
      instance.token,
    );
    const { code, out } = await move(
      [...from, '-p', 'moved', '-t', 'planted', '--sample', '500'],
      instance.token,
    );
    expect(code).toBe(1);
    expect(out).toMatch(/^differs: Doc:open#viewer@user:u\d+: allow there, deny here$/m);
  });

  test.each([
    [['--endpoint', 'http://127.0.0.1:9'], 4, 'http://127.0.0.1:9: fetch failed'],
    [
      ['--endpoint', 'ftp://x'],
      2,
      '--endpoint: ftp://x must read http://HOST:PORT or https://HOST:PORT',
    ],
    [[], 2, '--endpoint: must name the service, and nothing stands beside it'],
    [['--endpoint', 'http://a', '--sample', '-1'], 2, '--sample needs a value'],
  ])('%s: %i', async (args, expected, message) => {
    const { code, out, err } = await move(args);
    expect({ code, out }).toEqual({ code: expected, out: '' });
    expect(err).toContain(`error: ${message}`);
  });
});

describe.skipIf(program === undefined)('OpenFGA (Go builds it)', () => {
  test('model and tuples arrive, and a sample has the same answers', async () => {
    const openFga = await startOpenFga(program ?? '');
    try {
      await storeOf(openFga.baseUrl);
      const { code, out } = await move(['--endpoint', openFga.baseUrl, '-p', 'real', '--create']);
      expect({ code, out }).toEqual({
        code: 0,
        out: expect.stringMatching(
          /^123 tuples\n1000 queries asked of both: [1-9]\d* allowed, 0 errors there, 0 differ\n$/,
        ),
      });
    } finally {
      await openFga.stop();
    }
  });
});
