/** Why no worker answers a request. */
export type SlotReason =
  | 'QUEUE_FULL'
  | 'WORKER_LOST'
  | 'REQUEST_REFUSED' // this very request ended a worker before
  | 'SHARD_UNAVAILABLE'
  | 'SHUTTING_DOWN'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED'
  | 'INTERNAL';
