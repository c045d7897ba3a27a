import { expect, onTestFinished, test } from 'vitest';
import { addHealthRoutes } from '../../src/gateway/operational-routes.ts';
import { HostAllowList } from '../../src/http/host-allow-list.ts';
import { createHttpServer, type HttpServer } from '../../src/http/listener/http-server.ts';
import { addOperationalRoutes } from '../../src/notify/api/operational-routes.ts';
import { RawClient } from './start-server.ts';

const ADDING: readonly [string, readonly string[], (server: HttpServer) => void][] = [
  [
    'the authorization service',
    ['/healthz', '/readyz'],
    (server) =>
      addHealthRoutes(server, {
        report: () => ({ statusCode: 200, body: '{}' }),
      } as unknown as Parameters<typeof addHealthRoutes>[1]),
  ],
  [
    'the notification service',
    ['/healthz', '/health', '/readyz', '/livez'],
    (server) =>
      addOperationalRoutes({
        server,
        isReady: () => true,
        failingLoops: () => [],
        renderMetrics: () => Promise.resolve(''),
      }),
  ],
];

async function answerTo(port: number, text: string): Promise<string> {
  const client = new RawClient(port);
  client.socket.write(text);
  await client.closed;
  return client.received.slice(0, 12);
}

test.each(ADDING)(
  '%s: HTTP/1.0 without Host reaches health and readiness, past the list of names',
  async (_name, paths, add) => {
    const hosts = new HostAllowList({ host: '127.0.0.1', allowedHosts: [] });
    const server = createHttpServer({
      host: '127.0.0.1',
      port: 0,
      hostGuard: { hosts, refuse: (exchange) => exchange.sendEmpty(403) },
    });
    add(server);
    server.route('GET', '/other', (exchange) => exchange.sendEmpty(200));
    onTestFinished(() => server.stop(0));
    const { port } = await server.listen();
    for (const path of paths) {
      expect(await answerTo(port, `GET ${path} HTTP/1.0\r\n\r\n`)).toBe('HTTP/1.1 200');
      const foreign = `GET ${path} HTTP/1.0\r\nhost: evil.example\r\n\r\n`;
      expect(await answerTo(port, foreign)).toBe('HTTP/1.1 403');
    }
    expect(await answerTo(port, 'GET /other HTTP/1.0\r\n\r\n')).toBe('HTTP/1.1 403');
  },
);
