import http2 from 'node:http2';
import {
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromJson,
  type JsonValue,
  toBinary,
} from '@bufbuild/protobuf';
import { ConnectError, type Interceptor, type Transport } from '@connectrpc/connect';
import { createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import * as grpc from '@grpc/grpc-js';
import { afterAll, describe, expect, test } from 'vitest';
import { ModelService } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import { QueryService } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { sharedInstance } from '../support/shared-instance.ts';

/* The text of an error as clients of gRPC and gRPC-Web read it: the same as Connect's JSON has it, which escapes nothing. */
const service = await sharedInstance();
const project_id = service.projectId;
const object = { namespace: 'resource', object_id: 'a', relation: 'viewer' };
const insert = (object_id: string) => ({
  op: 'OP_INSERT',
  tuple: { ...object, object_id, subject: { user_id: 'ann' } },
});
const sessions: http2.ClientHttp2Session[] = [];
afterAll(() => {
  for (const session of sessions) session.destroy();
});

type Method = DescMethodUnary | DescMethodServerStreaming;
const question = { project_id, ...object, subject_user_id: 'ann' };
const stream = { scope: { project_id }, namespace: 'resource', subject: { user_id: 'ann' } };
const modelOf = (name: string) => ({
  project_id,
  model: {
    gate: `namespace ${name} {
`,
  },
});
const CASES: readonly [string, Method, JsonValue, string][] = [
  ['a hot Check', AuthzService.method.check, { ...question, object_id: 'a#b' }, 'or #'],
  [
    'a hot write',
    AuthzService.method.writeRelationTuples,
    { project_id, updates: [insert('ok'), insert('a#b')] },
    'updates[1].tuple.object_id: must not contain control characters or #',
  ],
  [
    'the general path',
    AuthzService.method.expand,
    { project_id, ...object, relation: 'größe' },
    'relation: must match [a-z][a-z0-9_-]{0,63}',
  ],
  ['beyond ASCII', ModelService.method.writeModel, modelOf('größe'), 'found "ö"'],
  ['a sign of four bytes', ModelService.method.writeModel, modelOf('a 😀'), 'found "😀"'],
  ['a percent sign', ModelService.method.writeModel, modelOf('a%41'), 'found "%"'],
  ['a stream', QueryService.method.streamObjects, { ...stream, relation: '%' }, '[a-z0-9_-]{0,63}'],
];

function messageOf({ input }: Method, body: JsonValue): Buffer {
  return Buffer.from(toBinary(input, fromJson(input, body)));
}

/** The message as Connect has it in JSON, over HTTP/1.1. */
async function plainText(path: string, body: JsonValue, isStream: boolean): Promise<string> {
  const text = JSON.stringify(body);
  const response = await fetch(service.baseUrl + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.token}`,
      'x-admin-secret': service.adminSecret,
      'content-type': isStream ? 'application/connect+json' : 'application/json',
    },
    body: isStream ? new Uint8Array(envelope(0, Buffer.from(text))) : text,
  });
  const answer = Buffer.from(await response.arrayBuffer()).subarray(isStream ? 5 : 0);
  const parsed = JSON.parse(answer.toString()) as { message: string } & {
    error: { message: string };
  };
  return isStream ? parsed.error.message : parsed.message;
}

/** What @grpc/grpc-js has an application see. */
function detailsOf(path: string, bytes: Buffer, token: string = service.token): Promise<string> {
  const client = new grpc.Client(new URL(service.baseUrl).host, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  metadata.set('x-admin-secret', service.adminSecret);
  const same = (value: Buffer): Buffer => value;
  const { promise, resolve } = Promise.withResolvers<string>();
  // As a stream of answers, which may be one as well.
  const call = client.makeServerStreamRequest(path, same, same, bytes, metadata);
  call.on('data', () => undefined);
  call.on('error', (error: grpc.ServiceError) => resolve(error.details));
  return promise.finally(() => client.close());
}

const withToken: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${service.token}`);
  request.header.set('x-admin-secret', service.adminSecret);
  return next(request);
};
const { baseUrl } = service;
const interceptors = [withToken];
const TRANSPORTS: readonly [string, Transport][] = [
  ['gRPC', createGrpcTransport({ baseUrl, interceptors })],
  ['gRPC-Web, HTTP/1.1', createGrpcWebTransport({ baseUrl, httpVersion: '1.1', interceptors })],
  ['gRPC-Web, HTTP/2', createGrpcWebTransport({ baseUrl, httpVersion: '2', interceptors })],
];

async function failureOf(transport: Transport, method: Method, body: JsonValue) {
  const input = fromJson(method.input, body);
  try {
    if (method.methodKind === 'unary') {
      await transport.unary(method, undefined, undefined, undefined, input);
    } else {
      const messages = createAsyncIterable([input]);
      const answer = await transport.stream(method, undefined, undefined, undefined, messages);
      for await (const _ of answer.message);
    }
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error('the call succeeded');
}

/** Only `%` and what is not printable ASCII are escaped. */
const ESCAPED = /^(?:[\x20-\x24\x26-\x7e]|%(?:25|[01][0-9A-F]|7F|[89A-F][0-9A-F]))*$/;

describe.each(CASES)('%s', (_name, method, body, part) => {
  const path = `/${method.parent.typeName}/${method.name}`;
  const text = (): Promise<string> =>
    plainText(path, body, method.methodKind === 'server_streaming');

  test('@grpc/grpc-js', async () => {
    const details = await detailsOf(path, messageOf(method, body));
    expect(details).toContain(part);
    expect(details).toBe(await text());
  });

  test.each(TRANSPORTS)('connect-node, %s', async (_transport, transport) => {
    const error = await failureOf(transport, method, body);
    const escaped = error.metadata.get('grpc-message') ?? '';
    expect(escaped).toMatch(ESCAPED);
    expect([decodeURIComponent(escaped), error.rawMessage]).toEqual([await text(), await text()]);
  });
});

test('a call that no handler sees', async () => {
  const none = Buffer.alloc(0);
  expect(await detailsOf('/workspace.v1.AuthzService/Gone', none)).toContain(
    'workspace.v1.AuthzService/Gone',
  );
  expect(await detailsOf('/workspace.v1.AuthzService/Check', none, 'x')).not.toContain('%');
});

test.each(['grpc', 'grpc-web'])('%s: halves of characters and ends of lines', async (protocol) => {
  const session = http2.connect(service.baseUrl);
  sessions.push(session);
  const key = '\\ud800\\r\\ngrpc-status: 0\\u041a%41';
  const bodies = [
    `{"namespace":"resource","object_id":"a","relation":"viewer","${key}":1}`,
    `{"question":{"${key}":1}}`,
  ];
  for (const [i, path] of ['workspace.v1.AuthzService', 'gatehouse.v1.QueryService'].entries()) {
    const headers = {
      'content-type': `application/${protocol}+json`,
      authorization: `Bearer ${service.token}`,
    };
    const message = envelope(0, Buffer.from(bodies[i] ?? ''));
    const { fields, body, resetCode } = await callHttp2(session, `/${path}/Check`, headers, [
      message,
    ]);
    expect(resetCode).toBe(0);
    const trailer =
      protocol === 'grpc'
        ? fields
        : Object.fromEntries(
            body
              .subarray(5)
              .toString('latin1')
              .split('\r\n')
              .map((line) => line.split(/: (.*)/, 2) as [string, string]),
          );
    expect(trailer['grpc-status']).toBe('3');
    expect(trailer['grpc-message']).toMatch(ESCAPED);
    expect(trailer['grpc-message']).toContain('%EF%BF%BD%0D%0Agrpc-status: 0%D0%9A%2541');
  }
});
