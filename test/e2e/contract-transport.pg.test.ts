import http2 from 'node:http2';
import { text } from 'node:stream/consumers';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { call } from '../support/service.ts';

/* What the contract says of ports, protocols and the instance's region, on the whole service. */
const { instance } = await instanceForFile({ GATEWAY_REGION: 'eu' });

async function getOverHttp2(path: string): Promise<[unknown, string]> {
  const session = http2.connect(instance.baseUrl);
  try {
    const stream = session.request({ ':path': path });
    const head = new Promise((resolve) => {
      stream.once('response', (headers) => resolve(headers[':status']));
    });
    return [await head, await text(stream)];
  } finally {
    session.close();
  }
}

test('health over HTTP/2 needs no credential either; a path that nobody serves is 404', async () => {
  expect(await getOverHttp2('/healthz')).toEqual([200, '{"status":"ok"}']);
  expect((await getOverHttp2('/readyz?verbose'))[1]).toContain('"reason":"starting"');
  expect((await getOverHttp2('/metrics'))[0]).toBe(404);
  expect((await getOverHttp2('/nothing'))[0]).toBe(404);
});

test('reflection lists the services and finds the file of a symbol, for @grpc/grpc-js', async () => {
  const client = new grpc.Client(
    instance.baseUrl.replace('http://', ''),
    grpc.credentials.createInsecure(),
  );
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${instance.token}`);
  const stream = client.makeBidiStreamRequest<ServerReflectionRequest, ServerReflectionResponse>(
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
    (value) => Buffer.from(toBinary(ServerReflectionRequestSchema, value)),
    (bytes) => fromBinary(ServerReflectionResponseSchema, bytes),
    metadata,
  );
  const answers: ServerReflectionResponse['messageResponse'][] = [];
  stream.write(
    create(ServerReflectionRequestSchema, { messageRequest: { case: 'listServices', value: '' } }),
  );
  stream.write(
    create(ServerReflectionRequestSchema, {
      messageRequest: { case: 'fileContainingSymbol', value: 'workspace.v1.AuthzService' },
    }),
  );
  stream.end();
  for await (const answer of stream) {
    answers.push((answer as ServerReflectionResponse).messageResponse);
  }
  client.close();
  const [list, file] = answers;
  const names = list?.case === 'listServicesResponse' ? list.value.service : [];
  for (const name of ['Workspace', 'Group', 'Authz', 'Admin', 'Seat']) {
    expect(names).toContainEqual(expect.objectContaining({ name: `workspace.v1.${name}Service` }));
  }
  const files = file?.case === 'fileDescriptorResponse' ? file.value.fileDescriptorProto : [];
  const parsed = files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  expect(parsed[0]?.service.map((service) => service.name)).toContain('AuthzService');
});

test('an instance with a region serves projects of it and unpinned ones, and refuses others', async () => {
  for (const [id, region] of [
    ['home', 'eu'],
    ['away', 'us'],
    ['anywhere', ''],
  ]) {
    const made = await call(instance, 'AdminService/CreateProject', {
      id,
      name: id,
      data_region: region,
    });
    expect(made.status).toBe(200);
  }
  const check = { namespace: 'doc', object_id: 'd', relation: 'viewer', subject_user_id: 'u' };
  const statusOf = async (project: string): Promise<unknown[]> => {
    const answer = await call(instance, 'AuthzService/Check', { ...check, project_id: project });
    return [answer.status, answer.body['code']];
  };
  expect(await statusOf('home')).toEqual([200, undefined]);
  expect(await statusOf('anywhere')).toEqual([200, undefined]);
  expect(await statusOf('')).toEqual([200, undefined]);
  expect(await statusOf('away')).toEqual([412, 'failed_precondition']);
  const erase = await call(instance, 'AuthzService/DeprovisionUser', {
    project_id: 'away',
    user_id: 'u',
  });
  expect([erase.status, erase.body['code']]).toEqual([412, 'failed_precondition']);
  expect(await instance.renderMetrics()).toMatch(/^authz_region_refused_total 2$/m);
  await call(instance, 'AdminService/UpdateProject', { id: 'away', data_region: 'eu' });
  expect(await statusOf('away')).toEqual([200, undefined]);
});
