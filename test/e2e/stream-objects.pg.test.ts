import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import * as grpc from '@grpc/grpc-js';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import {
  QueryService,
  StreamObjectsRequestSchema,
  type StreamObjectsResponse,
  StreamObjectsResponseSchema,
} from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* Long lists of objects as a stream: complete, of one revision, at the pace of whoever reads. */
const { instance } = await instanceForFile({ GATEWAY_MAX_CHECK_READS: '20000' });
const OBJECTS = 50_000;
// Long ids: what is not read yet is more than sockets hold.
const idOf = (i: number): string => `${String(i).padStart(8, '0')}-${'x'.repeat(90)}`;
const headers = { authorization: `Bearer ${instance.token}` };
const subject = { kind: { case: 'userId' as const, value: 'ann' } };
const of = { namespace: 'thing', relation: 'holder', subject, scope: { tenantId: 'many' } };

beforeAll(async () => {
  // Through the database: what a stream reads matters here, not how it got there.
  const updates = [{ op: 'OP_INSERT', tuple: holding('first') }];
  const wrote = { tenant_id: 'many', updates };
  expect((await call(instance, 'AuthzService/WriteRelationTuples', wrote)).status).toBe(200);
  for (let at = 0; at < OBJECTS; at += 1_000) {
    const some = Array.from({ length: 1_000 }, (_, i) => holding(idOf(at + i)));
    const many = some.map((tuple) => ({ op: 'OP_INSERT', tuple }));
    const body = { tenant_id: 'many', updates: many };
    expect((await call(instance, 'AuthzService/WriteRelationTuples', body)).status).toBe(200);
  }
}, 180_000);

function holding(object_id: string): object {
  return { namespace: 'thing', object_id, relation: 'holder', subject: { user_id: 'ann' } };
}

const { baseUrl } = instance;
const overHttp1 = () => createConnectTransport({ baseUrl, httpVersion: '1.1' });
const overGrpc = () => createGrpcTransport({ baseUrl });

describe('a long stream', () => {
  test('is whole and of one revision, whatever is written while it is read slowly', async () => {
    const client = createClient(QueryService, overHttp1());
    let count = 0;
    let last = '';
    const tokens = new Set<string>();
    let writes = 0;
    for await (const part of client.streamObjects(of, { headers })) {
      tokens.add(part.consistencyToken);
      for (const id of part.objectIds) {
        if (id <= last) throw new Error(`${id} after ${last}`);
        last = id;
        count++;
      }
      // Objects come and go before and behind the reader.
      if (writes < 20) {
        writes++;
        const updates = [
          { op: 'OP_INSERT', tuple: holding(`new-${writes}`) },
          { op: 'OP_DELETE', tuple: holding(idOf(OBJECTS - writes)) },
        ];
        const body = { tenant_id: 'many', updates };
        expect((await call(instance, 'AuthzService/WriteRelationTuples', body)).status).toBe(200);
      }
    }
    expect([count, tokens.size]).toEqual([OBJECTS + 1, 1]);
    const restored = Array.from({ length: 20 }, (_, i) => [
      { op: 'OP_DELETE', tuple: holding(`new-${i + 1}`) },
      { op: 'OP_INSERT', tuple: holding(idOf(OBJECTS - i - 1)) },
    ]).flat();
    const body = { tenant_id: 'many', updates: restored };
    expect((await call(instance, 'AuthzService/WriteRelationTuples', body)).status).toBe(200);
  }, 120_000);

  test.each([
    ['Connect over HTTP/1.1', overHttp1],
    ['gRPC', overGrpc],
  ])('whose reader leaves costs nothing further: %s', async (_name, transport) => {
    const client = createClient(QueryService, transport());
    const controller = new AbortController();
    const { signal } = controller;
    const read = async (): Promise<void> => {
      for await (const part of client.streamObjects(of, { headers, signal })) {
        expect(part.objectIds).toHaveLength(1_000);
        controller.abort();
      }
    };
    await expect(read()).rejects.toThrow(/abort|cancel/i);
    // The shard answers at once, and is changed at once.
    const updates = [{ op: 'OP_INSERT', tuple: holding('after') }];
    const body = { tenant_id: 'many', updates };
    const written = await call(instance, 'AuthzService/WriteRelationTuples', body);
    const scope = {
      tenant_id: 'many',
      at_least_consistency_token: written.body['consistency_token'],
    };
    const question = holding('after');
    expect(await query(instance, 'Check', { scope, question })).toMatchObject({
      body: { allowed: true },
    });
  });

  test('goes at the pace of a gRPC reader that pauses', async () => {
    const address = instance.baseUrl.replace('http://', '');
    const client = new grpc.Client(address, grpc.credentials.createInsecure());
    const metadata = new grpc.Metadata();
    metadata.set('authorization', headers.authorization);
    const stream = client.makeServerStreamRequest(
      '/gatehouse.v1.QueryService/StreamObjects',
      (value: Uint8Array) => Buffer.from(value),
      (bytes: Buffer) => fromBinary(StreamObjectsResponseSchema, bytes),
      toBinary(StreamObjectsRequestSchema, create(StreamObjectsRequestSchema, of)),
      metadata,
    );
    let count = 0;
    let pauses = 0;
    const checks: Promise<unknown>[] = [];
    stream.on('data', (part: StreamObjectsResponse) => {
      count += part.objectIds.length;
      if (pauses >= 5) return;
      pauses++;
      stream.pause();
      // Others are served while this reader does nothing.
      const question = { ...holding('first'), subject: { user_id: 'ann' } };
      const check = query(instance, 'Check', { scope: { tenant_id: 'many' }, question });
      checks.push(check.then((answer) => expect(answer.body['allowed']).toBe(true)));
      setTimeout(() => stream.resume(), 20);
    });
    await new Promise((resolve, reject) => {
      stream.on('end', resolve);
      stream.on('error', reject);
    });
    await Promise.all(checks);
    client.close();
    expect(count).toBeGreaterThan(OBJECTS);
  });

  test('beyond the read budget is an error, not a shorter one', async () => {
    const project = {
      id: 'poor',
      name: 'poor',
      max_check_reads: 100,
      model_json: '{"namespaces":{}}',
    };
    expect((await call(instance, 'AdminService/CreateProject', project)).status).toBe(200);
    const updates = Array.from({ length: 1_000 }, (_, i) => holding(`o${i}`)).map((tuple) => ({
      op: 'OP_INSERT',
      tuple,
    }));
    for (let at = 0; at < 8; at++) {
      const some = updates.map(({ op, tuple }) => ({
        op,
        tuple: {
          ...tuple,
          object_id: `${at}-${(tuple as { object_id: string }).object_id}`,
        },
      }));
      const body = { project_id: 'poor', updates: some };
      expect((await call(instance, 'AuthzService/WriteRelationTuples', body)).status).toBe(200);
    }
    const client = createClient(QueryService, overGrpc());
    const request = { ...of, scope: { projectId: 'poor' } };
    const read = async (): Promise<void> => {
      for await (const part of client.streamObjects(request, { headers })) {
        throw new Error(`a part of it: ${part.objectIds.length}`);
      }
    };
    await expect(read()).rejects.toThrow('[resource_exhausted]');
    await vi.waitFor(
      async () => {
        const text = await instance.renderMetrics();
        expect(text).toMatch(
          /authz_decision_errors_total\{rpc="StreamObjects",reason="resource_exhausted"\} 1/,
        );
      },
      { timeout: 20_000 },
    );
  }, 30_000);
});
