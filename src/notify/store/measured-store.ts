import { AppError } from '../../shared/app-error.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import type { StoreMetrics, StoreOp } from './store-metrics.ts';

/** `store` with every operation counted and timed. */
export function measuredStore(store: NotificationStore, metrics: StoreMetrics): NotificationStore {
  const timed = async <T>(op: StoreOp, work: Promise<T>): Promise<T> => {
    const startMs = performance.now();
    try {
      const value = await work;
      metrics.storeOp(op, 'ok', (performance.now() - startMs) / 1000);
      return value;
    } catch (error) {
      metrics.storeOp(op, codeOf(error), (performance.now() - startMs) / 1000);
      throw error;
    }
  };
  return {
    put: (batch) => timed('put', store.put(batch)),
    list: (query) => timed('list', store.list(query)),
    liveAfter: (user, sequence, limit) =>
      timed('live_after', store.liveAfter(user, sequence, limit)),
    bounds: (user) => timed('bounds', store.bounds(user)),
    unreadCount: (user, channels) => timed('bounds', store.unreadCount(user, channels)),
    markRead: (user, which, atMs) => timed('mark_read', store.markRead(user, which, atMs)),
    readsAfter: (user, after, limit) => timed('reads_after', store.readsAfter(user, after, limit)),
    purgeReads: (limit) => timed('purge', store.purgeReads(limit)),
    putEndpoint: (endpoint, secret) => timed('put_endpoint', store.putEndpoint(endpoint, secret)),
    hasSigningSecret: (tenantId, id) =>
      timed('list_endpoints', store.hasSigningSecret(tenantId, id)),
    deleteEndpoint: (tenantId, id) => timed('delete_endpoint', store.deleteEndpoint(tenantId, id)),
    listEndpoints: (tenantId) => timed('list_endpoints', store.listEndpoints(tenantId)),
    endpointState: (tenantId, id, nowMs) =>
      timed('list_endpoints', store.endpointState(tenantId, id, nowMs)),
    addressee: (tenantId, id, nowMs) =>
      timed('list_endpoints', store.addressee(tenantId, id, nowMs)),
    enableEndpoint: (tenantId, id) => timed('put_endpoint', store.enableEndpoint(tenantId, id)),
    rotateSecret: (tenantId, id, secret, untilMs) =>
      timed('put_endpoint', store.rotateSecret(tenantId, id, secret, untilMs)),
    claimDue: (request) => timed('claim_due', store.claimDue(request)),
    release: (keys, nowMs) => timed('settle', store.release(keys, nowMs)),
    settle: (batch, nowMs, failingMsMax) =>
      timed('settle', store.settle(batch, nowMs, failingMsMax)),
    listDeliveries: (query, nowMs) => timed('list_deliveries', store.listDeliveries(query, nowMs)),
    findDelivery: (tenantId, key, nowMs) =>
      timed('list_deliveries', store.findDelivery(tenantId, key, nowMs)),
    retryDelivery: (tenantId, key, nowMs) =>
      timed('retry_delivery', store.retryDelivery(tenantId, key, nowMs)),
    retryDead: (query, nowMs) => timed('retry_delivery', store.retryDead(query, nowMs)),
    giveUpDisabled: (limit, nowMs) => timed('purge', store.giveUpDisabled(limit, nowMs)),
    purgeDead: (beforeMs, limit) => timed('purge', store.purgeDead(beforeMs, limit)),
    backlog: (nowMs) => timed('backlog', store.backlog(nowMs)),
    nextDueMs: (channel) => timed('next_due', store.nextDueMs(channel)),
    purge: (beforeMs, limit) => timed('purge', store.purge(beforeMs, limit)),
    issueStreamToken: (user) => timed('stream_token', store.issueStreamToken(user)),
    streamStanding: (grant) => timed('stream_token', store.streamStanding(grant)),
    orderStreams: (order) => timed('order_streams', store.orderStreams(order)),
    streamOrdersAfter: (revision) => timed('stream_orders', store.streamOrdersAfter(revision)),
    purgeStreamOrders: (limit) => timed('purge', store.purgeStreamOrders(limit)),
    endsWithToken: (tenantId) => timed('stream_token', store.endsWithToken(tenantId)),
    onOrdered: (listener) => store.onOrdered(listener),
    onStored: (listener) => store.onStored(listener),
    ping: () => timed('ping', store.ping()),
    close: () => store.close(),
  };
}

function codeOf(error: unknown): 'refused' | 'unavailable' | 'error' {
  if (!(error instanceof AppError)) return 'error';
  return error.reason.startsWith('STORE_') ? 'unavailable' : 'refused';
}
