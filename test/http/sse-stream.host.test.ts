import http from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { encodeSseEvent, SseStream } from '../../src/http/exchange/sse-stream.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';

test('events are framed so that no text can end or forge a field', () => {
  expect(encodeSseEvent({ data: '{"a":1}', id: '7', event: 'step' })).toBe(
    'id: 7\nevent: step\ndata: {"a":1}\n\n',
  );
  expect(encodeSseEvent({ data: 'a\nb\r\nc\rd' })).toBe('data: a\ndata: b\ndata: c\ndata: d\n\n');
  expect(encodeSseEvent({ data: '', id: '1\nevent: x' })).toBe('id: 1event: x\ndata: \n\n');
});

async function serve(
  waitingBytesMax: number,
  heartbeatMs: number,
): Promise<{ url: string; streams: SseStream[]; closedCount: () => number }> {
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  const streams: SseStream[] = [];
  let closed = 0;
  server.route('GET', '/events', (exchange) => {
    const stream = new SseStream(exchange, { heartbeatMs, waitingBytesMax });
    stream.onClose(() => {
      closed += 1;
    });
    streams.push(stream);
  });
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  return { url: `http://127.0.0.1:${port}/events`, streams, closedCount: () => closed };
}

test('a client receives events and heartbeats until the end', async () => {
  const { url, streams, closedCount } = await serve(1_000_000, 20);
  const response = await fetch(url);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  streams[0]?.send({ data: 'one', id: '1' });
  setTimeout(() => {
    streams[0]?.send({ data: 'two', id: '2' });
    streams[0]?.end();
    streams[0]?.send({ data: 'late' });
  }, 100);
  const text = await response.text();
  expect(text).toContain('id: 1\ndata: one\n\n');
  expect(text).toContain(':\n\n');
  expect(text).toMatch(/id: 2\ndata: two\n\n$/);
  expect(closedCount()).toBe(1);
});

test('a client that does not read is dropped, not buffered for', async () => {
  const { url, streams, closedCount } = await serve(1_000_000, 10_000);
  const request = http.get(url, (response) => response.pause());
  request.on('error', () => undefined);
  onTestFinished(() => {
    request.destroy();
  });
  const event = { data: 'x'.repeat(50_000) };
  while (closedCount() === 0) {
    streams[0]?.send(event);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(streams[0]?.isOpen).toBe(false);
});
