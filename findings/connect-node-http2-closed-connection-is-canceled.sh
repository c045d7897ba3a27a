#!/usr/bin/env bash
# Subject: codes of calls whose connection is accepted and closed before it is answered, in clients on
#          @connectrpc/connect 2.2.0 (connect-node 2.2.0) and @grpc/grpc-js 1.14.7, Node.js.
# Guess:   a connection that is lost is `unavailable`, whatever carries the call: safe to try again. grpc-js says so.
# Instead: connect-node says `aborted` over HTTP/1.1, and over HTTP/2 `canceled`, in Connect and in gRPC alike: the code of a
#          call that its own caller has given up. Where nobody listens it says `unavailable` over both.
# Met:     a service at its limit of connections, or a balancer without a backend, closes what it has accepted. Clients that
#          try again at `unavailable` alone do not, and those that drop `canceled` from their error counts do not see it.
# Needs npm and Node.js 20 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . @bufbuild/protobuf@2.17.0 @connectrpc/connect@2.2.0 @connectrpc/connect-node@2.2.0 @grpc/grpc-js@1.14.7
cat >run.mjs <<'JS'
import net from 'node:net';
import { create, createFileRegistry } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import grpc from '@grpc/grpc-js';

const method = { name: 'Ask', inputType: '.echo.Empty', outputType: '.echo.Empty' };
const file = { name: 'echo.proto', package: 'echo', syntax: 'proto3', messageType: [{ name: 'Empty' }] };
const set = create(FileDescriptorSetSchema, { file: [{ ...file, service: [{ name: 'Echo', method: [method] }] }] });
const service = createFileRegistry(set).getService('echo.Echo');
const DEADLINE_MS = 5_000;

const ways = {
  'connect-node, Connect over HTTP/1.1': (baseUrl) => asked(createConnectTransport({ baseUrl, httpVersion: '1.1' })),
  'connect-node, Connect over HTTP/2': (baseUrl) => asked(createConnectTransport({ baseUrl, httpVersion: '2' })),
  'connect-node, gRPC': (baseUrl) => asked(createGrpcTransport({ baseUrl })),
  'grpc-js': (baseUrl) =>
    new Promise((resolve) => {
      const client = new grpc.Client(new URL(baseUrl).host, grpc.credentials.createInsecure());
      const nothing = () => Buffer.alloc(0);
      client.makeUnaryRequest('/echo.Echo/Ask', nothing, nothing, {}, { deadline: Date.now() + DEADLINE_MS }, (error) => {
        client.close();
        resolve(error.code);
      });
    }),
};

function asked(transport) {
  return createClient(service, transport).ask({}, { timeoutMs: DEADLINE_MS }).then(
    () => 0,
    (error) => error.code,
  );
}

async function codes(baseUrl) {
  const found = {};
  for (const [name, ask] of Object.entries(ways)) found[name] = Code[await ask(baseUrl)];
  return found;
}

const server = net.createServer((socket) => {
  socket.on('error', () => undefined);
  socket.once('data', () => socket.destroy());
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const baseUrl = `http://127.0.0.1:${server.address().port}`;
const closed = await codes(baseUrl);
await new Promise((resolve) => server.close(resolve));
const refused = await codes(baseUrl);
console.log(JSON.stringify({ closed, refused }, null, 1));
process.exit(0);
JS
node run.mjs >found
cat found
cat >wanted <<'JSON'
{
 "closed": {
  "connect-node, Connect over HTTP/1.1": "Aborted",
  "connect-node, Connect over HTTP/2": "Canceled",
  "connect-node, gRPC": "Canceled",
  "grpc-js": "Unavailable"
 },
 "refused": {
  "connect-node, Connect over HTTP/1.1": "Unavailable",
  "connect-node, Connect over HTTP/2": "Unavailable",
  "connect-node, gRPC": "Unavailable",
  "grpc-js": "Unavailable"
 }
}
JSON
diff wanted found
