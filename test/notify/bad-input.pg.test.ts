import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DeliveryService } from '../../src/gen/notify/v1/delivery_service_pb.ts';
import { Channel, NotifyService } from '../../src/gen/notify/v1/notify_service_pb.ts';
import { StreamService } from '../../src/gen/notify/v1/stream_service_pb.ts';
import { byLength } from '../support/test-length.ts';
import { type HostileRequest, hostileRequests } from './support/hostile-fields.ts';
import { mustCall, SERVICE_TOKEN } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';

const USER = { tenantId: 'acme', userId: 'ann' };
const DELIVERY = {
  tenantId: 'acme',
  notificationId: '0190b2f0-7c1e-7c3a-9d0e-5b1f2a3c4d5e',
  endpointId: 'hook',
};
const ENDPOINT = { tenantId: 'acme', endpointId: 'hook' };
const SERVICES = [NotifyService, DeliveryService, StreamService];

/** By method: a request that is well-formed, from which one field at a time is taken away. */
const BASES: Readonly<Record<string, object | undefined>> = {
  notify: { ...USER, channels: [Channel.LIVE, Channel.WEBHOOK], title: 'x', body: 'y' },
  listNotifications: USER,
  markRead: { ...USER, upToSequence: 1n },
  createStreamToken: USER,
  putEndpoint: {
    endpoint: {
      id: 'hook',
      tenantId: 'acme',
      channel: Channel.WEBHOOK,
      address: 'http://127.0.0.1:9/hook',
    },
    signingSecret: 'a secret of sixteen',
  },
  deleteEndpoint: { tenantId: 'acme', id: 'other' },
  listEndpoints: { tenantId: 'acme' },
  listDeliveries: { tenantId: 'acme' },
  getDelivery: DELIVERY,
  retryDelivery: DELIVERY,
  retryDeadDeliveries: {
    tenantId: 'acme',
    diedFrom: { seconds: 1_790_000_000n, nanos: 0 },
    diedUntil: { seconds: 1_790_000_060n, nanos: 0 },
  },
  sendTestNotification: ENDPOINT,
  getEndpointState: ENDPOINT,
  enableEndpoint: ENDPOINT,
  rotateSigningSecret: { ...ENDPOINT, signingSecret: 'another secret of sixteen' },
  revokeStreamTokens: USER,
  disconnectUser: USER,
  setStreamPolicy: { tenantId: 'acme', endsWithToken: true },
  getStreamPolicy: { tenantId: 'acme' },
};
/** Where one request cannot be two things at once: only one of both is set while the other is tried. */
const MORE_BASES: Readonly<Record<string, readonly object[] | undefined>> = {
  markRead: [{ ...USER, ids: ['0190b2f0-7c1e-7c3a-9d0e-5b1f2a3c4d5e'] }, USER],
  revokeStreamTokens: [{ tenantId: 'acme', tokenId: 'some' }, { tenantId: 'acme' }],
  putEndpoint: [
    {
      endpoint: {
        id: 'mail',
        tenantId: 'acme',
        userId: 'ann',
        channel: Channel.EMAIL,
        address: 'ann@example.test',
      },
    },
  ],
};
const IN_PROGRESS_MAX = 8;

async function statusOf(service: ServedNotify, request: HostileRequest): Promise<string> {
  const response = await fetch(service.internalUrl + request.method, {
    method: 'POST',
    headers: { 'content-type': request.contentType, authorization: `Bearer ${SERVICE_TOKEN}` },
    body: request.body,
  });
  const answer = await response.text();
  return response.status >= 500
    ? `${request.name}: ${response.status} ${answer.slice(0, 200)}`
    : '';
}

describe('the service', () => {
  let service: ServedNotify;
  const undo: (() => unknown)[] = [];
  beforeAll(async () => {
    service = await serveNotify({}, (end) => undo.unshift(end));
  });
  afterAll(async () => {
    for (const step of undo) await step();
  });

  const methods = SERVICES.flatMap((described) => described.methods);
  test.each(methods.map((method) => [method.name, method] as const))(
    '%s answers whatever is in a field, and never with 500',
    { timeout: 240_000 },
    async (_name, method) => {
      const base = BASES[method.localName];
      // A method without a row would be tried with nothing.
      if (base === undefined) throw new Error(`${method.name} has no base`);
      const bases = [base, ...(MORE_BASES[method.localName] ?? [])];
      const all = bases.flatMap((one) => hostileRequests(method, one));
      // An odd part of them, since both encodings take turns.
      const requests = all.filter((_one, index) => index % byLength(9, 1) === 0);
      expect(requests.length).toBeGreaterThan(byLength(2, 10));
      const bad: string[] = [];
      const waiting = requests.values();
      const worker = async (): Promise<void> => {
        for (const request of waiting) {
          const problem = await statusOf(service, request);
          if (problem !== '') bad.push(problem);
        }
      };
      await Promise.all(Array.from({ length: IN_PROGRESS_MAX }, worker));
      expect(bad).toEqual([]);
      expect(service.events('call_failed')).toEqual([]);
      expect(await mustCall(service, 'ListEndpoints', { tenant_id: 'acme' })).toBeDefined();
    },
  );
});
