/** Why the database gives no answer. */
export type StoreReason =
  | 'STORE_UNAVAILABLE'
  | 'STORE_FULL' // no room on its disk
  | 'STORE_READ_ONLY'
  | 'STORE_RIGHTS_MISSING' // of the service's role
  | 'STORE_LOGIN_REFUSED'
  | 'SHARD_UNAVAILABLE'; // a snapshot that was given up
