import { create, type JsonObject as ProtoJsonObject } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  type Channel as ProtoChannel,
  type CreateStreamTokenRequest,
  CreateStreamTokenResponseSchema,
  type DeleteEndpointRequest,
  DeleteEndpointResponseSchema,
  type ListEndpointsRequest,
  ListEndpointsResponseSchema,
  type ListNotificationsRequest,
  ListNotificationsResponseSchema,
  type MarkReadRequest,
  MarkReadResponseSchema,
  type NotifyRequest,
  NotifyResponseSchema,
  type PutEndpointRequest,
  PutEndpointResponseSchema,
  type NotifyService,
} from '../../gen/notify/v1/notify_service_pb.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ChannelSettings } from '../channels/channel.ts';
import type { ChannelRegistry, OutboundChannel } from '../channels/registry.ts';
import type { NotificationWriter } from '../core/notification-writer.ts';
import { deviceTypeOf, type StreamTokens } from '../live/stream-token.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import { type Channel, LIVE_CHANNEL } from '../model/notification.ts';
import { invalidField } from '../model/reasons.ts';
import { TOKEN_SECONDS_MAX } from '../model/stream-order.ts';
import {
  alternatives,
  channelsFromProto,
  endpointToProto,
  notificationToProto,
  timestampOf,
} from './proto-mapping.ts';
import {
  assertLength,
  assertSecret,
  boundedText,
  requiredId,
  requiredSlug,
  userKey,
  wholeNumber,
} from './request-fields.ts';

export type NotifyServiceOptions = {
  readonly store: NotificationStore;
  readonly writer: NotificationWriter;
  readonly tokens: StreamTokens;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** All channels, and those of them that this process is set up for. */
  readonly registry: ChannelRegistry;
  readonly channels: ReadonlySet<Channel>;
  readonly channelSettings: ChannelSettings;
};

const TITLE_MAX = 256;
const BODY_MAX = 16_384;
const DATA_BYTES_MAX = 16_384;
/** Readers of JSON, PostgreSQL's among them, end at a depth of their own. */
const DATA_DEPTH_MAX = 64;
const DEDUPE_KEY_MAX = 128;
const ADDRESS_MAX = 2_048;
const PAGE_SIZE_DEFAULT = 50;
const PAGE_SIZE_MAX = 500;
const MARK_IDS_MAX = 500;
const TTL_SECONDS_DEFAULT = 300;
/** The methods of notify.v1.NotifyService, by local name. */
export function createNotifyService(
  options: NotifyServiceOptions,
): ServiceImpl<typeof NotifyService> {
  return {
    notify: (request) => notify(options, request),
    listNotifications: (request) => list(options, request),
    markRead: (request) => markRead(options, request),
    createStreamToken: (request) => createToken(options, request),
    putEndpoint: (request) => putEndpoint(options, request),
    deleteEndpoint: (request) => deleteEndpoint(options, request),
    listEndpoints: (request) => listEndpoints(options, request),
  };
}

async function notify(options: NotifyServiceOptions, request: NotifyRequest) {
  const user = userKey(request);
  const channels = channelsFromProto(options.registry, request.channels);
  const missing = channels.find((channel) => !options.channels.has(channel));
  if (missing !== undefined) {
    const name = options.registry.nameOf(missing);
    const problem = `the channel ${name} is not set up here`;
    throw new AppError('CHANNEL_UNAVAILABLE', problem, { field: 'channels', channel: name });
  }
  const title = boundedText('title', request.title, TITLE_MAX);
  if (title === '') throw new AppError('FIELD_REQUIRED', 'title is required', { field: 'title' });
  if (/[\r\n]/.test(title)) throw invalidField('title', 'must be one line');
  const { notification, isDuplicate } = await options.writer.write({
    ...user,
    id: options.ids.uuid(),
    title,
    body: boundedText('body', request.body, BODY_MAX),
    data: checkedData(request.data),
    channels,
    dedupeKey: boundedText('dedupe_key', request.dedupeKey, DEDUPE_KEY_MAX),
    createdAtMs: options.clock.nowMs(),
  });
  return create(NotifyResponseSchema, {
    notification: notificationToProto(notification),
    isDuplicate,
  });
}

function checkedData(data: ProtoJsonObject | undefined): JsonObject | null {
  if (data === undefined) return null;
  assertStorable(data, DATA_DEPTH_MAX);
  const text = JSON.stringify(data);
  if (Buffer.byteLength(text) > DATA_BYTES_MAX) {
    throw invalidField('data', `must be at most ${DATA_BYTES_MAX} bytes as JSON`);
  }
  // As every later reader gets it, for example without negative zero.
  return JSON.parse(text) as JsonObject;
}

/** Errors: FIELD_INVALID for what JSON or Postgres' jsonb cannot hold, and for what is nested deeper than `depth`. */
function assertStorable(value: JsonValue, depth: number): void {
  if (depth < 0) throw invalidField('data', `must be nested at most ${DATA_DEPTH_MAX} deep`);
  if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) {
    throw invalidField('data', 'must hold well-formed text without NUL');
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw invalidField('data', 'must hold finite numbers');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    assertStorable(key, depth);
    assertStorable(member, depth - 1);
  }
}

async function list({ store, registry }: NotifyServiceOptions, request: ListNotificationsRequest) {
  const user = userKey(request);
  const limit = wholeNumber('page_size', request.pageSize, 0, PAGE_SIZE_MAX) || PAGE_SIZE_DEFAULT;
  const beforeSequence = sequenceOfPageToken(request.pageToken);
  const channels =
    request.channels.length === 0 ? [LIVE_CHANNEL] : channelsFromProto(registry, request.channels);
  const { unreadOnly } = request;
  const query = { ...user, channels, unreadOnly, limit: limit + 1, beforeSequence };
  const [found, unreadCount] = await Promise.all([
    store.list(query),
    store.unreadCount(user, channels),
  ]);
  const page = found.slice(0, limit);
  return create(ListNotificationsResponseSchema, {
    notifications: page.map(notificationToProto),
    nextPageToken: found.length > limit ? String(page.at(-1)?.sequence ?? '') : '',
    unreadCount: BigInt(unreadCount),
  });
}

function sequenceOfPageToken(token: string): number {
  if (token === '') return Infinity;
  if (!/^[1-9]\d{0,15}$/.test(token)) throw invalidField('page_token', 'is not from an answer');
  return Number(token);
}

async function markRead({ store, clock }: NotifyServiceOptions, request: MarkReadRequest) {
  const user = userKey(request);
  const { ids } = request;
  // Beyond every sequence there can be, and still a number that all stores take.
  const upToSequence = Math.min(Number(request.upToSequence), Number.MAX_SAFE_INTEGER);
  if ((ids.length === 0) === (upToSequence === 0)) {
    throw invalidField('ids', 'give either ids or up_to_sequence');
  }
  if (ids.length > MARK_IDS_MAX) throw invalidField('ids', `must be at most ${MARK_IDS_MAX}`);
  if (upToSequence < 0) throw invalidField('up_to_sequence', 'must not be negative');
  const which = ids.length > 0 ? { ids } : { upToSequence };
  const result = await store.markRead(user, which, clock.nowMs());
  return create(MarkReadResponseSchema, {
    markedCount: BigInt(result.markedCount),
    unreadCount: BigInt(result.unreadCount),
  });
}

async function createToken(
  { store, tokens, clock, ids }: NotifyServiceOptions,
  request: CreateStreamTokenRequest,
) {
  const user = userKey(request);
  const given = wholeNumber('ttl_seconds', request.ttlSeconds, 0, TOKEN_SECONDS_MAX);
  const deviceType = deviceTypeOf(request.deviceType);
  const issuedAtMs = await store.issueStreamToken(user);
  const expiresAtMs = clock.nowMs() + (given || TTL_SECONDS_DEFAULT) * 1000;
  const tokenId = ids.uuid();
  return create(CreateStreamTokenResponseSchema, {
    token: tokens.create({ ...user, deviceType, expiresAtMs, issuedAtMs, tokenId }),
    expiresAt: timestampOf(expiresAtMs),
    tokenId,
    issuedAt: timestampOf(issuedAtMs),
  });
}

async function putEndpoint(options: NotifyServiceOptions, request: PutEndpointRequest) {
  const { endpoint: given, signingSecret } = request;
  if (given === undefined) {
    throw new AppError('FIELD_REQUIRED', 'endpoint is required', { field: 'endpoint' });
  }
  const tenantId = requiredId('endpoint.tenant_id', given.tenantId);
  const id = requiredSlug('endpoint.id', given.id);
  const channel = endpointChannel(options.registry, given.channel);
  const { servesTenants, isSigned, checkAddress } = channel.outbound;
  const isOfTenant = given.userId === '' && servesTenants;
  const userId = isOfTenant ? '' : requiredId('endpoint.user_id', given.userId);
  assertLength('endpoint.address', given.address, ADDRESS_MAX);
  const address = checkAddress('endpoint.address', given.address, options.channelSettings);
  assertSecret(signingSecret);
  if (isSigned && signingSecret === '') {
    if (!(await options.store.hasSigningSecret(tenantId, id))) {
      const problem = `signing_secret is required for a ${channel.name} that has none`;
      throw new AppError('FIELD_REQUIRED', problem, { field: 'signing_secret' });
    }
  }
  const endpoint = { tenantId, id, userId, channel: channel.number, address };
  await options.store.putEndpoint(endpoint, signingSecret === '' ? undefined : signingSecret);
  return create(PutEndpointResponseSchema, { endpoint: endpointToProto(endpoint) });
}

/** Errors: FIELD_REQUIRED, FIELD_INVALID for what is no channel of endpoints. */
function endpointChannel(registry: ChannelRegistry, given: ProtoChannel): OutboundChannel {
  const field = 'endpoint.channel';
  const [number = given] = channelsFromProto(registry, [given], field);
  const channel = registry.findOutbound(number);
  if (channel !== undefined) return channel;
  throw invalidField(field, `must be ${alternatives(registry.outbound.map(({ name }) => name))}`);
}

async function deleteEndpoint({ store }: NotifyServiceOptions, request: DeleteEndpointRequest) {
  const tenantId = requiredId('tenant_id', request.tenantId);
  const id = requiredSlug('id', request.id);
  if (!(await store.deleteEndpoint(tenantId, id))) {
    throw new AppError('ENDPOINT_UNKNOWN', 'no such endpoint of this tenant', { id });
  }
  return create(DeleteEndpointResponseSchema);
}

async function listEndpoints({ store }: NotifyServiceOptions, request: ListEndpointsRequest) {
  const tenantId = requiredId('tenant_id', request.tenantId);
  const { userId } = request;
  if (userId !== '') requiredId('user_id', userId);
  const all = await store.listEndpoints(tenantId);
  const shown = all.filter((e) => userId === '' || e.userId === '' || e.userId === userId);
  return create(ListEndpointsResponseSchema, { endpoints: shown.map(endpointToProto) });
}
