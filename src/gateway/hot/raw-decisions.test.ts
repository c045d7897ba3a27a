import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer } from '../../http/http-server.ts';
import { HOT_METHODS, RawDecisions } from './raw-decisions.ts';

/** Sends a body and waits for the answer. */
async function post(port: number, path: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ port, path, method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    // Whole, so that its length is stated.
    sent.end(body);
  });
}

test('what the general path gets stays as it came, however long it is kept', async () => {
  const kept: Uint8Array[] = [];
  const hot = HOT_METHODS.find(({ method }) => method === 'batchCheck');
  if (hot === undefined) throw new Error('BatchCheck has a hot path');
  const path = new RawDecisions({
    authenticator: { enabled: false, accepts: () => true },
    shards: {
      raw: () => {
        throw new Error('no project is known here');
      },
    },
    // Of every project the general path must learn first.
    scopes: { peek: () => undefined },
    meter: { ended: () => undefined, failed: () => undefined },
    general: {
      handleHttp1: (exchange) => exchange.sendEmpty(500),
      handleBuffered: (exchange, _path, _headers, body) => {
        kept.push(body);
        exchange.sendEmpty(200);
      },
    },
    bodyBytesMax: 1024 * 1024,
    compressMinBytes: 1024,
    timeoutMsMax: 1000,
  });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  server.route('POST', hot.path, (exchange) => path.handle(exchange, hot));
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  const bodies = ['a', 'b', 'c'].map((letter) => JSON.stringify({ items: [letter.repeat(5000)] }));
  for (const body of bodies) expect(await post(port, hot.path, body)).toBe(200);
  expect(kept.map((bytes) => Buffer.from(bytes).toString())).toEqual(bodies);
});
