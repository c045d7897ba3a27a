export const STORE_OPS = [
  'put',
  'list',
  'live_after',
  'bounds',
  'mark_read',
  'put_endpoint',
  'delete_endpoint',
  'list_endpoints',
  'claim_due',
  'next_due',
  'backlog',
  'settle',
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

/** What the store tells of the connection that hears of other processes' notifications. */
export interface ListenMetrics {
  /** It listens (again), or was lost. */
  readonly listening: (isConnected: boolean) => void;
}
