// Started by check-beside-echo.ts: node:http2 alone, by its core API, with a head and trailers made beforehand.
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';

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
