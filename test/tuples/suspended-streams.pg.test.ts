import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { call } from '../support/service.ts';
import { newProject, sharedInstance } from '../support/shared-instance.ts';
import { linesOf, postLines, tuplesOver } from './support.ts';

/* A stream that runs while its project is suspended ends, as a new one would be refused. */

const instance = await sharedInstance();
const headers = { authorization: `Bearer ${instance.token}` };

const projectId = await newProject(instance);

/** Fills it with more tuples than sockets and windows hold. */
beforeAll(async () => {
  const tuples = Array.from({ length: 60_000 }, (_, i) => ({
    namespace: 'doc',
    object_id: `${i}-${'x'.repeat(200)}`,
    relation: 'viewer',
    subject: { user_id: 'ann' },
  }));
  const done = await postLines(instance, `?project_id=${projectId}&tenant_id=t`, linesOf(tuples));
  expect(done.status).toBe(200);
});
afterEach(async () => {
  const active = { id: projectId, status: 'PROJECT_STATUS_ACTIVE' };
  expect((await call(instance, 'AdminService/UpdateProject', active)).status).toBe(200);
});

/** Takes one part, has the project suspended, and goes on once the service looks again. */
async function readSuspended(stream: AsyncIterable<unknown>): Promise<void> {
  const parts = stream[Symbol.asyncIterator]();
  expect((await parts.next()).done).toBe(false);
  const suspended = { id: projectId, status: 'PROJECT_STATUS_SUSPENDED' };
  expect((await call(instance, 'AdminService/UpdateProject', suspended)).status).toBe(200);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  while ((await parts.next()).done !== true);
}

test('StreamTuples', async () => {
  const stream = tuplesOver(instance, 'grpc').streamTuples({ projectId, tenantId: 't' });
  await expect(readSuspended(stream)).rejects.toThrow('suspended');
});

test('GET /v1/tuples', async () => {
  const response = await fetch(
    `${instance.baseUrl}/v1/tuples?project_id=${projectId}&tenant_id=t`,
    { headers },
  );
  let text = '';
  const decoded = response.body?.pipeThrough(new TextDecoderStream()) as ReadableStream<string>;
  async function* kept(): AsyncGenerator<void> {
    for await (const part of decoded) {
      text = (text + part).slice(-4_096);
      yield;
    }
  }
  await readSuspended(kept());
  expect(text).toMatch(/\n\{"error":[^\n]*suspended[^\n]*\}\n$/);
});

test('StreamObjects', async () => {
  const transport = createGrpcTransport({ baseUrl: instance.baseUrl });
  const stream = createClient(QueryService, transport).streamObjects(
    {
      namespace: 'doc',
      relation: 'viewer',
      subject: { kind: { case: 'userId', value: 'ann' } },
      scope: { projectId, tenantId: 't' },
    },
    { headers },
  );
  await expect(readSuspended(stream)).rejects.toThrow('suspended');
});
