/** Why an index cannot hold its shard. */
export type CacheReason = 'SHARD_TOO_LARGE';
