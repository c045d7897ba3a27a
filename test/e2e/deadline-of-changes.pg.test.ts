import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { beforeEach, expect, test } from 'vitest';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { TEST_ADMIN_SECRET } from '../support/service.ts';

/*
 * A change whose caller's deadline passes while it is under way may still be applied: to answer "the deadline has passed", as
 * a read is answered, would say that nothing was done.
 */
const { database, instance } = await instanceForFile();

const TIMEOUT_MS = 500;
let projects = 0;
let projectId = '';

beforeEach(async () => {
  projectId = `late-${++projects}`;
  await mustCall('AdminService/CreateProject', { id: projectId, name: projectId });
  await mustCall('AuthzService/WriteRelationTuples', write('first'));
});

const write = (objectId: string) => ({
  project_id: projectId,
  updates: [
    {
      op: 'OP_INSERT',
      tuple: {
        namespace: 'doc',
        object_id: objectId,
        relation: 'viewer',
        subject: { user_id: 'ann' },
      },
    },
  ],
});

type Answer = { readonly status: number; readonly body: Record<string, unknown> };

async function send(method: string, message: object, timeoutMs?: number): Promise<Answer> {
  const response = await fetch(`${instance.baseUrl}/workspace.v1.${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': TEST_ADMIN_SECRET,
      ...(timeoutMs === undefined ? {} : { 'connect-timeout-ms': String(timeoutMs) }),
    },
    body: JSON.stringify(message),
  });
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

async function mustCall(method: string, message: object): Promise<void> {
  expect(await send(method, message)).toMatchObject({ status: 200 });
}

/** What a change answered while somebody else held its tenant until its deadline had passed. */
async function whileHeld<T>(change: () => Promise<T>): Promise<T> {
  const holder = await database.pool.connect();
  try {
    await holder.query('begin');
    await holder.query('select from shard where project_id = $1 for update', [projectId]);
    return await change();
  } finally {
    await holder.query('commit');
    holder.release();
  }
}

async function objects(): Promise<unknown> {
  const { body } = await send('AuthzService/ReadRelationTuples', { project_id: projectId });
  return ((body['tuples'] ?? []) as { readonly object_id: string }[]).map((one) => one.object_id);
}

const UNKNOWN = {
  status: 503,
  body: { code: 'unavailable', details: [{ debug: { reason: 'WRITE_OUTCOME_UNKNOWN' } }] },
};

test('DeprovisionUser says that it is not known, and is done', async () => {
  const answer = await whileHeld(() =>
    send('AuthzService/DeprovisionUser', { project_id: projectId, user_id: 'ann' }, TIMEOUT_MS),
  );
  expect(answer).toMatchObject(UNKNOWN);
  await expect.poll(objects).toEqual([]);
});

test('WriteRelationTuples says so once it was sent; what waits behind it was not, and says that', async () => {
  const [sent, behind] = await whileHeld(async () => {
    const first = send('AuthzService/WriteRelationTuples', write('second'), TIMEOUT_MS * 2);
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS / 2));
    const next = send('AuthzService/WriteRelationTuples', write('third'), TIMEOUT_MS);
    return await Promise.all([first, next]);
  });
  expect(sent).toMatchObject(UNKNOWN);
  expect(behind).toMatchObject({
    status: 504,
    body: { code: 'deadline_exceeded', details: [{ debug: { reason: 'DEADLINE_EXCEEDED' } }] },
  });
  await expect.poll(objects).toEqual(['first', 'second']);
});

test('so does a change over gRPC-Web and in Connect with binary messages', async () => {
  const headers = {
    authorization: `Bearer ${instance.token}`,
    'x-admin-secret': TEST_ADMIN_SECRET,
  };
  for (const create of [createGrpcWebTransport, createConnectTransport]) {
    await expect.poll(objects).toEqual(create === createGrpcWebTransport ? ['first'] : []);
    await mustCall('AuthzService/WriteRelationTuples', write('first'));
    const transport = create({ baseUrl: instance.baseUrl, httpVersion: '1.1' });
    const client = createClient(AuthzService, transport);
    const timeout = create === createGrpcWebTransport ? 'grpc-timeout' : 'connect-timeout-ms';
    const value = create === createGrpcWebTransport ? `${TIMEOUT_MS}m` : String(TIMEOUT_MS);
    // By the header alone: with an option the client would not wait for the answer.
    const answer = await whileHeld(() =>
      client
        .deprovisionUser(
          { projectId, userId: 'ann' },
          { headers: { ...headers, [timeout]: value } },
        )
        .then(() => 'done', String),
    );
    expect(answer).toContain('[unavailable] the deadline of the request passed while');
  }
});

test('a read whose deadline passes says that, as nothing can have come of it', async () => {
  const answer = await whileHeld(async () => {
    const locker = await database.pool.connect();
    try {
      await locker.query('begin');
      await locker.query('lock table relation_tuple in access exclusive mode');
      return await send('AuthzService/ReadRelationTuples', { project_id: projectId }, TIMEOUT_MS);
    } finally {
      await locker.query('rollback');
      locker.release();
    }
  });
  expect(answer).toMatchObject({ status: 504, body: { code: 'deadline_exceeded' } });
});
