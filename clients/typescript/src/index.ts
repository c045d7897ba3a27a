export type { Decision } from './batcher.ts';
export { type ClientOptions, Denied, GatehouseClient } from './client.ts';
export { currentSession, inSession } from './current-session.ts';
export { type ErrorCode, GatehouseError } from './errors.ts';
export type {
  EndOptions,
  JsonObject,
  JsonValue,
  Model,
  QueryOptions,
  Question,
  ShardOptions,
  Subject,
  SubjectSet,
  Tuple,
  Wildcard,
} from './questions.ts';
export { type Reason, REASONS } from './reasons.ts';
export type { RetryPolicy } from './retry.ts';
export { Session, type ShardName } from './session.ts';
export type { Credential, TransportOptions } from './transport.ts';
export type { WatchEvent, WatchOptions } from './watch.ts';
export type { WriteOptions, Written } from './writes.ts';
