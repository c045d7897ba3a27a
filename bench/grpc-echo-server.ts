// The yardstick of grpc-check-vs-echo.ts, which starts it; yields nothing by itself.
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';

/**
 * node:http2 alone, by its core API: reads the body, answers with a prepared head, five bytes of envelope, the two
 * of an allow, and trailers. What it does is what any server of gRPC on node:http2 must do.
 */
const head = { ':status': 200, 'content-type': 'application/grpc+proto' };
const trailers = { 'grpc-status': '0' };
const allowed = Buffer.from([0, 0, 0, 0, 2, 8, 1]);
const server = http2.createServer();
server.on('stream', (stream) => {
  stream.on('data', ignore);
  stream.on('end', () => {
    stream.respond(head, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    stream.end(allowed);
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});

function ignore(): void {
  // The body is read, and nothing is made of it.
}
