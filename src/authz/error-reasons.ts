import type { Code } from '@connectrpc/connect';
import type { AssertionsReason } from '../assertions/assertions-reason.ts';
import type { CacheReason } from '../cache/cache-reason.ts';
import type { ConfigReason } from '../config/config-reason.ts';
import type { DecodingReason } from '../decoding/decoding-reason.ts';
import type { EngineReason } from '../engine/bound/engine-reason.ts';
import type { CallersReason } from '../gateway/callers/callers-reason.ts';
import { CODE_OF_REASON } from '../gateway/connect/connect-error.ts';
import type { GatewayReason } from '../gateway/gateway-reason.ts';
import type { RpcReason } from '../gateway/rpc/rpc-reason.ts';
import type { TuplesReason } from '../gateway/tuples/tuples-reason.ts';
import type { ConnectReason } from '../http/connect/protocol/connect-reason.ts';
import type { HttpReason } from '../http/http-reason.ts';
import type { ModelReason } from '../model/model-reason.ts';
import type { StopReason } from '../observability/stop-on-signals.ts';
import type { RequestsReason } from '../requests/requests-reason.ts';
import type { ServicesReason } from '../services/services-reason.ts';
import type { InternalReason } from '../shared/app-error.ts';
import type { StoreReason } from '../store/store-reason.ts';
import type { JobsReason } from '../workers/jobs/jobs-reason.ts';
import type { QueryReason } from '../workers/queries/query-reason.ts';
import type { ShardReason } from '../workers/shard/shard-reason.ts';
import type { SlotReason } from '../workers/slot/slot-reason.ts';

/** Every reason for which a call of the authorization service can fail: those of all modules. */
export type AuthzReason =
  | InternalReason
  | ConfigReason
  | StopReason
  | HttpReason
  | DecodingReason
  | ModelReason
  | AssertionsReason
  | EngineReason
  | CacheReason
  | StoreReason
  | ServicesReason
  | RequestsReason
  | JobsReason
  | QueryReason
  | ShardReason
  | SlotReason
  | CallersReason
  | ConnectReason
  | RpcReason
  | TuplesReason
  | GatewayReason;

type CodeOfReason = typeof CODE_OF_REASON;

/** `never` as soon as the table has a reason that is of no module. */
type Complete =
  Exclude<keyof CodeOfReason, AuthzReason> extends never
    ? Readonly<Record<AuthzReason, Code>>
    : never;

/** The table of codes as that of this service: a reason without a code, or a code without a reason, does not compile. */
export const CODE_OF_AUTHZ_REASON: Complete = CODE_OF_REASON;
