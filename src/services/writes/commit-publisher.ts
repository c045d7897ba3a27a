import type { CommittedChange } from '../../model/packed-changes.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { AuditSink, ChangeHints, CommittedChanges, WriteMeta } from '../ports.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';
import type { WriteResult } from '../write-groups/write-group.ts';

export type PublisherOptions = {
  readonly clock: Clock;
  readonly headRevisions: HeadRevisions;
  readonly committed: CommittedChanges;
  /** Absent where audit is off: then nothing is built for it. */
  readonly audit?: AuditSink | undefined;
  /** Absent where nobody else listens. */
  readonly hints?: ChangeHints | undefined;
};

/** The part of a write that is published. */
export type PublishedWrite = {
  readonly shard: ShardKey;
  readonly forkId: string;
  readonly meta: WriteMeta;
};

/** Notifies everybody of commits, in the order that keeps reads right: head revisions first, callers last. */
export class CommitPublisher {
  readonly #options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Writes of one transaction with their results by position, in revision order per shard. */
  publish(writes: readonly PublishedWrite[], results: readonly WriteResult[]): void {
    const { headRevisions, committed, audit, hints } = this.#options;
    const changes: CommittedChange[] = [];
    writes.forEach((write, index) => {
      const result = results[index] as WriteResult;
      const { projectId, tenantId } = write.shard;
      const forkId = result.changes === null ? '' : write.forkId;
      headRevisions.raise(projectId, tenantId, result.epoch, result.revision, forkId);
      if (result.changes === null) return;
      changes.push({
        projectId,
        tenantId,
        epoch: result.epoch,
        revision: result.revision,
        forkId: write.forkId,
        settingsVersion: result.settingsVersion,
        changes: result.changes,
      });
    });
    if (changes.length > 0) committed.onCommitted(changes);
    if (audit !== undefined) this.#audit(audit, writes, results);
    if (hints !== undefined) for (const change of changes) hints.hint(change, change.revision);
  }

  #audit(
    audit: AuditSink,
    writes: readonly PublishedWrite[],
    results: readonly WriteResult[],
  ): void {
    const atMs = this.#options.clock.nowMs();
    const entries = writes.flatMap((write, index) => {
      const { epoch, revision, changes } = results[index] as WriteResult;
      if (changes === null) return [];
      const { rpc, actingUserId, caller, requestId } = write.meta;
      return [
        {
          ...write.shard,
          epoch,
          revision,
          forkId: write.forkId,
          changes,
          rpc,
          actingUserId,
          caller,
          requestId,
          atMs,
        },
      ];
    });
    if (entries.length > 0) audit.tuplesChanged(entries);
  }
}
