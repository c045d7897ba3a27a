/*
 * The order of errors: a body that does not decode, or is not valid, is refused for that whatever else there is against it, and loads no
 * shard; one that is merely unusual gets what a plain one gets. Over every carrier.
 */
import http2 from 'node:http2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { envelope, callHttp2 } from '../support/http2-calls.ts';
import { type Instance, startInstance } from '../support/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';
import { createTcpSwitch, type TcpSwitch } from '../support/tcp-switch.ts';

const CARRIERS = ['Connect', 'Connect over HTTP/2', 'gRPC', 'gRPC-Web'] as const;
type Carrier = (typeof CARRIERS)[number];

const VALID =
  '"namespace":"resource","object_id":"d1","relation":"viewer","subject_user_id":"alice"';
const ITEM = `{${VALID.replace('object_id', 'object\\u005fid')}}`;
const LIST = '"namespace":"resource","relation":"viewer"';

const QUESTION =
  '"question":{"namespace":"resource","object_id":"d1","relation":"viewer","subject":{"user_id":"alice"}}';
/** Begins the names of methods of QueryService. */
const QUERY = 'Query';

/** Each as members of an object, to which a scope is added. */
const WRONG = [
  ['Check', `${VALID},"nobody":1`],
  ['Check', `${VALID},"context":7`],
  ['Check', VALID.replace('"d1"', '7')],
  ['Check', VALID.replace('"alice"', '""')],
  ['Check', VALID.replace('viewer', 'Viewer')],
  ['Check', `${VALID},"context":{"a":"${'\\u0061'.repeat(10_000)}"},"objectId":"d2"`],
  ['BatchCheck', `"items":[${ITEM},7]`],
  ['BatchCheck', `"items":[${Array.from({ length: 600 }, () => ITEM).join(',')},{"user":1}]`],
  ['BatchCheck', `"items":[${'{},'.repeat(10_000)}{}]`],
  ['ListObjects', `${LIST},"subject_user_id":""`],
  ['ListObjects', `${LIST},"subject_user_id":["alice"]`],
  ['QueryCheck', '"question":{}'],
  ['QueryCheck', `${QUESTION},"nobody":1`],
  ['QueryCheck', QUESTION.replace('"user_id":"alice"', '"wildcard":true')],
  [
    'QueryBatchCheck',
    `"items":[${Array.from({ length: 600 }, () => `{${QUESTION}}`).join(',')},7]`,
  ],
  ['QueryBatchCheck', `"items":[${'{},'.repeat(10_000)}{}]`],
  ['QueryExplain', `${QUESTION},"remedies_max":101`],
] as const;
const ODD = [
  ['Check', VALID.replace('"d1"', '"\\u0064\\u0031"')],
  ['Check', `${VALID.replace('object_id', 'object\\u005fid')},"context":null`],
  [
    'Check',
    VALID.replace(
      '"subject_user_id":"alice"',
      '"subject_set":{"namespace":"group","object_id":"g"}',
    ),
  ],
  ['BatchCheck', `"items":[${ITEM},{}]`],
  ['BatchCheck', `"items":[${Array.from({ length: 600 }, () => ITEM).join(',')}]`],
  ['ListObjects', `${LIST},"subject_user_id":"al\\u0069ce"`],
  ['QueryCheck', QUESTION],
  [
    'QueryBatchCheck',
    `"items":[{${QUESTION}},{${QUESTION.replace('"d1"', '"\\u0064"')},"context":null}]`,
  ],
  ['QueryFilterObjects', `${LIST},"subject":{"user_id":"alice"},"object_ids":["d1","d2"]`],
] as const;

let database: TestDatabase;
let way: TcpSwitch;
let instances: Readonly<Record<'alone' | 'beside others', Instance>>;
const sessions = new Map<string, http2.ClientHttp2Session>();

beforeAll(async () => {
  database = await createTestDatabase();
  const { target } = database;
  if ('connectionString' in target) throw new Error('the tests name their server');
  way = await createTcpSwitch(target);
  const proxied = { target: way.target };
  instances = {
    alone: await startInstance(proxied),
    'beside others': await startInstance(proxied, {}, undefined, undefined, () => false),
  };
  const { alone } = instances;
  await call(alone, 'AdminService/CreateProject', { id: 'sleeping', name: 'sleeping' });
  const suspended = { id: 'sleeping', status: 'PROJECT_STATUS_SUSPENDED' };
  await call(alone, 'AdminService/UpdateProject', suspended);
}, 60_000);
afterAll(async () => {
  for (const session of sessions.values()) session.destroy();
  for (const instance of Object.values(instances)) await instance.stop();
  await way.end();
  await database.drop();
  for (const instance of Object.values(instances)) expect(instance.failures).toEqual([]);
});

/** The reason of an error, or 'answered'. */
async function reasonOf(
  carrier: Carrier,
  instance: Instance,
  method: string,
  text: string,
): Promise<string> {
  const path = method.startsWith(QUERY)
    ? `/gatehouse.v1.QueryService/${method.slice(QUERY.length)}`
    : `/workspace.v1.AuthzService/${method}`;
  const message = Buffer.from(text);
  const authorization = `Bearer ${instance.token}`;
  if (carrier === 'Connect') {
    const headers = { authorization, 'content-type': 'application/json' };
    const body = new Uint8Array(message);
    const response = await fetch(`${instance.baseUrl}${path}`, { method: 'POST', headers, body });
    return reasonIn(await response.text());
  }
  let session = sessions.get(instance.baseUrl);
  if (session === undefined || session.destroyed) {
    session = http2.connect(instance.baseUrl);
    sessions.set(instance.baseUrl, session);
  }
  const isConnect = carrier === 'Connect over HTTP/2';
  const type = isConnect ? 'json' : `${carrier === 'gRPC' ? 'grpc' : 'grpc-web'}+json`;
  const headers = { authorization, 'content-type': `application/${type}` };
  const parts = [isConnect ? message : envelope(0, message)];
  const { fields, body } = await callHttp2(session, path, headers, parts);
  const details = /grpc-status-details-bin: ?([\w+/=]+)/.exec(body.toString('latin1'))?.[1];
  const packed = fields['grpc-status-details-bin'] ?? details;
  return reasonIn(
    packed === undefined ? body.toString() : Buffer.from(packed, 'base64').toString(),
  );
}

const REASON =
  /(BODY_MALFORMED|FIELD_[A-Z]+|BATCH_TOO_LARGE|PROJECT_[A-Z]+|STORE_[A-Z]+|SHARD_[A-Z]+|INTERNAL)/;

function reasonIn(text: string): string {
  return REASON.exec(text)?.[1] ?? 'answered';
}

const INVALID = /^(BODY_MALFORMED|FIELD_|BATCH_TOO_LARGE)/;

/** How many shards were loaded, once every worker has reported: they do four times a second. */
async function settledLoads(instance: Instance): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 600));
  const text = await instance.renderMetrics();
  const line = text.split('\n').find((one) => one.startsWith('gatehouse_shard_loads_total '));
  return Number(line?.split(' ')[1]);
}

let tenants = 0;

function bodyOf(method: string, members: string, place: string): string {
  return `{${members},${method.startsWith(QUERY) ? `"scope":{${place}}` : place}}`;
}

describe.each(['alone', 'beside others'] as const)('%s', (mode) => {
  describe.each(CARRIERS)('%s', (carrier) => {
    const places = [
      ['a tenant that is not loaded', () => `"tenant_id":"cold${tenants++}"`, 'answered'],
      ['an unknown project', () => '"project_id":"nobody"', 'PROJECT_UNKNOWN'],
      ['a suspended project', () => '"project_id":"sleeping"', 'PROJECT_SUSPENDED'],
    ] as const;
    test.each(places)('of %s', async (_what, placeOf, wanted) => {
      const instance = instances[mode];
      for (const [method, members] of WRONG) {
        const reason = await reasonOf(
          carrier,
          instance,
          method,
          bodyOf(method, members, placeOf()),
        );
        expect(reason, `${method} ${members.slice(0, 200)}`).toMatch(INVALID);
      }
      for (const [method, members] of ODD) {
        const reason = await reasonOf(
          carrier,
          instance,
          method,
          bodyOf(method, members, placeOf()),
        );
        expect(reason, `${method} ${members.slice(0, 200)}`).toBe(wanted);
      }
    });
  });

  test('what is wrong loads no shard', async () => {
    const instance = instances[mode];
    const ask = (method: string, members: string): Promise<string> =>
      reasonOf(
        'Connect',
        instance,
        method,
        bodyOf(method, members, `"tenant_id":"cold${tenants++}"`),
      );
    await ask('Check', VALID);
    const before = await settledLoads(instance);
    for (const [method, members] of WRONG) await ask(method, members);
    await ask('Check', VALID);
    expect(await settledLoads(instance)).toBe(before + 1);
  });

  test('while PostgreSQL is away', async () => {
    const instance = instances[mode];
    way.close();
    try {
      for (const carrier of CARRIERS) {
        const place = (): string => `"tenant_id":"away${tenants++}"`;
        await Promise.all(
          WRONG.map(async ([method, members]) => {
            const reason = await reasonOf(
              carrier,
              instance,
              method,
              bodyOf(method, members, place()),
            );
            expect(reason, `${method} ${members.slice(0, 200)}`).toMatch(INVALID);
          }),
        );
        await Promise.all(
          ODD.map(async ([method, members]) => {
            const reason = await reasonOf(
              carrier,
              instance,
              method,
              bodyOf(method, members, place()),
            );
            expect(reason, `${method} ${members.slice(0, 200)}`).toMatch(
              /^(STORE|SHARD)_UNAVAILABLE/,
            );
          }),
        );
      }
    } finally {
      const { target } = database;
      if (!('connectionString' in target)) way.point(target);
    }
    const ask = (): Promise<string> =>
      reasonOf('Connect', instances['beside others'], 'Check', `{${VALID}}`);
    await expect.poll(ask, { timeout: 20_000 }).toBe('answered');
  });
});
