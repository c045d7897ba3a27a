import http2 from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { Code, ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { endStreamFromJson, errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { trailerParse } from '@connectrpc/connect/protocol-grpc-web';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CODE_OF_REASON } from '../../src/gateway/connect/connect-error.ts';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { startServer, type TestServer } from './start-server.ts';

/* Errors that Connect's own code makes carry the details that ours carry, in every protocol. */
let target: TestServer;
beforeAll(async () => {
  target = await startServer();
});
afterAll(async () => {
  await target.server.stop(1_000);
  expect(target.failures, 'a broken request is no incident').toEqual([]);
});

type Answer = { readonly header: Headers; readonly body: Buffer; readonly trailer: Headers };

type Protocol = {
  readonly name: string;
  readonly contentType: string;
  readonly path: string;
  readonly isEnveloped: boolean;
  readonly timeoutHeader: string;
  readonly encodingHeader: string;
  readonly errorOf: (answer: Answer) => ConnectError | undefined;
};

const CHECK = '/workspace.v1.AuthzService/Check';
const WATCH = '/grpc.health.v1.Health/Watch';
const ENVELOPE_BYTES = 5;
const UNREADABLE = new ConnectError('the body is no error of Connect', Code.DataLoss);

function connect(name: string, contentType: string): Protocol {
  return {
    name,
    contentType,
    path: CHECK,
    isEnveloped: false,
    timeoutHeader: 'connect-timeout-ms',
    encodingHeader: 'content-encoding',
    errorOf: ({ body, header }) => errorFromJsonBytes(body, header, UNREADABLE),
  };
}

function connectStream(name: string, contentType: string): Protocol {
  return {
    ...connect(name, contentType),
    path: WATCH,
    isEnveloped: true,
    encodingHeader: 'connect-content-encoding',
    errorOf: ({ body }) => endStreamFromJson(body.subarray(ENVELOPE_BYTES)).error,
  };
}

function grpc(name: string, contentType: string): Protocol {
  return {
    ...connect(name, contentType),
    isEnveloped: true,
    timeoutHeader: 'grpc-timeout',
    encodingHeader: 'grpc-encoding',
    errorOf: ({ trailer }) => findTrailerError(trailer),
  };
}

function grpcWeb(name: string, contentType: string): Protocol {
  return {
    ...grpc(name, contentType),
    errorOf: ({ body }) => findTrailerError(trailerParse(lastFrame(body))),
  };
}

/** The content of the last envelope. */
function lastFrame(body: Buffer): Buffer {
  const end = ENVELOPE_BYTES + body.readUInt32BE(1);
  return end < body.length ? lastFrame(body.subarray(end)) : body.subarray(ENVELOPE_BYTES);
}

const PROTOCOLS: readonly Protocol[] = [
  connect('Connect JSON', 'application/json'),
  connect('Connect binary', 'application/proto'),
  connectStream('Connect JSON stream', 'application/connect+json'),
  connectStream('Connect binary stream', 'application/connect+proto'),
  grpc('gRPC binary', 'application/grpc'),
  grpc('gRPC JSON', 'application/grpc+json'),
  grpcWeb('gRPC-Web binary', 'application/grpc-web+proto'),
  grpcWeb('gRPC-Web JSON', 'application/grpc-web+json'),
];

/** Over HTTP/2, which carries every protocol; the gateway's answer is the same over HTTP/1.1. */
async function send(
  protocol: Protocol,
  body: Uint8Array,
  headers: Record<string, string>,
): Promise<Answer> {
  const session = http2.connect(target.baseUrl);
  try {
    const { path, contentType } = protocol;
    const fixed = { ':method': 'POST', ':path': path, 'content-type': contentType };
    const stream = session.request({ ...fixed, ...headers });
    const header = new Headers();
    const trailer = new Headers();
    stream.on('response', (received) => fill(header, received));
    stream.on('trailers', (received) => fill(trailer, received));
    stream.end(body);
    return { body: await buffer(stream), header, trailer };
  } finally {
    session.close();
  }
}

function fill(headers: Headers, received: http2.IncomingHttpHeaders): void {
  for (const [name, value] of Object.entries(received)) {
    if (!name.startsWith(':')) headers.set(name, String(value));
  }
}

/** An empty message in the codec of the protocol. */
function emptyMessage({ contentType, isEnveloped }: Protocol, flags = 0): Uint8Array {
  const message = Buffer.from(contentType.endsWith('json') ? '{}' : '');
  return isEnveloped ? encodeEnvelope(flags, message) : message;
}

async function expectError(
  protocol: Protocol,
  body: Uint8Array,
  headers: Record<string, string>,
  reason: keyof typeof CODE_OF_REASON,
): Promise<ConnectError> {
  const error = protocol.errorOf(await send(protocol, body, headers));
  if (error === undefined) throw new Error('the call succeeded');
  expect(Code[error.code]).toBe(Code[CODE_OF_REASON[reason]]);
  const infos = error.findDetails(ErrorInfoSchema);
  expect(infos).toEqual([expect.objectContaining({ reason, domain: 'gatehouse', metadata: {} })]);
  expect(error.rawMessage).not.toMatch(/node_modules|\.[jt]s\b|at /);
  return error;
}

describe.each(PROTOCOLS)('$name', (protocol) => {
  test('an ill-formed timeout', async () => {
    const headers = { [protocol.timeoutHeader]: 'soon' };
    const error = await expectError(protocol, emptyMessage(protocol), headers, 'BODY_MALFORMED');
    expect(error.rawMessage).toContain('timeout value: soon');
  });

  test('an unknown encoding; the answer names the known one', async () => {
    const headers = { [protocol.encodingHeader]: 'br' };
    const body = emptyMessage(protocol);
    const error = await expectError(protocol, body, headers, 'METHOD_UNIMPLEMENTED');
    expect(error.rawMessage).toBe('unknown compression "br": supported encodings are gzip');
  });

  test('a message that does not parse', async () => {
    const broken = Buffer.from([0x0a, 0xff]);
    const body = protocol.isEnveloped ? encodeEnvelope(0, broken) : broken;
    await expectError(protocol, body, {}, 'BODY_MALFORMED');
  });

  test('gzip that is none', async () => {
    const headers = { [protocol.encodingHeader]: 'gzip' };
    const broken = Buffer.from('plain');
    const body = protocol.isEnveloped ? encodeEnvelope(1, broken) : broken;
    await expectError(protocol, body, headers, 'BODY_MALFORMED');
  });
});

describe.each(PROTOCOLS.filter(({ isEnveloped }) => isEnveloped))(
  '$name, envelopes',
  (protocol) => {
    test('none, two, and a cut one', async () => {
      const one = emptyMessage(protocol);
      await expectError(protocol, Buffer.alloc(0), {}, 'METHOD_UNIMPLEMENTED');
      await expectError(protocol, Buffer.concat([one, one]), {}, 'METHOD_UNIMPLEMENTED');
      await expectError(protocol, Buffer.from([0, 0, 0, 0, 9, 1]), {}, 'BODY_MALFORMED');
    });

    test('a compressed message without its encoding is internal, as gRPC demands', async () => {
      const body = encodeEnvelope(1, gzipSync(emptyMessage(protocol)));
      const error = await expectError(protocol, body, {}, 'INTERNAL');
      expect(error.rawMessage).toContain('do not know how to decompress');
    });
  },
);

describe('Connect-Protocol-Version', () => {
  const headers = { 'connect-protocol-version': '2' };

  test.each(PROTOCOLS.filter(({ name }) => name.startsWith('Connect')))(
    'another one is refused: $name',
    async (protocol) => {
      const body = emptyMessage(protocol);
      const error = await expectError(protocol, body, headers, 'BODY_MALFORMED');
      expect(error.rawMessage).toBe('Connect-Protocol-Version must be 1');
    },
  );

  test.each(PROTOCOLS.filter(({ name }) => name.startsWith('gRPC')))(
    'means nothing to $name',
    async (protocol) => {
      const { errorOf } = protocol;
      expect(errorOf(await send(protocol, emptyMessage(protocol), headers))).toBeUndefined();
    },
  );
});
