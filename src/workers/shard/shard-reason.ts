/** Why a worker cannot answer for a shard. */
export type ShardReason =
  | 'SHARD_UNAVAILABLE' // load or catch-up failed or did not end in time
  | 'SHARD_TOO_LARGE'
  | 'SHARD_BEHIND' // asked to answer only from what is held, which is older
  | 'SETTINGS_OLD' // a change to be shown was committed under newer settings
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL';
