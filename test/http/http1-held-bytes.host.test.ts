import { expect, onTestFinished, test } from 'vitest';
import { HEADER_BYTES_MAX } from '../../src/http/http-limits.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { reachableBytes } from '../support/reachable-memory.ts';
import { RawClient, waitFor } from './start-server.ts';

/*
 * What came on connections of HTTP/1 that node:http reads and could not be answered yet: within its limit, whatever is sent. Of half heads on
 * uWebSockets.js, which are outside of this thread's memory, test/hostile/http1-idle-flood.host.test.ts has the bytes.
 */
const CONNECTIONS = 120;
/** Requests that wait behind one that is not answered: of a connection, and of all. */
const WAITING_MAX = 100;
const WAITING_TOTAL_MAX = 10_000;
const REQUEST = Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n');

async function start() {
  const incidents: string[] = [];
  const state = { isAnswering: false, taken: 0 };
  const waiting: (() => void)[] = [];
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    http1: 'node',
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
  const connect = (): RawClient => {
    const client = new RawClient(port);
    onTestFinished(() => void client.socket.destroy());
    return client;
  };
  return { server, incidents, state, answerAll, connect };
}

const answersOf = ({ received }: RawClient): number => received.split('HTTP/1.1 204').length - 1;

test('requests behind one that is not answered: as many as may wait are served', async () => {
  const { server, incidents, state, answerAll, connect } = await start();
  const client = connect();
  client.socket.write(REQUEST);
  await waitFor(() => state.taken === 1);
  client.socket.write(Buffer.alloc(REQUEST.length * WAITING_MAX, REQUEST));
  // Read or not by then, all are served in turn, and another connection is, too.
  const other = connect();
  answerAll();
  other.socket.write(REQUEST);
  await waitFor(() => answersOf(client) === 1 + WAITING_MAX && answersOf(other) === 1);
  expect(incidents).toEqual([]);
  expect(server.inFlightCount).toBe(0);
});

test('requests behind one that is not answered: one too many ends its connection alone', async () => {
  const { server, incidents, state, answerAll, connect } = await start();
  const [flooding, patient] = [connect(), connect()];
  for (const { socket } of [flooding, patient]) socket.write(REQUEST);
  await waitFor(() => state.taken === 2);
  flooding.socket.write(Buffer.alloc(REQUEST.length * (WAITING_MAX + 1), REQUEST));
  await flooding.closed;
  expect(flooding.received).toBe('');
  expect(incidents).toEqual(['pipelining_limit']);
  answerAll();
  await waitFor(() => answersOf(patient) === 1);
  expect(state.taken).toBe(2);
  patient.socket.destroy();
  await waitFor(() => server.connectionCount === 0);
});

test('requests behind unanswered ones of all connections', async () => {
  const { server, incidents, state, answerAll, connect } = await start();
  const clients = Array.from({ length: CONNECTIONS }, connect);
  for (const { socket } of clients) socket.write(REQUEST);
  await waitFor(() => state.taken === CONNECTIONS);
  const behind = Buffer.alloc(REQUEST.length * WAITING_MAX, REQUEST);
  for (const { socket } of clients) socket.write(behind);
  const closed = (): number => clients.filter(({ isClosed }) => isClosed).length;
  const fitting = WAITING_TOTAL_MAX / WAITING_MAX;
  await waitFor(() => closed() >= CONNECTIONS - fitting);
  expect(closed()).toBe(CONNECTIONS - fitting);
  expect(new Set(incidents)).toEqual(new Set(['pipelining_limit']));
  // What is held is served once there is an answer to what came before, and makes room.
  answerAll();
  const open = clients.filter(({ isClosed }) => !isClosed);
  await waitFor(() => open.every((client) => answersOf(client) === 1 + WAITING_MAX));
  for (const { socket } of clients) socket.destroy();
  await waitFor(() => server.connectionCount === 0);
});

test.each([
  ['in one piece', 16_000],
  ['in many', 100],
] as const)('half a head, %s', async (_name, pieceBytes) => {
  const { server, state, answerAll, connect } = await start();
  answerAll();
  const head = Buffer.from(`GET / HTTP/1.1\r\na: ${'b'.repeat(16_000)}`);
  const clients = Array.from({ length: CONNECTIONS }, connect);
  // The first head of a connection is left with the kernel until it is whole.
  for (const { socket } of clients) socket.write(REQUEST);
  await waitFor(() => state.taken === CONNECTIONS);
  const before = reachableBytes();
  for (let at = 0; at < head.length; at += pieceBytes) {
    for (const { socket } of clients) socket.write(head.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await waitFor(() => clients.every(({ socket }) => socket.writableLength === 0));
  expect(reachableBytes() - before).toBeLessThan(1.5 * HEADER_BYTES_MAX * CONNECTIONS);
  for (const { socket } of clients) socket.destroy();
  await waitFor(() => server.connectionCount === 0);
  expect(reachableBytes() - before).toBeLessThan((HEADER_BYTES_MAX * CONNECTIONS) / 4);
});
