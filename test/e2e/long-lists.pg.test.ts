import { createClient } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { beforeAll, expect, test } from 'vitest';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { call } from '../support/service.ts';

/* Lists long enough to be encoded in slices are the same over every protocol and format. */
const COUNT = 3000;
const { instance } = await instanceForFile();

beforeAll(async () => {
  for (let at = 0; at < COUNT; at += 1000) {
    const updates = Array.from({ length: 1000 }, (_, i) => ({
      op: 'OP_INSERT',
      tuple: {
        namespace: 'doc',
        object_id: `d${String(at + i).padStart(6, '0')}`,
        relation: 'viewer',
        subject: { user_id: 'alice' },
      },
    }));
    const written = await call(instance, 'AuthzService/WriteRelationTuples', { updates });
    expect(written.status).toBe(200);
  }
});

const ids = Array.from({ length: COUNT }, (_, i) => `d${String(i).padStart(6, '0')}`);

test.each([
  ['Connect JSON', false, createConnectTransport],
  ['Connect binary', true, createConnectTransport],
  ['gRPC-Web JSON', false, createGrpcWebTransport],
  ['gRPC-Web binary', true, createGrpcWebTransport],
  ['gRPC JSON', false, createGrpcTransport],
  ['gRPC binary', true, createGrpcTransport],
] as const)('%s', async (name, useBinaryFormat, createTransport) => {
  const httpVersion = name.startsWith('gRPC ') ? '2' : '1.1';
  for (const baseUrl of [instance.baseUrl, instance.generalUrl]) {
    const transport = createTransport({
      baseUrl,
      httpVersion: httpVersion as '2',
      useBinaryFormat,
    });
    const client = createClient(AuthzService, transport);
    const headers = { authorization: `Bearer ${instance.token}` };
    const question = { namespace: 'doc', relation: 'viewer', subjectUserId: 'alice' };
    expect((await client.listObjects(question, { headers })).objectIds).toEqual(ids);
    const { tuples } = await client.readRelationTuples({ namespace: 'doc' }, { headers });
    expect(tuples.map((tuple) => tuple.objectId)).toEqual(ids);
    const { grants } = await client.exportSubjectGrants({ userId: 'alice' }, { headers });
    expect(grants.map((grant) => grant.objectId)).toEqual(ids);
  }
});
