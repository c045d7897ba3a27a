import http from 'node:http';
import { describe, expect, test } from 'vitest';
import type { UnitEnds } from '../../src/http/bodies/unit-ends.ts';
import { streamedBodyOfExchange } from '../../src/http/exchange/streamed-exchange.ts';
import { createHttpServer, type HttpServer } from '../../src/http/listener/http-server.ts';
import { PARSERS } from '../support/http1-parsers.ts';

const PART = Buffer.alloc(65_536, 'b');
const PARTS = 64;
/** Any byte ends a unit. */
const EVERY_BYTE: UnitEnds = { endIn: (chunk) => chunk.length };

async function start(http1: 'uws' | 'node'): Promise<{ server: HttpServer; port: number }> {
  const server = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
  server.route('POST', '/count', (exchange) => {
    const { signal } = new AbortController();
    const body = streamedBodyOfExchange(exchange, EVERY_BYTE, signal);
    void (async () => {
      let count = 0;
      for await (const bytes of body) {
        count += bytes.length;
        // More comes than the reader takes, which holds the client back.
        await new Promise((resolve) => setImmediate(resolve));
      }
      exchange.send(200, 'text/plain', String(count));
    })();
  });
  return { server, port: (await server.listen()).port };
}

function upload(port: number, headers: http.OutgoingHttpHeaders): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/count', method: 'POST', headers };
    const request = http.request(options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text += part));
      response.on('end', () => resolve(text));
    });
    request.on('error', reject);
    for (let i = 0; i < PARTS; i++) request.write(PART);
    request.end();
  });
}

describe.each(PARSERS)('bodies that are held back, on %s', (http1) => {
  test.each([
    ['in chunks', { 'transfer-encoding': 'chunked' }],
    ['of a stated length', { 'content-length': PART.length * PARTS }],
    ['announced', { 'content-length': PART.length * PARTS, expect: '100-continue' }],
  ])('a long one %s arrives whole', async (_name, headers) => {
    const { server, port } = await start(http1);
    expect(await upload(port, headers)).toBe(String(PART.length * PARTS));
    await server.stop(0);
  });
});
