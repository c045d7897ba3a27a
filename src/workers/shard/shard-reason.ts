/** Why a worker cannot answer for a shard. */
export type ShardReason =
  | 'SHARD_UNAVAILABLE' // load or catch-up failed or did not end in time
  | 'SHARD_TOO_LARGE'
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL';
