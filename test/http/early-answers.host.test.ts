import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, type Http1Parser } from '../../src/http/listener/http-server.ts';
import { waitFor } from './start-server.ts';

/* Answers given before their requests have come whole: no reset overtakes them, whether the connection is kept or not. */
const BODY_BYTES = 4_000_000;
const SEGMENT = Buffer.alloc(BODY_BYTES / 8, 'x');
const HEALTH = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n';

type Case = { readonly http1: Http1Parser; readonly field: string; readonly isLater: boolean };
const CASES: readonly Case[] = (['uws', 'node'] as const).flatMap((http1) =>
  ['connection: close', 'connection: keep-alive'].flatMap((field) =>
    [false, true].map((isLater): Case => ({ http1, field, isLater })),
  ),
);

test.each(CASES)('$http1, $field, later: $isLater', async ({ http1, field, isLater }) => {
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
  onTestFinished(() => server.stop(0));
  server.route('GET', '/health', (exchange) => exchange.sendEmpty(204));
  // Takes no body, and answers at once, or in a while.
  server.route('POST', '/now', (exchange) => exchange.send(403, 'text/plain', 'no'));
  server.route('POST', '/soon', (exchange) => {
    setTimeout(() => exchange.send(403, 'text/plain', 'no'), 20);
  });
  const { port } = await server.listen();
  for (const path of ['/now', '/soon']) {
    const socket = net.connect({ port, host: '127.0.0.1' });
    onTestFinished(() => void socket.destroy());
    let received = '';
    let error = '';
    socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')));
    socket.on('error', ({ message }) => (error = message));
    if (isLater) {
      socket.write(HEALTH);
      await waitFor(() => received.includes('204'));
    }
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\n${field}\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`,
    );
    for (let sent = 0; sent < BODY_BYTES; sent += SEGMENT.length) {
      socket.write(SEGMENT);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await waitFor(() => /HTTP\/1\.1 403 [^]*no$/.test(received) || error !== '');
    expect(error).toBe('');
    expect(received).toContain('HTTP/1.1 403');
    if (field.includes('close')) await waitFor(() => socket.closed);
    else {
      socket.write(HEALTH);
      await waitFor(() => received.split('HTTP/1.1 204').length > (isLater ? 2 : 1));
    }
    expect(error).toBe('');
  }
});

test.each(['uws', 'node'] as const)(
  '%s: of what follows an early answer that ends the connection no more is read than the limit',
  async (http1) => {
    const limits = { discardBytesMax: 100_000 };
    const server = createHttpServer({ host: '127.0.0.1', port: 0, http1, limits });
    onTestFinished(() => server.stop(0));
    server.route('POST', '/now', (exchange) => exchange.send(403, 'text/plain', 'no'));
    const { port } = await server.listen();
    const socket = net.connect({ port, host: '127.0.0.1' });
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')));
    socket.write(
      'POST /now HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4000000\r\n\r\n',
    );
    socket.write(Buffer.alloc(50_000, 'x'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(received, 'it waits for the rest').toBe('');
    socket.write(Buffer.alloc(100_000, 'x'));
    await waitFor(() => received.includes('HTTP/1.1 403'));
  },
);
