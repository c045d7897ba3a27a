import net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHttpServer, type Http1Parser } from '../../src/http/listener/http-server.ts';
import { PARSERS } from '../support/http1-parsers.ts';
import { waitFor } from './start-server.ts';

/* Answers that their clients do not wait for: no reset overtakes them, whether the connection is kept or not. */
const BODY_BYTES = 4_000_000;
const SEGMENT = Buffer.alloc(BODY_BYTES / 8, 'x');
const HEALTH = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n';

type Case = { readonly http1: Http1Parser; readonly field: string; readonly isLater: boolean };
const CASES: readonly Case[] = PARSERS.flatMap((http1) =>
  ['connection: close', 'connection: keep-alive'].flatMap((field) =>
    [false, true].map((isLater): Case => ({ http1, field, isLater })),
  ),
);

test.each(CASES)('$http1, $field, later: $isLater', async ({ http1, field, isLater }) => {
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
  onTestFinished(() => server.stop(0));
  server.route('GET', '/health', (exchange) => exchange.sendEmpty(204));
  server.fallback((exchange) => exchange.send(403, 'text/plain', 'no'));
  // They take no body, and answer at once, or in a while.
  server.route('POST', '/now', (exchange) => exchange.send(403, 'text/plain', 'no'));
  server.route('POST', '/soon', (exchange) => {
    setTimeout(() => exchange.send(403, 'text/plain', 'no'), 20);
  });
  server.route('POST', '/empty', (exchange) => exchange.sendEmpty(304));
  const { port } = await server.listen();
  for (const [target, answer] of [
    ['POST /now', /HTTP\/1\.1 403 [^]*no$/],
    ['POST /soon', /HTTP\/1\.1 403 [^]*no$/],
    ['POST /empty', /HTTP\/1\.1 304 [^]*\r\n\r\n$/],
    ['HEAD /none', /HTTP\/1\.1 403 [^]*\r\n\r\n$/],
  ] as const) {
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
      `${target} HTTP/1.1\r\nhost: x\r\n${field}\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`,
    );
    for (let sent = 0; sent < BODY_BYTES; sent += SEGMENT.length) {
      socket.write(SEGMENT);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await waitFor(() => answer.test(received) || error !== '');
    expect(error, target).toBe('');
    expect(received).toMatch(answer);
    if (field.includes('close')) await waitFor(() => socket.closed);
    else {
      socket.write(HEALTH);
      await waitFor(() => received.split('HTTP/1.1 204').length > (isLater ? 2 : 1));
    }
    expect(error, target).toBe('');
  }
});

test.each(PARSERS)(
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

test('node: a client that has ended its side gets a long answer whole', async () => {
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1: 'node' });
  onTestFinished(() => server.stop(0));
  // More than is offered at a time, and less than any kernel takes.
  const body = 'b'.repeat(400_000);
  server.route('GET', '/health', (exchange) => exchange.send(200, 'text/plain', body));
  const { port } = await server.listen();
  for (const request of [HEALTH, 'GET /health HTTP/1.0\r\n\r\n']) {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    let received = 0;
    socket.on('data', (bytes: Buffer) => (received += bytes.length));
    socket.end(request);
    await waitFor(() => socket.closed);
    expect(received).toBeGreaterThan(body.length);
  }
});

/** What comes behind the last request of a connection, which nobody processes (RFC 9112 §9.6). */
const BEHIND_THE_LAST = [
  ['no message', 'GET / HTTP/9.9\r\n\r\n'],
  ['another request', HEALTH],
  ['half of one', 'GET /hea'],
] as const;
const LAST = [
  ['1.1', 'GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'],
  ['1.0', 'GET /health HTTP/1.0\r\nhost: x\r\n\r\n'],
] as const;

describe.each(LAST)('node, HTTP/%s: the last answer comes whole', (_version, request) => {
  test.each(BEHIND_THE_LAST)('where a client that sends %s reads late', async (_name, more) => {
    const server = createHttpServer({ host: '127.0.0.1', port: 0, http1: 'node' });
    onTestFinished(() => server.stop(0));
    let count = 0;
    server.route('GET', '/health', (exchange) => {
      count += 1;
      exchange.send(200, 'text/plain', 'well');
    });
    const { port } = await server.listen();
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setNoDelay();
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1'))).pause();
    socket.on('error', ({ message }) => (received += message));
    socket.write(request);
    await waitFor(() => count === 1);
    // The first piece reaches a connection that is closed, the second one a client that knows.
    for (const piece of [more, more]) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.write(piece);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.resume().end();
    await waitFor(() => socket.closed);
    expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nwell$/);
    expect(count).toBe(1);
  });
});

describe('node: who goes on sending behind its last answer is cut off', () => {
  const LAST_REQUEST = 'GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';

  async function serve() {
    const incidents: string[] = [];
    const onIncident = (event: string): void => void incidents.push(event);
    const server = createHttpServer({ host: '127.0.0.1', port: 0, http1: 'node', onIncident });
    onTestFinished(() => server.stop(0));
    const answered = { count: 0 };
    server.route('GET', '/health', (exchange) => {
      answered.count += 1;
      exchange.sendEmpty(204);
    });
    const { port } = await server.listen();
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined).resume();
    return { server, socket, incidents, answered };
  }

  test('after a while', async () => {
    const { server, socket, incidents, answered } = await serve();
    socket.write(LAST_REQUEST);
    while (!socket.closed) {
      socket.write('x');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect([answered.count, incidents]).toEqual([1, []]);
    await waitFor(() => server.connectionCount === 0);
  });

  test('at once after a hundred requests', async () => {
    const { server, socket, incidents, answered } = await serve();
    // Here the server ends the connection, and node:http reads what is behind.
    server.beginDrain();
    socket.write(HEALTH);
    await waitFor(() => answered.count === 1);
    socket.write(HEALTH.repeat(100));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([server.connectionCount, incidents]).toEqual([1, []]);
    socket.write(HEALTH.repeat(10));
    await waitFor(() => server.connectionCount === 0);
    expect([answered.count, incidents]).toEqual([1, ['pipelining_limit']]);
  });
});
