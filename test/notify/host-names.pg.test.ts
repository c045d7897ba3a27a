/* While no service token is set, every port answers to names of this machine alone. */
import { describe, expect, test } from 'vitest';
import { FOREIGN_HOSTS, hostRequest, hostStream, OWN_HOSTS } from '../support/host-request.ts';
import { series } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';

const OPEN = { NOTIFY_SERVICE_AUTH_TOKENS: '' };
const JSON_TYPE = { 'content-type': 'application/json' };
const LIST = {
  method: 'POST',
  headers: JSON_TYPE,
  body: '{"tenant_id":"acme","user_id":"ann"}',
};

type Request = Parameters<typeof hostRequest>[3] & {
  readonly port: 'internalUrl' | 'clientUrl' | 'metricsUrl';
  readonly path: string;
  /** Of an answer to a name that is accepted. */
  readonly status: number;
};

const REQUESTS: readonly Request[] = [
  {
    port: 'internalUrl',
    path: '/notify.v1.NotifyService/ListNotifications',
    ...LIST,
    status: 200,
  },
  { port: 'internalUrl', path: '/notify.v1.NotifyService/Nothing', ...LIST, status: 404 },
  { port: 'internalUrl', path: '/notify.v1.NotifyService/Notify', method: 'PUT', status: 405 },
  { port: 'clientUrl', path: '/v1/stream', status: 401 },
  { port: 'clientUrl', path: '/v1/stream', method: 'OPTIONS', status: 204 },
  { port: 'clientUrl', path: '/', status: 404 },
  { port: 'metricsUrl', path: '/metrics', status: 200 },
  { port: 'metricsUrl', path: '/healthz', status: 200 },
  { port: 'metricsUrl', path: '/livez', status: 200 },
  { port: 'metricsUrl', path: '/metrics', method: 'PUT', status: 405 },
  { port: 'metricsUrl', path: '/', status: 404 },
];

const send = (service: ServedNotify, request: Request, host: string | undefined) =>
  hostRequest(service[request.port], request.path, host, request);

test('every way into every port refuses a foreign name and serves its own', async () => {
  const service = await serveNotify(OPEN);
  for (const request of REQUESTS) {
    const shown = `${request.method ?? 'GET'} ${request.path}`;
    for (const host of FOREIGN_HOSTS) {
      const answer = await send(service, request, host);
      expect([shown, host, answer.status]).toEqual([shown, host, 403]);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      expect(JSON.parse(answer.body)).toMatchObject({
        code: 'permission_denied',
        details: [{ debug: { reason: 'HOST_NOT_ALLOWED' } }],
      });
    }
    for (const host of OWN_HOSTS) {
      const { status } = await send(service, request, host);
      expect([shown, host, status]).toEqual([shown, host, request.status]);
    }
    expect([0, 400, 403, 505]).toContain((await send(service, request, undefined)).status);
  }
  const counted = await series(service, 'notify_connections_refused_total{reason="host_refused"}');
  expect(counted).toBeGreaterThanOrEqual(REQUESTS.length * FOREIGN_HOSTS.length);
  expect(service.events('host_refused').map(({ listener }) => listener)).toContain('client');
});

test('over HTTP/2 a foreign name is refused in the protocol of the call', async () => {
  const service = await serveNotify(OPEN);
  const path = '/notify.v1.NotifyService/ListNotifications';
  const ask = (headers: Record<string, string>, body: string | Uint8Array, host: string) =>
    hostStream(service.internalUrl, path, { ':authority': host }, { headers, body });
  const grpc = { 'content-type': 'application/grpc' };
  // {"tenant_id":"t","user_id":"u"} in an envelope.
  const framed = Buffer.from([0, 0, 0, 0, 6, 0x0a, 1, 0x74, 0x12, 1, 0x75]);
  // Others are not let through by the framing itself.
  for (const host of FOREIGN_HOSTS.filter((name) => /^[\w.:-]+$/.test(name))) {
    const plain = await ask(JSON_TYPE, LIST.body, host);
    expect([host, plain.status]).toEqual([host, 403]);
    const refused = await ask(grpc, framed, host);
    // A refusal without a message may have its status in the headers.
    const status = refused.trailers['grpc-status'] ?? refused.headers['grpc-status'];
    expect([host, status]).toEqual([host, '7']);
  }
  for (const host of OWN_HOSTS) {
    expect([host, (await ask(JSON_TYPE, LIST.body, host)).status]).toEqual([host, 200]);
    const served = await ask(grpc, framed, host);
    expect([host, served.trailers['grpc-status']]).toEqual([host, '0']);
  }
});

describe('further names', () => {
  test('are listed, without tokens', async () => {
    const service = await serveNotify({
      ...OPEN,
      NOTIFY_ALLOWED_HOSTS: 'notify,proxy.example:443',
    });
    for (const request of REQUESTS) {
      for (const [host, status] of [
        ['notify:9200', request.status],
        ['proxy.example', request.status],
        ['proxy.example:1', 403],
        ['other', 403],
      ] as const) {
        expect((await send(service, request, host)).status).toBe(status);
      }
    }
  });

  test('are all admitted with tokens', async () => {
    const service = await serveNotify();
    const withToken = await send(
      service,
      {
        ...REQUESTS[0],
        headers: { ...JSON_TYPE, authorization: 'Bearer notify-test-token' },
      } as Request,
      'notify:9200',
    );
    expect(withToken.status).toBe(200);
    const scrape = { port: 'metricsUrl', path: '/metrics', status: 200 } as const;
    expect((await send(service, scrape, 'notify:9091')).status).toBe(200);
  });
});
