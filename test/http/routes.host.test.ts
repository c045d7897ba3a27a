import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, type HttpServer } from '../../src/http/listener/http-server.ts';
import { PARSERS } from '../support/http1-parsers.ts';
import { waitFor } from './start-server.ts';

async function listen(http1: 'uws' | 'node'): Promise<number> {
  const server: HttpServer = createHttpServer({ host: '127.0.0.1', port: 0, http1 });
  onTestFinished(() => server.stop(0));
  for (const [method, pattern] of [
    ['GET', '/a/b'],
    ['PUT', '/a/b'],
    ['DELETE', '/a/b'],
    ['PATCH', '/a/:c'],
    ['GET', '/a/:c/d'],
    ['POST', '/x/*'],
    ['GET', '/'],
  ] as const) {
    server.route(method, pattern, (exchange) => {
      const said = `${pattern}: ${exchange.method()} ${exchange.path()} ${exchange.query()}`;
      exchange.send(200, 'text/plain', said);
    });
  }
  server.fallback((exchange) => exchange.send(404, 'text/plain', `none: ${exchange.path()}`));
  return (await server.listen()).port;
}

/* uWebSockets.js finds fixed paths, and we all others: both by the same rules. */
test.each(PARSERS)('routes of later requests: %s', async (http1) => {
  const socket = net.connect({ port: await listen(http1), host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  socket.setEncoding('latin1');
  let received = '';
  socket.on('data', (text: string) => {
    received += text;
  });
  const answerTo = async (line: string): Promise<string> => {
    received = '';
    socket.write(`${line} HTTP/1.1\r\nhost: x\r\n\r\n`);
    const body = (): string | undefined => {
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? Number.NaN);
      const text = received.split('\r\n\r\n', 2)[1];
      return text?.length === length ? text : undefined;
    };
    await waitFor(() => body() !== undefined);
    return `${received.slice(9, 12)} ${body()}`;
  };
  for (const [line, expected] of [
    ['GET /', '200 /: GET / '],
    ['GET /a/b', '200 /a/b: GET /a/b '],
    ['GET /a/b?q=/a', '200 /a/b: GET /a/b q=/a'],
    ['PUT /a/b', '200 /a/b: PUT /a/b '],
    ['DELETE /a/b', '200 /a/b: DELETE /a/b '],
    ['POST /a/b', '405 '],
    ['PATCH /a/b', '405 '],
    ['PATCH /a/c', '200 /a/:c: PATCH /a/c '],
    ['GET /a/b/d', '200 /a/:c/d: GET /a/b/d '],
    ['GET /a/b/', '404 none: /a/b/'],
    ['GET //a/b', '404 none: //a/b'],
    ['GET /a//b', '404 none: /a//b'],
    ['GET /A/b', '404 none: /A/b'],
    ['GET /%61/b', '404 none: /%61/b'],
    ['GET /a/b;x', '405 '],
    ['GET /a/b/../b', '404 none: /a/b/../b'],
    ['GET /x/y', '405 '],
    ['POST /x/a/b', '200 /x/*: POST /x/a/b '],
    ['GET /a/*', '405 '],
    ['GET /a/:c', '405 '],
  ] as const) {
    expect([line, await answerTo(line)]).toEqual([line, expected]);
  }
});
