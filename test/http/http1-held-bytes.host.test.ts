import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer } from '../../src/http/http-server.ts';
import { reachableBytes } from '../support/reachable-memory.ts';
import { waitFor } from './start-server.ts';

/* What came on connections of HTTP/1 and could not be read yet: within its limit, whatever is sent. */
const HELD_MAX = 1_048_576;
const CONNECTIONS = 100;
const REQUEST = Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n');

async function start() {
  const incidents: string[] = [];
  const state = { isAnswering: false, taken: 0 };
  const waiting: (() => void)[] = [];
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    limits: { pipelinedBytesMax: HELD_MAX },
    onIncident: (event) => incidents.push(event),
  });
  server.fallback((exchange) => {
    state.taken += 1;
    if (state.isAnswering) exchange.sendEmpty(204);
    else waiting.push(() => exchange.sendEmpty(204));
  });
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  const answerAll = (): void => {
    state.isAnswering = true;
    for (const answer of waiting.splice(0)) answer();
  };
  const connect = (): net.Socket => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined).resume();
    return socket;
  };
  return { server, incidents, state, answerAll, connect };
}

/** Bytes of buffers that are still reachable. */
function bufferBytes(): number {
  // Everything else is collected by it.
  reachableBytes();
  return process.memoryUsage().arrayBuffers;
}

test('requests behind one that is not answered', async () => {
  const { server, incidents, state, answerAll, connect } = await start();
  const sockets = Array.from({ length: CONNECTIONS }, connect);
  let closed = 0;
  for (const socket of sockets) socket.once('close', () => (closed += 1)).write(REQUEST);
  await waitFor(() => state.taken === CONNECTIONS);
  // One buffer for all: what grows is the server's.
  const behind = Buffer.alloc(REQUEST.length * 2_000, REQUEST);
  const before = bufferBytes();
  for (const socket of sockets) socket.write(behind);
  const held = Math.floor(HELD_MAX / behind.length);
  await waitFor(() => closed >= CONNECTIONS - 2 * held && incidents.includes('pipelining_limit'));
  const grown = bufferBytes() - before;
  expect(grown).toBeGreaterThan(HELD_MAX / 2);
  expect(grown).toBeLessThan(1.5 * HELD_MAX);
  // What is held is served once there is an answer to what came before, and given back.
  const left = server.connectionCount;
  expect(left).toBeGreaterThanOrEqual(held);
  answerAll();
  await waitFor(() => state.taken >= left * 2_000);
  for (const socket of sockets) socket.destroy();
  await waitFor(() => server.connectionCount === 0);
  expect(bufferBytes() - before).toBeLessThan(HELD_MAX / 4);
});

test.each([
  ['in one piece', 16_000],
  ['in many', 100],
])('half a head, %s', async (_name, pieceBytes) => {
  const { server, incidents, state, answerAll, connect } = await start();
  answerAll();
  const head = Buffer.from(`GET / HTTP/1.1\r\na: ${'b'.repeat(16_000)}`);
  const before = bufferBytes();
  const sockets = Array.from({ length: CONNECTIONS }, connect);
  // The first head of a connection is left with the kernel until it is whole.
  for (const socket of sockets) socket.write(REQUEST);
  await waitFor(() => state.taken === CONNECTIONS);
  for (let at = 0; at < head.length; at += pieceBytes) {
    for (const socket of sockets) socket.write(head.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await waitFor(() => incidents.includes('pipelining_limit'));
  expect(bufferBytes() - before).toBeLessThan(1.5 * HELD_MAX);
  for (const socket of sockets) socket.destroy();
  await waitFor(() => server.connectionCount === 0);
  expect(bufferBytes() - before).toBeLessThan(HELD_MAX / 4);
});
