import type { DescService } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { type DecodeLimits, isRefusedMessage } from '../decoding/decode-limits.ts';
import { BudgetService } from '../gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../gen/gatehouse/v1/model_service_pb.ts';
import { QueryService } from '../gen/gatehouse/v1/query_service_pb.ts';
import { TupleService } from '../gen/gatehouse/v1/tuple_service_pb.ts';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { AdminService } from '../gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../gen/workspace/v1/workspace_service_pb.ts';
import type { BodyBudget } from '../http/bodies/body-budget.ts';
import type { ConnectAdapter, ConnectAdapterOptions } from '../http/connect/adapter-options.ts';
import { createConnectAdapter } from '../http/connect/adapter.ts';
import type { UnreadAnswers } from '../http/exchange/unread-answers.ts';
import type { ShardClient } from '../protocol/shard-client.ts';
import type { StageTimes } from '../shared/time/stage-times.ts';
import type { AuthorizeResult } from './callers/caller.ts';
import { guardedService, type OnRefused } from './callers/guarded-service.ts';
import { createCallerPort } from './connect/caller-port.ts';
import { AUTHZ_ERRORS, malformedMessage } from './connect/connect-error.ts';
import type { FsckParts, FsckRuns } from './fsck-routes.ts';
import type { ModelVersions } from './hot/decision-call.ts';
import { DecisionReader } from './hot/decision-reader.ts';
import { FramedDecisions } from './hot/framed-decisions.ts';
import { RawDecisions } from './hot/raw-decisions.ts';
import { RawWrites, type RawWritesOptions } from './hot/raw-writes.ts';
import type { DoorParts } from './openfga/door-call.ts';
import { OpenFgaDoor } from './openfga/door.ts';
import type { DecisionMeter } from './reads/decision-meter.ts';
import type { QueryRecorder } from './reads/query-recorder.ts';
import type { ReadScopes } from './reads/read-scopes.ts';
import { admissionBy, type Credentials, createAuthorize } from './rpc/authorization.ts';
import type { HealthState } from './rpc/health-service.ts';
import { reflectionRoutes } from './rpc/reflection-service.ts';
import type { TupleRoutes, TupleRoutesParts } from './tuples/tuple-calls.ts';

/** Services and limits by which calls are answered once the instance is ready. */
export type CallOptions = {
  readonly credentials: Credentials;
  readonly bodyBytesMax: number;
  /** Bounds of what a request may hold besides; `onMessageRefused` gets the reason of each that holds more. */
  readonly decodeLimits: DecodeLimits;
  readonly onMessageRefused: (reason: string) => void;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
  readonly authz: ServiceImpl<typeof AuthzService>;
  readonly admin: ServiceImpl<typeof AdminService>;
  readonly workspace: ServiceImpl<typeof WorkspaceService>;
  readonly group: ServiceImpl<typeof GroupService>;
  readonly seat: ServiceImpl<typeof SeatService>;
  readonly model: Partial<ServiceImpl<typeof ModelService>>;
  readonly query: Partial<ServiceImpl<typeof QueryService>>;
  readonly budget: ServiceImpl<typeof BudgetService>;
  readonly tuple: Partial<ServiceImpl<typeof TupleService>>;
  /** The same over lines of JSON. */
  readonly tupleRoutes: TupleRoutes;
  /** Writer of the tuples of WriteRelationTuples. */
  readonly writes: RawWritesOptions['writes'];
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly versions: ModelVersions;
  readonly meter: DecisionMeter;
  readonly report: ConnectAdapterOptions['report'];
  readonly fsck: FsckRuns;
  /** Absent where OpenFGA's API is not served. */
  readonly openFgaStores?: DoorParts['stores'] | undefined;
  /** Absent where no queries are recorded. */
  readonly recorder?: QueryRecorder | undefined;
  /** Tests only: false sends every request the general path. */
  readonly isHotPathEnabled?: boolean | undefined;
};

/** Answers shorter than this are not compressed. */
const COMPRESS_MIN_BYTES = 1_024;
/** All that are served, besides health and reflection. */
export const SERVICES = [
  WorkspaceService,
  GroupService,
  AuthzService,
  AdminService,
  SeatService,
  ModelService,
  QueryService,
  TupleService,
  BudgetService,
] as const;

/** Handlers of calls, one for each way in which they come. */
export type CallHandlers = {
  readonly adapter: ConnectAdapter;
  readonly tuples: TupleRoutesParts;
  readonly fsck: FsckParts;
  readonly openFga: OpenFgaDoor | null;
  /** Hot path; null where every request takes the general path. */
  readonly rawDecisions: RawDecisions | null;
  readonly framedDecisions: FramedDecisions | null;
  readonly rawWrites: RawWrites | null;
};

/** Parts that the listeners share with the handlers. */
type HandlerParts = {
  readonly health: HealthState;
  readonly bodyBudget: BodyBudget;
  readonly unread: UnreadAnswers;
  readonly drainSignal: AbortSignal;
  readonly onIncident: (event: string, detail: string) => void;
  readonly stages: StageTimes | undefined;
};

/** Makes what answers calls over both listeners. */
export function createCallHandlers(options: CallOptions, parts: HandlerParts): CallHandlers {
  const { callers } = options.credentials;
  const { health, bodyBudget, unread, drainSignal, onIncident } = parts;
  const onOutOfScope: OnRefused = ({ service, method }, caller) =>
    onIncident('scope_refused', `${caller}: ${service}/${method}`);
  const guarded = <Service extends DescService>(
    service: Service,
    implementation: Partial<ServiceImpl<Service>>,
  ): Partial<ServiceImpl<Service>> => guardedService(service, implementation, onOutOfScope);
  const adapter = createConnectAdapter({
    routes: (router) => {
      router.service(AuthzService, guarded(AuthzService, options.authz));
      router.service(AdminService, guarded(AdminService, options.admin));
      router.service(WorkspaceService, guarded(WorkspaceService, options.workspace));
      router.service(GroupService, guarded(GroupService, options.group));
      router.service(SeatService, guarded(SeatService, options.seat));
      router.service(ModelService, guarded(ModelService, options.model));
      router.service(QueryService, guarded(QueryService, options.query));
      router.service(TupleService, guarded(TupleService, options.tuple));
      router.service(BudgetService, guarded(BudgetService, options.budget));
      health.routes(router);
      reflectionRoutes(router, [...SERVICES, Health]);
    },
    callers: createCallerPort(createAuthorize(options.credentials), onOutOfScope),
    errors: AUTHZ_ERRORS,
    malformed: malformedMessage,
    bodyBudget,
    decodeLimits: options.decodeLimits,
    onMessageRefused: options.onMessageRefused,
    readMaxBytes: options.bodyBytesMax,
    compressMinBytes: COMPRESS_MIN_BYTES,
    unread,
    drainSignal,
    report: options.report,
    onFailure: (rpc, failure, shown) => options.meter.failedOutside(rpc, failure, shown),
  });
  const admit = (authorization: string): AuthorizeResult | Promise<AuthorizeResult> =>
    admissionBy(callers, authorization);
  const tuples = { ...options.tupleRoutes, admit, onOutOfScope, report: options.report };
  const fsck = { admit, onOutOfScope, runs: options.fsck };
  const openFga =
    options.openFgaStores === undefined
      ? null
      : new OpenFgaDoor({
          stores: options.openFgaStores,
          query: guarded(QueryService, options.query),
          model: guarded(ModelService, options.model),
          tuple: guarded(TupleService, options.tuple),
          admit,
          onOutOfScope,
          report: options.report,
          bodyBytesMax: options.bodyBytesMax,
        });
  const general = { adapter, tuples, fsck, openFga };
  if (options.isHotPathEnabled === false) {
    return { ...general, rawDecisions: null, framedDecisions: null, rawWrites: null };
  }
  return { ...general, ...createHotHandlers(options, parts, adapter) };
}

/** Handlers of the hot path; `general` takes what they do not. */
function createHotHandlers(
  options: CallOptions,
  { bodyBudget, unread, stages }: HandlerParts,
  general: ConnectAdapter,
): Pick<CallHandlers, 'rawDecisions' | 'framedDecisions' | 'rawWrites'> {
  const { callers } = options.credentials;
  const reader = new DecisionReader(options.decodeLimits);
  const onRefused = (reason: string): void => {
    if (isRefusedMessage(reason)) options.onMessageRefused(reason);
  };
  const compressMinBytes = COMPRESS_MIN_BYTES;
  const shared = { callers, general, compressMinBytes, bodyBudget, reader, onRefused };
  const hot = { ...options, ...shared };
  const carriers = stages?.calls;
  return {
    framedDecisions: new FramedDecisions({ ...hot, unread, stages: carriers?.http2 }),
    rawDecisions: new RawDecisions({ ...hot, stages: carriers?.http1 }),
    rawWrites: new RawWrites({ ...options, callers, general }),
  };
}
