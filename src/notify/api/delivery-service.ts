import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  AttemptOutcome as ProtoOutcome,
  AttemptSchema,
  DeliveryRecordSchema,
  EnableEndpointResponseSchema,
  type EnableEndpointRequest,
  type GetDeliveryRequest,
  GetDeliveryResponseSchema,
  type GetEndpointStateRequest,
  GetEndpointStateResponseSchema,
  type ListDeliveriesRequest,
  ListDeliveriesResponseSchema,
  type RetryDeadDeliveriesRequest,
  RetryDeadDeliveriesResponseSchema,
  type RetryDeliveryRequest,
  RetryDeliveryResponseSchema,
  type RotateSigningSecretRequest,
  RotateSigningSecretResponseSchema,
  type SendTestNotificationRequest,
  SendTestNotificationResponseSchema,
  type DeliveryService,
} from '../../gen/notify/v1/delivery_service_pb.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { isTimestamp } from '../../shared/time/instant.ts';
import type { ChannelRegistry } from '../channels/registry.ts';
import type { Attempt, AttemptOutcome, DeliveryKey, DeliveryRecord } from '../model/delivery.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import type { Channel, DueDelivery } from '../model/notification.ts';
import { invalidField } from '../model/reasons.ts';
import {
  channelToProto,
  endpointToProto,
  statusFromProto,
  statusToProto,
  timestampOf,
} from './proto-mapping.ts';
import { assertSecret, requiredId, requiredSlug, wholeNumber } from './request-fields.ts';

export type DeliveryServiceOptions = {
  readonly store: NotificationStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly registry: ChannelRegistry;
  /** One attempt by the places of its channel; undefined where the channel is not set up. */
  readonly testOf: (channel: Channel) => ((delivery: DueDelivery) => Promise<Attempt>) | undefined;
  /** Something of the channel has become due. */
  readonly wake: () => void;
};

const PAGE_SIZE_DEFAULT = 50;
const PAGE_SIZE_MAX = 500;
const OVERLAP_SECONDS_DEFAULT = 86_400;
const OVERLAP_SECONDS_MAX = 2_592_000;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Of an endpoint that is no more than a name, the user is this. */
const TEST_USER = 'test';
const TEST_TITLE = 'Test notification';

const OUTCOME_TO_PROTO = {
  sent: ProtoOutcome.SENT,
  failed: ProtoOutcome.FAILED,
  dead: ProtoOutcome.DEAD,
} as const satisfies Record<AttemptOutcome, ProtoOutcome>;

/** The methods of notify.v1.DeliveryService, by local name. */
export function createDeliveryService(
  options: DeliveryServiceOptions,
): ServiceImpl<typeof DeliveryService> {
  return {
    listDeliveries: (request) => list(options, request),
    getDelivery: (request) => get(options, request),
    retryDelivery: (request) => retry(options, request),
    retryDeadDeliveries: (request) => retryDead(options, request),
    sendTestNotification: (request) => sendTest(options, request),
    getEndpointState: (request) => state(options, request),
    enableEndpoint: (request) => enable(options, request),
    rotateSigningSecret: (request) => rotate(options, request),
  };
}

async function list({ store, clock }: DeliveryServiceOptions, request: ListDeliveriesRequest) {
  const { endpointId, userId } = request;
  const limit = wholeNumber('page_size', request.pageSize, 0, PAGE_SIZE_MAX) || PAGE_SIZE_DEFAULT;
  const query = {
    tenantId: requiredId('tenant_id', request.tenantId),
    status: statusFromProto(request.status),
    endpointId: endpointId === '' ? '' : requiredSlug('endpoint_id', endpointId),
    userId: userId === '' ? '' : requiredId('user_id', userId),
    fromMs: msOf('created_from', request.createdFrom),
    untilMs: msOf('created_until', request.createdUntil),
    limit,
    after: keyOfPageToken(request.pageToken),
  };
  const { deliveries, next } = await store.listDeliveries(query, clock.nowMs());
  return create(ListDeliveriesResponseSchema, {
    deliveries: deliveries.map(recordToProto),
    nextPageToken: pageTokenOf(next),
  });
}

async function get({ store, clock }: DeliveryServiceOptions, request: GetDeliveryRequest) {
  const tenantId = requiredId('tenant_id', request.tenantId);
  const found = await store.findDelivery(tenantId, keyOf(request), clock.nowMs());
  if (found === undefined) {
    throw new AppError('DELIVERY_UNKNOWN', 'no such delivery of this tenant');
  }
  return create(GetDeliveryResponseSchema, {
    delivery: recordToProto(found),
    attempts: found.log.map(attemptToProto),
  });
}

async function retry(options: DeliveryServiceOptions, request: RetryDeliveryRequest) {
  const tenantId = requiredId('tenant_id', request.tenantId);
  await options.store.retryDelivery(tenantId, keyOf(request), options.clock.nowMs());
  options.wake();
  return create(RetryDeliveryResponseSchema);
}

async function retryDead(options: DeliveryServiceOptions, request: RetryDeadDeliveriesRequest) {
  const { endpointId } = request;
  const query = {
    tenantId: requiredId('tenant_id', request.tenantId),
    endpointId: endpointId === '' ? '' : requiredSlug('endpoint_id', endpointId),
    diedFromMs: requiredMs('died_from', request.diedFrom),
    diedUntilMs: requiredMs('died_until', request.diedUntil),
    limit: wholeNumber('page_size', request.pageSize, 0, PAGE_SIZE_MAX) || PAGE_SIZE_MAX,
    after: keyOfPageToken(request.pageToken),
  };
  if (query.diedUntilMs <= query.diedFromMs) {
    throw invalidField('died_until', 'must be later than died_from');
  }
  const { retried, skipped, next } = await options.store.retryDead(query, options.clock.nowMs());
  if (retried > 0) options.wake();
  return create(RetryDeadDeliveriesResponseSchema, {
    retried,
    skipped,
    nextPageToken: pageTokenOf(next),
  });
}

async function sendTest(options: DeliveryServiceOptions, request: SendTestNotificationRequest) {
  const { store, clock, ids } = options;
  const [tenantId, id] = endpointKey(request);
  const nowMs = clock.nowMs();
  const found = await store.addressee(tenantId, id, nowMs);
  if (found === undefined) throw unknownEndpoint(id);
  const { channel, userId } = found.endpoint;
  const test = options.testOf(channel);
  if (test === undefined) {
    const name = options.registry.find(channel)?.name ?? String(channel);
    const problem = `the channel ${name} is not set up here`;
    throw new AppError('CHANNEL_UNAVAILABLE', problem, { channel: name });
  }
  const notification = {
    tenantId,
    userId: userId === '' ? TEST_USER : userId,
    id: ids.uuid(),
    title: TEST_TITLE,
    body: `A test of the endpoint ${id}. Nothing has happened.`,
    data: null,
    channels: [channel],
    createdAtMs: nowMs,
    sequence: 0,
    readAtMs: null,
  };
  const attempt = await test({ ...found, notification, attempts: 0, isTest: true });
  return create(SendTestNotificationResponseSchema, { attempt: attemptToProto(attempt) });
}

async function state({ store, clock }: DeliveryServiceOptions, request: GetEndpointStateRequest) {
  const [tenantId, id] = endpointKey(request);
  const found = await store.endpointState(tenantId, id, clock.nowMs());
  if (found === undefined) throw unknownEndpoint(id);
  return create(GetEndpointStateResponseSchema, {
    endpoint: endpointToProto(found.endpoint),
    ...timeField('failingSince', found.failingSinceMs),
    ...timeField('disabledAt', found.disabledAtMs),
    ...timeField('previousSecretUntil', found.previousSecretUntilMs),
  });
}

async function enable({ store }: DeliveryServiceOptions, request: EnableEndpointRequest) {
  const [tenantId, id] = endpointKey(request);
  if (!(await store.enableEndpoint(tenantId, id))) throw unknownEndpoint(id);
  return create(EnableEndpointResponseSchema);
}

async function rotate(
  { store, clock }: DeliveryServiceOptions,
  request: RotateSigningSecretRequest,
) {
  const [tenantId, id] = endpointKey(request);
  const { signingSecret } = request;
  if (signingSecret === '') {
    const field = 'signing_secret';
    throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  }
  assertSecret(signingSecret);
  const seconds =
    wholeNumber('overlap_seconds', request.overlapSeconds, 0, OVERLAP_SECONDS_MAX) ||
    OVERLAP_SECONDS_DEFAULT;
  const untilMs = clock.nowMs() + seconds * 1000;
  if (!(await store.rotateSecret(tenantId, id, signingSecret, untilMs))) {
    const problem = 'no such endpoint of this tenant with a signing secret';
    throw new AppError('ENDPOINT_UNKNOWN', problem, { id });
  }
  return create(RotateSigningSecretResponseSchema, { previousSecretUntil: timestampOf(untilMs) });
}

type EndpointFields = { readonly tenantId: string; readonly endpointId: string };

function endpointKey(request: EndpointFields): readonly [tenantId: string, id: string] {
  return [
    requiredId('tenant_id', request.tenantId),
    requiredSlug('endpoint_id', request.endpointId),
  ];
}

function keyOf(request: DeliveryKey): DeliveryKey {
  const field = 'notification_id';
  const { notificationId } = request;
  if (notificationId === '')
    throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  if (!UUID.test(notificationId)) throw invalidField(field, 'is no id of a notification');
  return {
    notificationId: notificationId.toLowerCase(),
    endpointId: requiredSlug('endpoint_id', request.endpointId),
  };
}

function pageTokenOf(next: DeliveryKey | null): string {
  return next === null ? '' : `${next.notificationId}.${next.endpointId}`;
}

function keyOfPageToken(token: string): DeliveryKey | null {
  if (token === '') return null;
  const [notificationId = '', endpointId = ''] = token.split('.');
  if (!UUID.test(notificationId) || !/^[a-z0-9_-]{1,64}$/.test(endpointId)) {
    throw invalidField('page_token', 'is not from an answer');
  }
  return { notificationId, endpointId };
}

/** Milliseconds, rounded up: what was made within one is reported by its whole. Errors: FIELD_INVALID. */
function msOf(field: string, time: Timestamp | undefined): number | null {
  if (time === undefined) return null;
  if (!isTimestamp(time.seconds, time.nanos)) {
    throw invalidField(field, 'must lie between the years 0001 and 9999');
  }
  return Number(time.seconds) * 1000 + Math.ceil(time.nanos / 1e6);
}

/** Milliseconds of a time that must be there, as msOf. Errors: FIELD_REQUIRED, FIELD_INVALID. */
function requiredMs(field: string, time: Timestamp | undefined): number {
  const ms = msOf(field, time);
  if (ms === null) throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  return ms;
}

function unknownEndpoint(id: string): AppError {
  return new AppError('ENDPOINT_UNKNOWN', 'no such endpoint of this tenant', { id });
}

function timeField<K extends string>(name: K, ms: number | null): Partial<Record<K, Timestamp>> {
  // One key, which is K.
  return ms === null ? {} : ({ [name]: timestampOf(ms) } as Record<K, Timestamp>);
}

function attemptToProto(attempt: Attempt) {
  return create(AttemptSchema, {
    time: timestampOf(attempt.atMs),
    outcome: OUTCOME_TO_PROTO[attempt.outcome],
    answerStatus: attempt.answerStatus,
    latencyMs: attempt.tookMs,
    error: attempt.error,
    answer: attempt.answer,
  });
}

function recordToProto(record: DeliveryRecord) {
  const { notificationId, endpointId, tenantId, userId, isRunning, attempts, lastError } = record;
  return create(DeliveryRecordSchema, {
    notificationId,
    endpointId,
    tenantId,
    userId,
    isRunning,
    attempts,
    lastError,
    channel: channelToProto(record.channel),
    status: statusToProto(record.status),
    createdAt: timestampOf(record.createdAtMs),
    ...timeField('nextAttemptAt', record.nextAttemptMs),
    ...timeField('diedAt', record.diedAtMs),
  });
}
