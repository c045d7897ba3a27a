import { once } from 'node:events';
import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, type Http1Parser } from '../../src/http/listener/http-server.ts';
import { PARSERS } from '../support/http1-parsers.ts';
import { waitFor } from './start-server.ts';

/* A stream whose reader stands still and goes on: all that was written arrives, with no further write to push it. */
const BLOCKS = 3;
const CASES = PARSERS.flatMap((http1) =>
  ['text/event-stream', 'application/jsonl'].flatMap((type) =>
    [100, 3_000, 70_000].map((size): [Http1Parser, string, number] => [http1, type, size]),
  ),
);

test.each(CASES)('%s, %s, parts of %i bytes', async (http1, type, size) => {
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
  onTestFinished(() => server.stop(0));
  const part = `data: ${'~'.repeat(size - 8)}\n\n`;
  let parts = 0;
  let blocks = 0;
  server.route('GET', '/stream', (exchange) => {
    exchange.begin(200, type);
    const write = (): void => {
      while (blocks < BLOCKS) {
        parts += 1;
        if (exchange.write(part)) continue;
        blocks += 1;
        if (blocks < BLOCKS) exchange.onWritable(write);
      }
    };
    write();
  });
  const { port } = await server.listen();
  const socket = net.connect({ port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  let received = 0;
  // What is written in one turn fills the buffers before anything is read.
  socket.on('data', (bytes: Buffer) => {
    for (const byte of bytes) if (byte === 0x7e) received += 1;
  });
  await once(socket, 'connect');
  socket.write('GET /stream HTTP/1.1\r\nhost: x\r\n\r\n');
  await waitFor(() => blocks === BLOCKS && received === parts * (size - 8));
  expect(server.inFlightCount).toBe(1);
});

/** Of loopback, with the buffers of Node.js. */
const HELD_BYTES_MAX = 1_500_000;

test.runIf(process.platform === 'linux').each(PARSERS)(
  '%s: little is taken for a reader that stands still',
  async (http1) => {
    const server = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
    onTestFinished(() => server.stop(0));
    const part = '~'.repeat(16_000);
    let held = 0;
    let isFull = false;
    server.route('GET', '/stream', (exchange) => {
      exchange.begin(200, 'text/event-stream');
      const write = (): void => {
        isFull = !exchange.write(part);
        held += part.length;
        // Each in a turn of its own, so that the kernel may take it.
        if (!isFull && held < 2 * HELD_BYTES_MAX) setTimeout(write, 1);
      };
      write();
    });
    const { port } = await server.listen();
    const socket = net.connect({ port, host: '127.0.0.1' });
    onTestFinished(() => void socket.destroy());
    socket.write('GET /stream HTTP/1.1\r\nhost: x\r\n\r\n');
    await waitFor(() => isFull || held >= 2 * HELD_BYTES_MAX);
    expect(held).toBeLessThan(HELD_BYTES_MAX);
  },
);

test.each(PARSERS)('%s: the head of a stream of events comes before any event', async (http1) => {
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
  onTestFinished(() => server.stop(0));
  server.route('GET', '/stream', (exchange) => exchange.begin(200, 'text/event-stream'));
  const { port } = await server.listen();
  const response = await fetch(`http://127.0.0.1:${port}/stream`);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  await response.body?.cancel();
  await waitFor(() => server.inFlightCount === 0);
});
