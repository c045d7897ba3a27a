/** Why the database gives no answer. */
export type StoreReason = 'STORE_UNAVAILABLE' | 'SHARD_UNAVAILABLE'; // a snapshot that was given up
