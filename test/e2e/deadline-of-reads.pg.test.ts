import http2 from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { startInstance } from '../support/instance.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';

/*
 * A read waits for a tenant whose load, or whose changes, do not come. Where the caller stated its time, the end of that
 * time is `deadline_exceeded`, whatever carries the call; where it stated none, the service's own limit is `unavailable`.
 */
const database = await createTestDatabase();
let areChangesLost = false;
const instance = await startInstance(
  database,
  { GATEWAY_REQUEST_TIMEOUT_MS: '1500', GATEWAY_POLL_INTERVAL_MS: '3600000' },
  undefined,
  () => areChangesLost,
);
// Workers learn of a change by reading it, and not before somebody asks for it.
const { workers } = instance;
const hint = workers.hint.bind(workers);
workers.hint = (...told) => {
  if (!areChangesLost) hint(...told);
};

const STATED_MS = 300;
const SUBJECT = { namespace: 'resource', objectId: 'd1', relation: 'viewer', subjectUserId: 'ann' };
const PATH = '/workspace.v1.AuthzService/Check';
const sessions: http2.ClientHttp2Session[] = [];

beforeAll(() => {
  for (const url of [instance.baseUrl, instance.generalUrl]) sessions.push(http2.connect(url));
});
afterAll(async () => {
  for (const session of sessions) session.destroy();
  await instance.stop();
  await database.drop();
  expect(instance.failures).toEqual([]);
});

async function write(tenantId: string, userId: string): Promise<string> {
  const { status, body } = await call(instance, 'AuthzService/WriteRelationTuples', {
    tenant_id: tenantId,
    updates: [
      {
        op: 'OP_INSERT',
        tuple: {
          namespace: SUBJECT.namespace,
          object_id: SUBJECT.objectId,
          relation: SUBJECT.relation,
          subject: { user_id: userId },
        },
      },
    ],
  });
  expect(status).toBe(200);
  return String(body['consistency_token']);
}

/** Runs `work` while nobody reads `table`. */
async function whileLocked<T>(table: string, work: () => Promise<T>): Promise<T> {
  const locker = await database.pool.connect();
  try {
    await locker.query('begin');
    await locker.query(`lock table ${table} in access exclusive mode`);
    return await work();
  } finally {
    await locker.query('rollback');
    locker.release();
  }
}

const CARRIERS = ['Connect over HTTP/1.1', 'gRPC-Web over HTTP/1.1', 'Connect', 'gRPC'] as const;

/** The code of a Check by each carrier, on the hot path and on the general one; 'allowed' or 'denied' where it has none. */
async function checkByAll(tenantId: string, timeoutMs?: number): Promise<readonly string[]> {
  const message = Buffer.from(
    toBinary(CheckRequestSchema, create(CheckRequestSchema, { ...SUBJECT, tenantId })),
  );
  const calls = CARRIERS.flatMap((carrier) =>
    [0, 1].map(async (way) => {
      const isConnect = carrier.startsWith('Connect');
      const headers: Record<string, string> = {
        authorization: `Bearer ${instance.token}`,
        'content-type': isConnect
          ? 'application/proto'
          : `application/${carrier.startsWith('gRPC-Web') ? 'grpc-web' : 'grpc'}+proto`,
      };
      if (timeoutMs !== undefined) {
        if (isConnect) headers['connect-timeout-ms'] = String(timeoutMs);
        else headers['grpc-timeout'] = `${timeoutMs}m`;
      }
      const body = isConnect ? message : envelope(0, message);
      const answer = carrier.endsWith('HTTP/1.1')
        ? await overHttp1(way, headers, body)
        : await callHttp2(sessions[way] as http2.ClientHttp2Session, PATH, headers, [body]);
      return `${carrier} ${way === 0 ? 'hot' : 'general'}: ${outcomeOf(answer, isConnect)}`;
    }),
  );
  return await Promise.all(calls);
}

type Answer = { readonly status: number; readonly fields: object; readonly body: Buffer };

async function overHttp1(
  way: number,
  headers: Record<string, string>,
  body: Buffer,
): Promise<Answer> {
  const url = way === 0 ? instance.baseUrl : instance.generalUrl;
  const response = await fetch(`${url}${PATH}`, { method: 'POST', headers, body });
  const fields = Object.fromEntries(response.headers);
  return { status: response.status, fields, body: Buffer.from(await response.arrayBuffer()) };
}

const CODE_OF_STATUS: Readonly<Record<string, string>> = {
  4: 'deadline_exceeded',
  14: 'unavailable',
};

function outcomeOf({ status, fields, body }: Answer, isConnect: boolean): string {
  if (isConnect) {
    if (status === 200) return body.length > 0 ? 'allowed' : 'denied';
    return `${status} ${String((JSON.parse(body.toString()) as { code: unknown }).code)}`;
  }
  const text = `${new URLSearchParams({ ...fields }).toString()}\n${body.toString('latin1')}`;
  const code = /grpc-status[=:] ?(\d+)/.exec(text)?.[1] ?? 'no status';
  if (code === '0') return body.readUInt32BE(1) > 0 ? 'allowed' : 'denied';
  return CODE_OF_STATUS[code] ?? code;
}

/** What all carriers say on both paths. */
const all = (ofConnect: string, ofGrpc = ofConnect): readonly string[] =>
  CARRIERS.flatMap((carrier) =>
    ['hot', 'general'].map(
      (way) => `${carrier} ${way}: ${carrier.startsWith('Connect') ? ofConnect : ofGrpc}`,
    ),
  );
const TIME_OVER = all('504 deadline_exceeded', 'deadline_exceeded');
const UNAVAILABLE = all('503 unavailable', 'unavailable');

describe('a tenant whose load is slow', () => {
  test("the caller's own time", async () => {
    await write('cold', 'ann');
    await whileLocked('relation_tuple', async () => {
      expect(await checkByAll('cold', STATED_MS)).toEqual(TIME_OVER);
    });
    expect(await checkByAll('cold')).toEqual(all('allowed'));
  });

  test("the service's own limit", async () => {
    await write('colder', 'ann');
    await whileLocked('relation_tuple', async () => {
      expect(await checkByAll('colder')).toEqual(UNAVAILABLE);
    });
    expect(await checkByAll('colder')).toEqual(all('allowed'));
  });
});

describe('a tenant that catches up', () => {
  /** What `check` says while the last change of the tenant can be read by nobody. */
  async function whileBehind(
    tenantId: string,
    check: () => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    areChangesLost = true;
    try {
      await write(tenantId, 'ann');
      return await whileLocked('tuple_change', check);
    } finally {
      areChangesLost = false;
    }
  }

  test.each([
    ["the caller's own time", STATED_MS, TIME_OVER],
    ["the service's own limit", undefined, UNAVAILABLE],
  ] as const)('%s', async (name, timeoutMs, expected) => {
    const tenantId = name.length.toString();
    await write(tenantId, 'bob');
    expect(await checkByAll(tenantId)).toEqual(all('denied'));
    expect(await whileBehind(tenantId, () => checkByAll(tenantId, timeoutMs))).toEqual(expected);
    expect(await checkByAll(tenantId)).toEqual(all('allowed'));
  });
});
