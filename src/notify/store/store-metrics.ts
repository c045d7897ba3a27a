export const STORE_OPS = [
  'put',
  'list',
  'live_after',
  'bounds',
  'mark_read',
  'reads_after',
  'put_endpoint',
  'delete_endpoint',
  'list_endpoints',
  'list_deliveries',
  'retry_delivery',
  'claim_due',
  'next_due',
  'backlog',
  'settle',
  'stream_token',
  'stream_orders',
  'order_streams',
  'purge',
  'ping',
] as const;
export type StoreOp = (typeof STORE_OPS)[number];
export const STORE_CODES = ['ok', 'refused', 'unavailable', 'error'] as const;
export type StoreCode = (typeof STORE_CODES)[number];

/** What a measured store counts. */
export interface StoreMetrics {
  /** An operation has ended after so many seconds. */
  readonly storeOp: (op: StoreOp, code: StoreCode, seconds: number) => void;
}

/** What the store reports the connection that hears of other processes' notifications. */
export interface ListenMetrics {
  /** It listens (again), or was lost. */
  readonly listening: (isConnected: boolean) => void;
}
