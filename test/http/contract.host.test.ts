import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { base64Decode } from '@bufbuild/protobuf/wire';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CODE_OF_REASON,
  codeNameOfReason,
  httpStatusOfReason,
} from '../../src/gateway/connect/connect-error.ts';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import {
  CheckRequestSchema,
  CheckResponseSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { READ_MAX_BYTES, startServer, type TestServer } from './start-server.ts';

type ErrorBody = {
  code: string;
  message: string;
  details: {
    type: string;
    value: string;
    debug: { reason: string; metadata: Record<string, string> };
  }[];
};

let target: TestServer;
beforeAll(async () => {
  target = await startServer();
});
afterAll(() => target.server.stop(1_000));

const CHECK = '/workspace.v1.AuthzService/Check';
const valid = { namespace: 'doc', object_id: 'a', relation: 'viewer', subject_user_id: 'alice' };

function post(
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  path = CHECK,
): Promise<Response> {
  return fetch(target.baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: body as string,
  });
}

async function errorOf(response: Response): Promise<ErrorBody> {
  return (await response.json()) as ErrorBody;
}

describe('answers', () => {
  test('JSON carries every field under its proto name', async () => {
    const response = await post(JSON.stringify({ ...valid, subject_user_id: 'bob' }));
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ allowed: false });
  });

  test('camelCase requests are accepted', async () => {
    const body = { namespace: 'doc', objectId: 'a', relation: 'viewer', subjectUserId: 'alice' };
    expect(await (await post(JSON.stringify(body))).json()).toEqual({ allowed: true });
  });

  test('binary protobuf', async () => {
    const message = create(CheckRequestSchema, {
      namespace: 'doc',
      objectId: 'a',
      relation: 'viewer',
      subjectUserId: 'alice',
    });
    const headers = { 'content-type': 'application/proto' };
    const response = await post(toBinary(CheckRequestSchema, message), headers);
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect(fromBinary(CheckResponseSchema, bytes).allowed).toBe(true);
  });

  test('a gzip request is understood and a long answer is compressed on request', async () => {
    const body = gzipSync(JSON.stringify({ ...valid, object_id: 'z'.repeat(5_000) }));
    const response = await post(body, { 'content-encoding': 'gzip' });
    expect(await response.json()).toEqual({ allowed: true });
    const list = JSON.stringify({ namespace: 'doc', relation: 'n2000', subject_user_id: 'alice' });
    const long = await post(
      list,
      { 'accept-encoding': 'gzip' },
      '/workspace.v1.AuthzService/ListObjects',
    );
    expect(long.headers.get('content-encoding')).toBe('gzip');
    expect(((await long.json()) as { object_ids: string[] }).object_ids).toHaveLength(2_000);
  });

  test('the request id of the caller comes back, an ill-formed one is replaced', async () => {
    const kept = await post(JSON.stringify(valid), { 'x-request-id': 'trace-1' });
    expect(kept.headers.get('x-request-id')).toBe('trace-1');
    const replaced = await post(JSON.stringify(valid), { 'x-request-id': 'a b' });
    expect(replaced.headers.get('x-request-id')).toMatch(/^[\w-]{10,}$/);
  });
});

describe('errors', () => {
  test.each(Object.keys(CODE_OF_REASON))(
    '%s has its status, code and ErrorInfo',
    async (reason) => {
      const response = await post(JSON.stringify({ ...valid, object_id: `reason:${reason}` }));
      expect(response.status).toBe(
        httpStatusOfReason(reason === 'METHOD_UNKNOWN' ? 'METHOD_UNIMPLEMENTED' : reason),
      );
      const error = await errorOf(response);
      expect(error.code).toBe(codeNameOfReason(reason));
      const [detail] = error.details;
      expect(detail?.type).toBe('google.rpc.ErrorInfo');
      const info = fromBinary(ErrorInfoSchema, base64Decode(detail?.value ?? ''));
      expect(info).toMatchObject({ reason, domain: 'gatehouse', metadata: { field: 'object_id' } });
    },
  );

  test('failed_precondition is 412', async () => {
    const response = await post(
      JSON.stringify({ ...valid, object_id: 'reason:PROJECT_SUSPENDED' }),
    );
    expect(response.status).toBe(412);
    expect((await errorOf(response)).code).toBe('failed_precondition');
  });

  test('what was not foreseen says nothing and is reported with the request id', async () => {
    const response = await post(JSON.stringify({ ...valid, object_id: 'throw' }), {
      'x-request-id': 'find-me',
    });
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).not.toContain('secret');
    expect(JSON.parse(text)).toMatchObject({ code: 'internal', message: 'internal error' });
    const reported = target.failures.find((failure) => failure.requestId === 'find-me');
    expect(reported?.rpc).toBe('workspace.v1.AuthzService/Check');
    expect(String(reported?.error)).toContain('secret');
  });

  test.each([
    ['not JSON', '{', undefined],
    ['an array', '[]', undefined],
    ['a string', '"x"', undefined],
    ['nothing', '', undefined],
    ['an unknown field', JSON.stringify({ ...valid, nonsense: 1 }), 'nonsense'],
    ['a wrong type', JSON.stringify({ ...valid, namespace: 1 }), 'namespace'],
    ['null in a list', '{"context": 5}', 'context'],
    ['both spellings', JSON.stringify({ ...valid, objectId: 'b' }), 'object_id'],
    ['a duplicate key', '{"namespace":"a","namespace":"b"}', undefined],
  ])('malformed: %s', async (_what, body, field) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    const error = await errorOf(response);
    expect(error.code).toBe('invalid_argument');
    expect(error.details[0]?.debug.reason).toBe('BODY_MALFORMED');
    expect(error.details[0]?.debug.metadata['field']).toBe(field);
    expect(error.message).not.toMatch(/node_modules|\.js|\.ts/);
  });

  test('ill-formed UTF-8 and broken protobuf are invalid_argument', async () => {
    const json = Buffer.from(JSON.stringify(valid).replace('doc', 'd\u00e9'), 'latin1');
    expect((await post(json)).status).toBe(400);
    const binary = await post(Buffer.from([0x0a, 0xff]), { 'content-type': 'application/proto' });
    expect(binary.status).toBe(400);
    expect((await errorOf(binary)).details[0]?.debug.reason).toBe('BODY_MALFORMED');
  });

  test('gzip that is none', async () => {
    const response = await post('plain', { 'content-encoding': 'gzip' });
    expect(response.status).toBe(400);
  });

  test('an unknown encoding is unimplemented', async () => {
    const response = await post('plain', { 'content-encoding': 'br' });
    const error = await errorOf(response);
    expect(error.code).toBe('unimplemented');
    expect(error.details[0]?.debug.reason).toBe('METHOD_UNIMPLEMENTED');
  });

  test('unknown methods and services', async () => {
    for (const path of ['/workspace.v1.AuthzService/Nope', '/a.B/C', '/', '/x/%ff']) {
      const response = await post('{}', {}, path);
      expect([path, response.status]).toEqual([path, 404]);
      expect((await errorOf(response)).code).toBe('unimplemented');
    }
    const get = await fetch(`${target.baseUrl}/nowhere`);
    expect(get.status).toBe(404);
    expect((await errorOf(get)).code).toBe('unimplemented');
  });

  test('a method that is not built is 501', async () => {
    const response = await post('{}', {}, '/workspace.v1.AuthzService/Expand');
    expect(response.status).toBe(501);
    expect((await errorOf(response)).details[0]?.debug.reason).toBe('METHOD_UNIMPLEMENTED');
  });

  test.each(['GET', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'])(
    '%s is 405 with Allow',
    async (method) => {
      const response = await fetch(target.baseUrl + CHECK, { method });
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('POST');
      expect(await response.text()).toBe('');
    },
  );

  test.each([
    'text/plain',
    'application/xml',
    'application/grpc',
    'application/json; charset=latin1',
    '',
  ])('content type "%s" is 415 with an empty body', async (type) => {
    const response = await post(new TextEncoder().encode('{}'), { 'content-type': type });
    expect(response.status).toBe(415);
    expect(await response.text()).toBe('');
  });

  test('a deadline ends a call, also one whose handler does not listen', async () => {
    for (const objectId of ['wait:5000', 'stuck:300']) {
      const body = JSON.stringify({ ...valid, object_id: objectId });
      const response = await post(body, { 'connect-timeout-ms': '30' });
      expect(response.status).toBe(504);
      expect((await errorOf(response)).details[0]?.debug.reason).toBe('DEADLINE_EXCEEDED');
    }
  });

  test('deadlines beyond what timers hold do not fire, ill-formed ones are refused', async () => {
    const far = await post(JSON.stringify(valid), { 'connect-timeout-ms': '9999999999' });
    expect(far.status).toBe(200);
    const broken = await post(JSON.stringify(valid), { 'connect-timeout-ms': 'soon' });
    expect(broken.status).toBe(400);
    expect((await errorOf(broken)).details[0]?.debug.reason).toBe('BODY_MALFORMED');
  });
});

describe('size limits', () => {
  const padded = (size: number): string =>
    JSON.stringify({ ...valid, object_id: 'x'.repeat(size - JSON.stringify(valid).length + 1) });

  test('a body at the limit passes, one byte more is 429', async () => {
    expect((await post(padded(READ_MAX_BYTES))).status).toBe(200);
    const response = await post(padded(READ_MAX_BYTES + 1));
    expect(response.status).toBe(429);
    const error = await errorOf(response);
    expect(error.code).toBe('resource_exhausted');
    expect(error.details[0]?.debug.reason).toBe('BODY_TOO_LARGE');
    const beyondEnvelope = await errorOf(await post(padded(READ_MAX_BYTES + 100)));
    expect(beyondEnvelope.message).toBe(`the body is larger than ${READ_MAX_BYTES} bytes`);
  });

  test('far larger bodies are answered too', async () => {
    expect((await post('x'.repeat(20_000_000))).status).toBe(429);
  });

  test('a small gzip that expands beyond the limit is 429', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20));
    expect(bomb.length).toBeLessThan(READ_MAX_BYTES);
    const response = await post(bomb, { 'content-encoding': 'gzip' });
    expect(response.status).toBe(429);
    expect((await errorOf(response)).details[0]?.debug.reason).toBe('BODY_TOO_LARGE');
  });
});

describe('credential', () => {
  test('is asked for before anything else, in every protocol', async () => {
    const guarded = await startServer({ hasCredential: true });
    const ask = (path: string, type: string, token = ''): Promise<Response> =>
      fetch(guarded.baseUrl + path, {
        method: 'POST',
        headers: { 'content-type': type, authorization: token },
        body: '{}',
      });
    try {
      for (const path of [CHECK, '/a.B/C']) {
        const response = await ask(path, 'application/json');
        expect(response.status).toBe(401);
        expect((await errorOf(response)).code).toBe('unauthenticated');
      }
      const web = await ask(CHECK, 'application/grpc-web+proto');
      expect(web.status).toBe(200);
      expect(await web.text()).toContain('grpc-status: 16');
      const stream = await ask('/grpc.health.v1.Health/Watch', 'application/connect+json');
      expect(await stream.text()).toContain('unauthenticated');
      expect((await ask(CHECK, 'application/json', 'Bearer good')).status).toBe(200);
      expect((await fetch(`${guarded.baseUrl}/healthz`)).status).toBe(200);
    } finally {
      await guarded.server.stop(1_000);
    }
  });
});
