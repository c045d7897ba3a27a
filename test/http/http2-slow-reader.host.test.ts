import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { BodyBudget } from '../../src/http/bodies/body-budget.ts';
import type { Http2RequestStream } from '../../src/http/http2/request-stream.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PREFACE,
  RawHttp2,
  settings,
  TYPE,
  uint32,
} from '../support/raw-http2.ts';
import { startServer, waitFor } from './start-server.ts';

/* Peers and handlers that take long to read: what waits for them is bounded, and nothing of it is lost. */

const MIB = 2 ** 20;
const FRAME_BYTES = 16_384;

function headers(id: number, path: string): Buffer {
  const fields = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':authority', 'localhost'],
    [':path', path],
    ['content-type', 'application/json'],
  ] as const;
  return frame(TYPE.headers, END_HEADERS, id, block(fields));
}

test('a connection takes no more than 64 MiB that nobody reads, and goes on when they are read', async () => {
  const streams: Http2RequestStream[] = [];
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    limits: { http2StreamsMax: 200, http2IdleMs: 60_000 },
    http2: { onStream: (stream) => void streams.push(stream) },
    // More than the bound of a connection, also for who is not known.
    bodyBudget: new BodyBudget({ bytesMax: 1024 * MIB }),
    onIncident: () => undefined,
  });
  onTestFinished(() => server.stop(0));
  const { port } = await server.listen();
  const client = new RawHttp2(port);
  onTestFinished(() => void client.socket.destroy());
  const streamCount = 100;
  client.socket.write(
    Buffer.concat([
      PREFACE,
      settings(),
      ...Array.from({ length: streamCount }, (_, i) => headers(i * 2 + 1, '/x')),
    ]),
  );
  await waitFor(() => streams.length === streamCount);
  let sent = 0;
  const granted = (): number =>
    65_535 +
    client.of(TYPE.windowUpdate, 0).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
  const body = Buffer.alloc(FRAME_BYTES);
  /** As much as the window of the connection lets, a whole window of a stream for one after another. */
  const send = async (): Promise<void> => {
    for (let quietRounds = 0; quietRounds < 20; quietRounds++) {
      while (sent + FRAME_BYTES <= granted() && sent < streamCount * MIB) {
        quietRounds = 0;
        const id = Math.floor(sent / MIB) * 2 + 1;
        sent += FRAME_BYTES;
        if (!client.socket.write(frame(TYPE.data, 0, id, body))) await sleep(0);
      }
      await sleep(10);
    }
  };
  await send();
  // What was granted before the bound was met may still come.
  expect(sent).toBeGreaterThan(64 * MIB);
  expect(sent).toBeLessThan(66 * MIB);
  let read = 0;
  for (const stream of streams.slice(0, 8)) {
    stream.on('data', (chunk: Uint8Array) => {
      read += chunk.length;
    });
  }
  await waitFor(() => read === 8 * MIB);
  const before = sent;
  await send();
  expect(sent).toBeGreaterThan(before + 7 * MIB);
  expect(sent).toBeLessThan(before + 10 * MIB);
  // Streams that end leave room as well.
  for (const stream of streams.slice(8, 24)) stream.close(0);
  await send();
  expect(sent).toBeGreaterThan(before + 20 * MIB);
  expect(client.isClosed).toBe(false);
});

test.each([true, false])(
  'an answer on its way to a slow reader comes whole while the service stops: the port is shared %s',
  async (isPortShared) => {
    const { server, http2Port: port } = await startServer({ isPortShared });
    onTestFinished(() => server.stop(0));
    const client = new RawHttp2(port);
    onTestFinished(() => void client.socket.destroy());
    const ask = Buffer.from('{"relation":"n600000"}');
    client.socket.write(
      Buffer.concat([
        PREFACE,
        settings([4, 2 ** 30]),
        frame(TYPE.windowUpdate, 0, 0, uint32(2 ** 30)),
        headers(1, '/workspace.v1.AuthzService/ListObjects'),
        frame(TYPE.data, END_STREAM, 1, ask),
      ]),
    );
    // As a client that opens its windows again while it reads.
    client.socket.on('data', () => {
      client.socket.write(frame(TYPE.windowUpdate, 0, 0, uint32(1)));
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 3);
    });
    await waitFor(() => client.of(TYPE.data, 1).length > 0);
    const stopped = server.stop(20_000);
    await waitFor(() => client.isClosed);
    await stopped;
    const text = Buffer.concat(client.of(TYPE.data, 1).map(({ payload }) => payload)).toString();
    expect(client.isAnswered(1)).toBe(true);
    expect((JSON.parse(text) as { object_ids: string[] }).object_ids.length).toBe(600_000);
    expect(client.goawayCode).toBe(0);
  },
);

test('over HTTP/1.1 likewise', async () => {
  const { server, port } = await startServer();
  onTestFinished(() => server.stop(0));
  const socket = net.connect({ port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  const body = '{"relation":"n600000"}';
  socket.write(
    `POST /workspace.v1.AuthzService/ListObjects HTTP/1.1\r\nhost: x\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    socket.pause();
    setTimeout(() => socket.resume(), 3);
  });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await waitFor(() => chunks.length > 0);
  const stopped = server.stop(20_000);
  await closed;
  await stopped;
  const text = Buffer.concat(chunks).toString();
  const answer = text.slice(text.indexOf('\r\n\r\n') + 4);
  expect((JSON.parse(answer) as { object_ids: string[] }).object_ids.length).toBe(600_000);
});
