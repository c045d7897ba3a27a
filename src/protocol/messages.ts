import type { MissingPart } from '../model/namespace/unknown-relation.ts';
import type { CarriedChanges, CommittedChange } from '../model/packed-changes.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import type { ErrorData } from '../shared/app-error.ts';
import type { QueryAnswer, QueryCall, QueryRpc } from './queries.ts';
import type { BudgetRefusal, ProjectFigures } from './read-figures.ts';
import type { DecisionCount, RawMethod, WireFormat } from './shard-client.ts';

/**
 * Messages between the gateway thread and the shard workers: structured-clone safe, no functions,
 * no class instances. Many requests travel in ONE message per worker and tick.
 *
 * History: 1 - first version. 2 - batches travel through the port of the greeting, packed where
 * they hold raw requests or their answers alone (packed-batch.ts). 3 - packed batches may be in
 * shared memory, which is the gateway's again after the reply (batch-memory.ts). 4 - scopes carry the
 * fork id of minRevision, the version of the settings and whether only a held shard may answer; changes
 * that were found beside a head are carried. 5 - queries of gatehouse.v1 (queries.ts). 6 - reads by
 * project, and evaluations that ran out of their budget (read-figures.ts). 7 - a shard may have replicas in several workers (published-watermarks.ts).
 * 8 - requests say whether their deadline is the caller's own. 9 - the worker decodes what its scanners do not take:
 * no answer sends a request back, and every other request is a query. 10 - queries of gatehouse.v1 may come as they are, and their answers leave
 * with space for a token (token-space.ts); scopes say whether unknown relations are refused. 11 - such a query may name a version of the
 * model.
 */
export const PROTOCOL_VERSION = 11;

/** Scope that many requests of a batch share. `expected*` is the scope as the gateway's scan read it. */
export type ScopeEntry = ShardKey & {
  readonly modelVersion: number;
  readonly readBudget: number;
  readonly settingsVersion: number;
  readonly epoch: number;
  /** Fork id of the minRevision of every request with this scope; '' is unknown. */
  readonly forkId: string;
  readonly isHeldOnly: boolean;
  /** The project's setting: ReadScope. */
  readonly refusesUnknown?: boolean | undefined;
  readonly expectedProjectId: string;
  readonly expectedTenantId: string;
  /** The version of the model that a raw query names, as the gateway's scan read it; absent or 0: none. */
  readonly expectedVersion?: number | undefined;
};

/** Numbers of one raw request inside `RequestBatch.raw`, in this order. */
export const RAW_REQUEST_ID = 0;
export const RAW_OPCODE = 1;
/** Index into `scopes`. */
export const RAW_SCOPE = 2;
export const RAW_MIN_REVISION = 3;
export const RAW_DEADLINE_MS = 4;
/** Byte range [start, end) in `bodies`. */
export const RAW_BODY_START = 5;
export const RAW_BODY_END = 6;
/** Index into `tokens`; 0 is the empty token. */
export const RAW_TOKEN = 7;
/** 1 where the caller stated the deadline, else 0. */
export const RAW_DEADLINE_STATED = 8;
export const RAW_FIELDS = 9;

const RAW_METHODS = [
  'check',
  'batchCheck',
  'listObjects',
  'queryCheck',
  'queryBatchCheck',
  'listRelations',
  'filterObjects',
  'explain',
] as const satisfies readonly RawMethod[];
const WIRE_FORMATS = ['json', 'proto'] as const satisfies readonly WireFormat[];

/** One number for method and format: methodIndex * 2 + formatIndex. */
export function rawOpcode(method: RawMethod, format: WireFormat): number {
  return RAW_METHODS.indexOf(method) * 2 + (format === 'json' ? 0 : 1);
}

/** Inverse of `rawOpcode`. Errors: throws on a number that it never gave. */
export function rawMethodOf(opcode: number): RawMethod {
  const method = RAW_METHODS[opcode >> 1];
  if (method === undefined) throw new Error(`unknown raw opcode ${opcode}`);
  return method;
}

/** Inverse of `rawOpcode`. */
export function wireFormatOf(opcode: number): WireFormat {
  return WIRE_FORMATS[opcode & 1] ?? 'json';
}

/** A query that the gateway parsed. */
export type WorkerRequest = {
  readonly requestId: number;
  /** Index into `scopes`. */
  readonly scope: number;
  readonly minRevision: number;
  readonly deadlineMs: number;
  /** Whether the caller stated it; absent: the service did. */
  readonly isDeadlineStated?: boolean | undefined;
  readonly query: QueryCall;
};

/** Answer to a query; `part` answers come before the last one (long lists only). Or the error of any request. */
export type WorkerResponse =
  | {
      readonly requestId: number;
      readonly result: QueryAnswer;
      readonly isPart: boolean;
      readonly error?: undefined;
    }
  | { readonly requestId: number; readonly error: ErrorData };

/** Control: not requests of a caller. `setModel` is acknowledged by its `ackId`. */
export type ControlMessage =
  | {
      readonly kind: 'setModel';
      readonly ackId: number;
      readonly projectId: string;
      readonly modelVersion: number;
      readonly modelJson: string;
    }
  /** Compare every loaded index with what is stored, at once; acknowledged when that is done. */
  | { readonly kind: 'fsck'; readonly ackId: number }
  | { readonly kind: 'committed'; readonly change: CommittedChange }
  /** The shard is loaded unless it is; acknowledged when it is, or could not be. */
  | { readonly kind: 'warm'; readonly ackId: number; readonly shard: ShardKey }
  | { readonly kind: 'carried'; readonly carried: CarriedChanges }
  /**
   * The worker is one of several that answer for the shard: it publishes in `memory`, in `slot`, how far it
   * has shown it (PublishedWatermarks). Acknowledged once that is published for the first time, the shard being loaded, or
   * could not be.
   */
  | {
      readonly kind: 'join';
      readonly ackId: number;
      readonly shard: ShardKey;
      readonly memory: SharedArrayBuffer;
      readonly slot: number;
    }
  /** It is no longer. A replica that is not the owner's goes. */
  | { readonly kind: 'leave'; readonly shard: ShardKey; readonly isOwner: boolean }
  /** null: every loaded shard must poll for changes. */
  | { readonly kind: 'hint'; readonly shard: ShardKey | null; readonly revision: number }
  /** The client does not know the requested model either. */
  | {
      readonly kind: 'modelUnknown';
      readonly projectId: string;
      readonly modelVersion: number;
    };

/** Gateway → worker: everything for one worker of one tick. */
export type RequestBatch = {
  readonly scopes: readonly ScopeEntry[];
  /** Tokens of raw requests; [0] is ''. */
  readonly tokens: readonly string[];
  /** RAW_FIELDS numbers per raw request. */
  readonly raw: Float64Array;
  readonly bodies: Uint8Array;
  readonly requests: readonly WorkerRequest[];
  /** Ids of requests whose callers have gone. */
  readonly cancelled: readonly number[];
  readonly control: readonly ControlMessage[];
};

/** Kinds of answers in `AnswerBatch.kinds`. */
export const ANSWER_ALLOWED = 1;
export const ANSWER_DENIED = 2;
/** The next range of `bodies`. */
export const ANSWER_BODY = 3;
/** The next element of `largeBodies`. */
export const ANSWER_LARGE_BODY = 4;

/** A loaded shard and the bytes of its index. */
export type RecentShard = ShardKey & { readonly indexBytes: number };

/** Counts of a worker since its last report, and its present state. */
export type WorkerStats = {
  readonly decisions: readonly DecisionCount[];
  /** Decisions among these whose namespace or relation the project's typed model does not have. */
  readonly unknown: UnknownFigures;
  /** Safety backstops that fired since the last report, by reason. */
  readonly backstops: { readonly depth: number; readonly cycle: number; readonly budget: number };
  /**
   * Reads of the evaluations since the last report, by RPC (of a BatchCheck each item is one):
   * buckets by the bounds 1, 2, 4 … 2^20 and one beyond them, and the sum.
   */
  readonly evalReads: Readonly<
    Record<
      'Check' | 'CheckSet' | 'BatchCheck' | 'Expand' | 'ListObjects' | QueryRpc,
      { readonly counts: readonly number[]; readonly sum: number }
    >
  >;
  /** Reads since the last report, by project. */
  readonly projects: readonly ProjectFigures[];
  /** Items of each BatchCheck since the last report. */
  readonly batchItems: readonly number[];
  /** Requests since the last report that named another scope than the gateway had read: none is answered. */
  readonly scopeMismatches: number;
  /** Failed items of batches since the last report, by reason; the gateway counts failed calls. */
  readonly errors: readonly {
    readonly rpc: string;
    readonly reason: string;
    readonly count: number;
  }[];
  readonly indexBytes: number;
  readonly shardsLoaded: number;
  readonly tuples: number;
  /** Largest known head minus watermark over the loaded shards. */
  readonly watermarkLagMax: number;
  readonly queueDepth: number;
  /** Since the last report. */
  readonly shardLoads: number;
  readonly shardLoadFailures: number;
  readonly shardEvictions: number;
  readonly catchUps: number;
  /** The loaded shards that were asked last, the latest first; not in every report. */
  readonly recentShards?: readonly RecentShard[] | undefined;
  readonly fsck: FsckStats;
};

/** Comparisons of indexes with what is stored, since the last report. */
export type FsckStats = {
  /** Indexes compared to the end, or until a difference was found. */
  readonly shards: number;
  readonly rows: number;
  /** Indexes that differed, and were loaded again. */
  readonly differences: number;
  /** Comparisons given up: the store was away, or the index did not catch up. */
  readonly unfinished: number;
  /** How long ago, ms, the loaded index was compared or loaded that waits longest. */
  readonly ageMs: number;
};

/** Worker → gateway: the reply to a batch, or (deferred answers) a message of its own. */
export type AnswerBatch = {
  /** Parallel to `kinds`. */
  readonly ids: Float64Array;
  readonly kinds: Uint8Array;
  readonly bodies: Uint8Array;
  /** End of each ANSWER_BODY in `bodies`, in order; the first starts at 0. */
  readonly bodyEnds: Uint32Array;
  readonly largeBodies: readonly Uint8Array[];
  readonly responses: readonly WorkerResponse[];
  readonly acks: readonly { readonly ackId: number; readonly error?: ErrorData | undefined }[];
  /** Models that requests named and this worker does not hold. */
  readonly modelsWanted: readonly { readonly projectId: string; readonly modelVersion: number }[];
  readonly stats: WorkerStats | null;
  readonly reports: readonly WorkerReport[];
  /** Refusals of requests whose answers are in this message, or come later. */
  readonly refusals: readonly BudgetRefusal[];
};

/** Something for the log. No tuple contents, and a hash instead of the tenant. */
export type WorkerReport = {
  readonly event: string;
  readonly shardHash: string;
  readonly error: string;
};

/** The one task of a worker. The reply is `HelloReply`; another version is a bootstrap failure. */
export type HelloMessage<Port, Settings> = {
  readonly protocolVersion: number;
  /** Batches come, and answers leave, through it. */
  readonly port: Port;
  /** One double: the id of the request under evaluation; 0 if none. Survives the worker. */
  readonly underEvaluation: SharedArrayBuffer;
  readonly settings: Settings;
};
export type HelloReply = { readonly protocolVersion: number };

/**
 * Messages through the port, gateway → worker. An ArrayBuffer is a packed batch. A number means that one is in the
 * shared memory that was emitted under it.
 */
export type WorkerMessage =
  | ArrayBuffer
  | number
  | { readonly memory: number; readonly buffer: SharedArrayBuffer }
  | { readonly batch: number; readonly content: RequestBatch };
/** Through the port, worker → gateway: the reply to batch n, or with n = 0 deferred answers. */
export type WorkerReply = ArrayBuffer | { readonly batch: number; readonly content: AnswerBatch };

/** A namespace or relation that decisions were asked about and that the project's typed model does not have. */
export type UnknownRelation = {
  readonly projectId: string;
  readonly namespace: string;
  readonly relation: string;
  readonly missing: MissingPart;
  /** The name that was likely meant; '' where none is near. */
  readonly meant: string;
};

/** Counts of such decisions of one worker since its last report. */
export type UnknownFigures = {
  /** Decisions, failed ones too, by what the model lacks. */
  readonly counts: Readonly<Record<MissingPart, number>>;
  /** A few of the names, each once, without objects, subjects and tenants. */
  readonly names: readonly UnknownRelation[];
};
