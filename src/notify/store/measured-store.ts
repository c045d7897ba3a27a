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
    unreadCount: (user) => timed('bounds', store.unreadCount(user)),
    markRead: (user, which, atMs) => timed('mark_read', store.markRead(user, which, atMs)),
    putEndpoint: (endpoint, secret) => timed('put_endpoint', store.putEndpoint(endpoint, secret)),
    hasSigningSecret: (tenantId, id) =>
      timed('list_endpoints', store.hasSigningSecret(tenantId, id)),
    deleteEndpoint: (tenantId, id) => timed('delete_endpoint', store.deleteEndpoint(tenantId, id)),
    listEndpoints: (tenantId) => timed('list_endpoints', store.listEndpoints(tenantId)),
    claimDue: (nowMs, leaseMs, limit, filter) =>
      timed('claim_due', store.claimDue(nowMs, leaseMs, limit, filter)),
    markSent: (key, attempts) => timed('settle', store.markSent(key, attempts)),
    markRetry: (key, attempts, error, nextMs) =>
      timed('settle', store.markRetry(key, attempts, error, nextMs)),
    markDead: (key, attempts, error) => timed('settle', store.markDead(key, attempts, error)),
    backlog: (nowMs) => timed('backlog', store.backlog(nowMs)),
    nextDueMs: (channels) => timed('next_due', store.nextDueMs(channels)),
    purge: (beforeMs, limit) => timed('purge', store.purge(beforeMs, limit)),
    onStored: (listener) => store.onStored(listener),
    ping: () => timed('ping', store.ping()),
    close: () => store.close(),
  };
}

function codeOf(error: unknown): 'refused' | 'unavailable' | 'error' {
  if (!(error instanceof AppError)) return 'error';
  return error.reason === 'STORE_UNAVAILABLE' ? 'unavailable' : 'refused';
}
