import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeAll, expect, test } from 'vitest';
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
  const tuples = Array.from({ length: 40_000 }, (_, i) => ({
    namespace: 'doc',
    object_id: `${i}-${'x'.repeat(200)}`,
    relation: 'viewer',
    subject: { user_id: 'ann' },
  }));
  const done = await postLines(instance, `?project_id=${projectId}&tenant_id=t`, linesOf(tuples));
  expect(done.status).toBe(200);
});

type Begun = { readonly name: string; readonly rest: () => Promise<void> };

/** Takes one part; `rest` takes the others. */
async function begin(name: string, stream: AsyncIterable<unknown>): Promise<Begun> {
  const parts = stream[Symbol.asyncIterator]();
  expect((await parts.next()).done).toBe(false);
  return {
    name,
    rest: async () => {
      while ((await parts.next()).done !== true);
    },
  };
}

function tupleStream(): AsyncIterable<unknown> {
  return tuplesOver(instance, 'grpc').streamTuples({ projectId, tenantId: 't' });
}

function objectStream(): AsyncIterable<unknown> {
  const transport = createGrpcTransport({ baseUrl: instance.baseUrl });
  return createClient(QueryService, transport).streamObjects(
    {
      namespace: 'doc',
      relation: 'viewer',
      subject: { kind: { case: 'userId', value: 'ann' } },
      scope: { projectId, tenantId: 't' },
    },
    { headers },
  );
}

test('StreamTuples, StreamObjects and GET /v1/tuples', async () => {
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
  const exported = await begin('GET /v1/tuples', kept());
  const refused = [
    await begin('StreamTuples', tupleStream()),
    await begin('StreamObjects', objectStream()),
  ];
  const suspended = { id: projectId, status: 'PROJECT_STATUS_SUSPENDED' };
  expect((await call(instance, 'AdminService/UpdateProject', suspended)).status).toBe(200);
  // Then the service looks again, once for all of them.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  for (const { name, rest } of refused) await expect(rest(), name).rejects.toThrow('suspended');
  await exported.rest();
  expect(text).toMatch(/\n\{"error":[^\n]*suspended[^\n]*\}\n$/);
});
