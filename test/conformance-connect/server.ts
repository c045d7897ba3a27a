// The server under test: the adapter and the listener of the product around the suite's service.
// The suite writes one length-prefixed ServerCompatRequest to stdin, reads one response from
// stdout, and ends the process when it is done.
import { createRegistry, fromBinary, toBinary, create } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { AUTHZ_ERRORS, malformedMessage } from '../../src/gateway/connect/connect-error.ts';
import { createConnectAdapter } from '../../src/http/connect/adapter.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { conformanceRoutes } from './conformance-service.ts';
import {
  ServerCompatRequestSchema,
  ServerCompatResponseSchema,
} from './gen/connectrpc/conformance/v1/server_compat_pb.ts';
import { file_connectrpc_conformance_v1_service } from './gen/connectrpc/conformance/v1/service_pb.ts';

const READ_MAX_BYTES_DEFAULT = 8 * 1_048_576;

const request = fromBinary(ServerCompatRequestSchema, await readMessage());
const adapter = createConnectAdapter({
  routes: conformanceRoutes,
  readMaxBytes: request.messageReceiveLimit || READ_MAX_BYTES_DEFAULT,
  compressMinBytes: 1,
  registry: createRegistry(file_connectrpc_conformance_v1_service),
  // The suite compares details one by one, so the ErrorInfo that the product adds is left out.
  errors: {
    ...AUTHZ_ERRORS,
    connectErrorFromAppError: (error) =>
      new ConnectError(error.message, AUTHZ_ERRORS.codeOfReason(error.reason)),
  },
  malformed: malformedMessage,
  report: ({ rpc, error }) => {
    process.stderr.write(`${rpc}: ${error instanceof Error ? error.stack : String(error)}\n`);
  },
});
const server = createHttpServer({
  host: '127.0.0.1',
  port: 0,
  http2: { onStream: adapter.handleHttp2 },
});
server.fallback(adapter.handleHttp1);
const { port } = await server.listen();
writeMessage(
  toBinary(
    ServerCompatResponseSchema,
    create(ServerCompatResponseSchema, { host: '127.0.0.1', port }),
  ),
);
process.once('SIGTERM', () => {
  void server.stop(1_000).then(() => process.exit(0));
});

async function readMessage(): Promise<Uint8Array> {
  let received = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    received = Buffer.concat([received, chunk as Buffer]);
    if (received.length >= 4 && received.length >= 4 + received.readUInt32BE(0)) break;
  }
  return received.subarray(4, 4 + received.readUInt32BE(0));
}

function writeMessage(bytes: Uint8Array): void {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.byteLength);
  process.stdout.write(Buffer.concat([length, bytes]));
}
