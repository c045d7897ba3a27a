import type { CommittedChange } from '../model/packed-changes.ts';
import type { ShardKey } from '../model/relation-tuple.ts';

/**
 * Sink of committed changes: the owners of their shards. Called after minRevision was raised and
 * before the writer is answered, in revision order per shard. Must not throw: a lost change is
 * caught up.
 */
export interface CommittedChanges {
  onCommitted(changes: readonly CommittedChange[]): void;
}

/** Gives a version of a project's model to every thread that decides. */
export interface ModelDistributor {
  /** Resolves when every worker has compiled this version ('' = built-in model). */
  setModel(projectId: string, modelVersion: number, modelJson: string): Promise<void>;
}

/** Origin of a write. It is stored with the change row, except for `caller`, and audited. */
export type WriteMeta = {
  /** Name of the method, for example `WriteRelationTuples`. */
  readonly rpc: string;
  /** null where a call has no acting user. */
  readonly actingUserId: string | null;
  /** The name of the service that called; absent where the instance does it by itself. */
  readonly caller?: string | undefined;
  readonly requestId: string;
  /** Absolute, on `performance.timeOrigin + performance.now()` (ms); Infinity if none. */
  readonly deadlineMs: number;
};

/** One committed revision, for audit records: one record per packed change, ordinals in order. */
export type TupleAudit = Omit<CommittedChange, 'settingsVersion'> & {
  readonly rpc: string;
  readonly actingUserId: string | null;
  readonly caller?: string | undefined;
  readonly requestId: string;
  /** Wall clock, milliseconds. */
  readonly atMs: number;
  /** Ordinal of the first change, where a revision is recorded in parts; else 0. */
  readonly firstOrdinal?: number | undefined;
};

/** One mutation of a project. */
export type AdminAudit = {
  readonly operation:
    | 'create_project'
    | 'update_project'
    | 'write_model'
    | 'roll_back_model'
    | 'activate_model'
    | 'refuse_model'
    | 'cancel_model'
    | 'ignore_misfits';
  readonly projectId: string;
  /** The author, in the form that versions of models use. */
  readonly by: string;
  /** Same as `WriteMeta.caller`. */
  readonly caller?: string | undefined;
  readonly rpc: string;
  readonly requestId: string;
  readonly atMs: number;
  /** The version of the project's model that it wrote, if it wrote one. */
  readonly model?: WrittenModel | undefined;
};

/** Fields of an audit record about a version of a model. */
export type WrittenModel = {
  readonly version: number;
  readonly sha256: string;
  /** 0 if none. */
  readonly rolledBackTo: number;
  readonly forced: boolean;
  /** `active`: it decides from now on. */
  readonly state: 'active' | 'pending' | 'refused' | 'cancelled';
  /** Stored tuples that do not fit, where they were examined. */
  readonly tuplesRefused?: number | undefined;
  /** Namespaces of these that the model in force before declared, and this one does not. */
  readonly droppedNamespaces?: readonly string[] | undefined;
};

/** Audit output. Called after commit, in revision order per shard; must not throw. */
export interface AuditSink {
  tuplesChanged(entries: readonly TupleAudit[]): void;
  projectChanged(entry: AdminAudit): void;
}

/** Notifies other instances that a shard has reached `revision`: a hint that may be lost. Must not throw. */
export interface ChangeHints {
  hint(shard: ShardKey, revision: number): void;
}

/**
 * Registration of this instance under which writes are sent. The database admits only writes that name a
 * live registration, so that writes of an instance given up for dead have no effect.
 */
export interface WriteAdmission {
  /**
   * To be read at the moment of sending. Undefined: nothing may be sent now (the instance joins, or must
   * register again). null: nobody registers on this database at all.
   */
  readonly writeId: string | null | undefined;
  /**
   * Resolves when that has changed, or soon. Errors: STORE_UNAVAILABLE when the database cannot be asked.
   */
  whenAdmitted(): Promise<void>;
  /** A write that named `writeId` was refused: nothing of it was applied, and the id is of no more use. */
  refused(writeId: string | null): void;
  /**
   * Whether another instance may see a commit of this one, in the database, before this one knows of it,
   * while this one answers from memory.
   */
  readonly isOvertaken: boolean;
}
