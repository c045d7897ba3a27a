import type { ShardKey } from '../../model/relation-tuple.ts';
import type { WriteAdmission } from '../ports.ts';
import type { HeadRevisions } from '../reads/head-revisions.ts';

/** A commit that was sent and whose end is not known here yet. */
export type OpenCommit = { readonly shards: readonly ShardKey[]; isHidden: boolean };

export type OpenCommitsOptions = {
  readonly headRevisions: HeadRevisions;
  readonly admission: WriteAdmission;
};

/**
 * Commits under way. An instance that joins reads the database while this one still answers from memory: it
 * may show a commit whose answer has not arrived here. While that can be, reads of such a shard query the
 * database too (`HeadRevisions.markUnknown`): from before the commit is sent until its revision is raised.
 */
export class OpenCommits {
  readonly #options: OpenCommitsOptions;
  readonly #open = new Set<OpenCommit>();

  constructor(options: OpenCommitsOptions) {
    this.#options = options;
  }

  /** Before anything is sent that may commit. */
  begin(shards: readonly ShardKey[]): OpenCommit {
    const commit = { shards, isHidden: false };
    this.#open.add(commit);
    if (this.#options.admission.isOvertaken) this.#hide(commit);
    return commit;
  }

  /** Ends a commit once its outcome is known and recorded in HeadRevisions. */
  settle(commit: OpenCommit): void {
    this.#open.delete(commit);
    if (!commit.isHidden) return;
    for (const { projectId, tenantId } of commit.shards) {
      this.#options.headRevisions.clearUnknown(projectId, tenantId);
    }
  }

  /** This instance is about to answer from memory, with commits under way from before. */
  hideAll(): void {
    for (const commit of this.#open) this.#hide(commit);
  }

  #hide(commit: OpenCommit): void {
    if (commit.isHidden) return;
    commit.isHidden = true;
    for (const { projectId, tenantId } of commit.shards) {
      this.#options.headRevisions.markUnknown(projectId, tenantId);
    }
  }
}
