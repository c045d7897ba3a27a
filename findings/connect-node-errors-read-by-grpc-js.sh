#!/usr/bin/env bash
# Subject: texts of gRPC errors from a server on @connectrpc/connect 2.2.0 (connect-node 2.2.0) to a client on
#          @grpc/grpc-js 1.14.7, Node.js.
# Guess:   a client sees the text that the server gave: grpc-message is percent-encoded by the one and decoded by the other.
# Instead: Connect encodes as encodeURIComponent does, `:`, `/`, `,`, `;` and `#` among it; the specification of gRPC encodes `%` and
#          what is not printable ASCII alone. grpc-js decodes as decodeURI does, which leaves exactly those: they come out
#          as %3A, %2F, %2C, %3B, %23. A client on connect-node sees the text as it was.
# Met:     an error that names its field ("name: must match a/b, c") could not be read by clients on grpc-js.
# Needs npm and Node.js 20 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . @bufbuild/protobuf@2.17.0 @connectrpc/connect@2.2.0 @connectrpc/connect-node@2.2.0 @grpc/grpc-js@1.14.7
cat >run.mjs <<'JS'
import http2 from 'node:http2';
import { createFileRegistry, create } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { connectNodeAdapter, createGrpcTransport } from '@connectrpc/connect-node';
import grpc from '@grpc/grpc-js';

const text = 'name: must match a/b, c; got 100% of #1';
const set = create(FileDescriptorSetSchema, {
  file: [
    {
      name: 'echo.proto',
      package: 'echo',
      syntax: 'proto3',
      messageType: [{ name: 'Empty' }],
      service: [
        { name: 'Echo', method: [{ name: 'Fail', inputType: '.echo.Empty', outputType: '.echo.Empty' }] },
      ],
    },
  ],
});
const service = createFileRegistry(set).getService('echo.Echo');
const routes = (router) =>
  router.service(service, {
    fail: () => {
      throw new ConnectError(text, Code.InvalidArgument);
    },
  });
const server = http2.createServer(connectNodeAdapter({ routes }));
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const address = `127.0.0.1:${server.address().port}`;

const transport = createGrpcTransport({ baseUrl: `http://${address}` });
const byConnect = await createClient(service, transport)
  .fail({})
  .catch((error) => error.rawMessage);
const empty = () => Buffer.alloc(0);
const client = new grpc.Client(address, grpc.credentials.createInsecure());
const byGrpcJs = await new Promise((done) =>
  client.makeUnaryRequest('/echo.Echo/Fail', empty, empty, {}, (error) => done(error.details)),
);
console.log(`given:                ${text}`);
console.log(`seen by connect-node: ${byConnect}`);
console.log(`seen by grpc-js:      ${byGrpcJs}`);
const asStated =
  byConnect === text && byGrpcJs === 'name%3A must match a%2Fb%2C c%3B got 100% of %231';
console.log(asStated ? 'as stated' : 'NOT as stated');
process.exit(asStated ? 0 : 1);
JS
node run.mjs
