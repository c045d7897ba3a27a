import type { CarriedChanges, CommittedChange } from '../model/packed-changes.ts';
import type { ShardKey } from '../model/relation-tuple.ts';
import type { AppError } from '../shared/app-error.ts';
import type { ErrorData } from '../shared/app-error.ts';
import type { QueryAnswer, QueryArgs, QueryKind, QueryMethod } from './queries.ts';

/** Origin of a call, for the log of refusals. It is read only then, and does not travel. */
export interface CallOrigin {
  /** The same as in the answer. */
  readonly requestId: string;
  /** The name of the caller; '' if none is known. */
  readonly caller: string;
}

/** Project settings that travel with every read; the same values on every item of one request. */
export type ReadScope = ShardKey & {
  /** Names the project's compiled model; `modelJson` of that version was given to `setModel`. */
  readonly modelVersion: number;
  /** Reads per evaluation (per item of a batch). */
  readonly readBudget: number;
  /** Version of the settings above; an answer never shows a change that was committed under newer ones. */
  readonly settingsVersion: number;
  /** Whether a query of gatehouse.v1 that names a relation which the typed model does not have is refused. */
  readonly refusesUnknown?: boolean | undefined;
  readonly epoch: number;
  /** The answer must come from a watermark at or above this revision. */
  readonly minRevision: number;
  /** Decimal text of the fork id of `minRevision`; '' is unknown. An index that has another one is dropped. */
  readonly forkId: string;
  /** Answer only if the shard is held at that watermark already, else SHARD_BEHIND at once. */
  readonly isHeldOnly: boolean;
  /** Absolute, on the monotonic clock of `performance.timeOrigin + performance.now()` (ms); Infinity if none. */
  readonly deadlineMs: number;
  /**
   * Whether the caller stated it: then DEADLINE_EXCEEDED means that it has passed, whatever was waited for. Absent:
   * the service did.
   */
  readonly isDeadlineStated?: boolean | undefined;
  readonly origin?: CallOrigin | undefined;
};

export type BatchItem = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly userId: string;
};
/** Which objects a ListObjects asks for: those on which the user holds the relation. */
export type UserObjects = {
  readonly namespace: string;
  readonly relation: string;
  readonly userId: string;
};

export type WireFormat = 'json' | 'proto';
/** Methods of AuthzService. */
export type DecisionMethod = 'check' | 'batchCheck' | 'listObjects';
/** Requests that the worker decodes. */
export type RawMethod = DecisionMethod | QueryMethod;

/**
 * Answer to a raw body: a yes or no to a Check, and a message in the format of the body to all else; to a query of gatehouse.v1 it has space for
 * its consistency token (token-space.ts).
 */
export type RawAnswer =
  | { readonly kind: 'body'; readonly body: Uint8Array }
  | { readonly kind: 'allowed' }
  | { readonly kind: 'denied' }
  | { readonly kind: 'error'; readonly error: ErrorData };

/** Stops work whose caller has gone; the callback is then not called. */
export interface Cancellable {
  cancel(): void;
}

/**
 * The decision side as the gateway sees it. Implemented by the worker pool and, for tests, in
 * process. Every call either answers once or was cancelled; failures arrive as AppError
 * (SHARD_UNAVAILABLE, WORKER_LOST, QUEUE_FULL, DEADLINE_EXCEEDED, BUDGET_EXHAUSTED, REQUEST_REFUSED…;
 * SHARD_BEHIND and SETTINGS_OLD are for the caller's own use: ask for the shard's revision, load the
 * settings, and come again).
 */
export interface ShardClient {
  /**
   * A request for a decision, or a query, as it came: the worker decodes `body`, which is the client's until the answer, and verifies that its
   * project, tenant and token are `expected`, the routed and guarded ones; else the answer is INTERNAL. null: it was answered
   * in the call.
   */
  raw(
    method: RawMethod,
    format: WireFormat,
    body: Uint8Array,
    scope: ReadScope,
    /** project_id, tenant_id and token exactly as the gateway's scan read them ('' when absent). */
    expected: RawScope,
    onAnswer: (answer: RawAnswer) => void,
  ): Cancellable | null;

  /**
   * The error by which a request of `bytes` would be refused if it came now (QUEUE_FULL, SHUTTING_DOWN), or null.
   * Called before a long body is received. Without `shard`, or with one that has no queue, only if every worker is at
   * its bound. Counts as a refusal. O(workers).
   */
  refusalBefore(shard: ShardKey | undefined, bytes: number, deadlineMs: number): AppError | null;

  /**
   * An Expand, or a query of gatehouse.v1 (queries.ts). A long result may come in parts, in order: `onPart` takes those
   * before the last one, with which the promise resolves.
   */
  query<K extends QueryKind>(
    scope: ReadScope,
    kind: K,
    args: QueryArgs[K],
    signal?: AbortSignal,
    onPart?: (part: QueryAnswer<K>) => void,
  ): Promise<QueryAnswer<K>>;
  /** Resolves when every worker has compiled this version of the project's model ('' = built-in). */
  setModel(projectId: string, modelVersion: number, modelJson: string): Promise<void>;
  /** Hands committed changes to the owners of their shards. Never fails: a lost one is caught up. */
  applyCommitted(changes: readonly CommittedChange[]): void;
  /** Hands on what was found beside a shard's head. Never fails: changes that are lost are caught up. */
  applyCarried(carried: CarriedChanges): void;
  /** A hint that a shard has reached `revision` (from NOTIFY or the poll); null means all: catch up. */
  hint(shard: ShardKey | null, revision: number): void;
}

/** The scope that a request names. */
export type RawScope = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly token: string;
  /** The version of the model that a query names; absent or 0: none. */
  readonly modelVersion?: number | undefined;
};

/** Count of decisions of a worker since its last reply; the client sums these into metrics. */
export type DecisionCount = {
  readonly namespace: string;
  readonly relation: string;
  readonly outcome: 'allowed' | 'denied' | 'error';
  readonly count: number;
};
