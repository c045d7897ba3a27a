import type { ShardKey } from '../../model/relation-tuple.ts';

/** One follower between two polls. */
type Follower = {
  readonly projectId: string;
  /** null: every tenant. */
  readonly tenantId: string | null;
  wake: (() => void) | null;
  hasNews: boolean;
};

/** Wakes followers when their shards may have changed. Hints alone: followers poll for themselves. */
export class WatchHub {
  readonly #byProject = new Map<string, Set<Follower>>();

  /** Whether somebody here follows the shard. Hot: called for each hint of others. */
  follows({ projectId, tenantId }: ShardKey): boolean {
    const followers = this.#byProject.get(projectId);
    if (followers === undefined) return false;
    for (const { tenantId: own } of followers) if (own === null || own === tenantId) return true;
    return false;
  }

  /** A shard may have changed; null: any. Hot: called for each commit of this process. */
  changed(shard: ShardKey | null): void {
    if (this.#byProject.size === 0) return;
    if (shard === null) {
      for (const followers of this.#byProject.values()) for (const one of followers) rouse(one);
      return;
    }
    const followers = this.#byProject.get(shard.projectId);
    if (followers === undefined) return;
    for (const one of followers) {
      if (one.tenantId === null || one.tenantId === shard.tenantId) rouse(one);
    }
  }

  /** Follows a shard, or every one of a project, until `unsubscribe`. */
  follow(projectId: string, tenantId: string | null): Following {
    const follower: Follower = { projectId, tenantId, wake: null, hasNews: false };
    const followers = this.#byProject.get(projectId) ?? new Set<Follower>();
    this.#byProject.set(projectId, followers.add(follower));
    return {
      news: (timeoutMs, signal) => newsOf(follower, timeoutMs, signal),
      unsubscribe: () => {
        followers.delete(follower);
        if (followers.size === 0) this.#byProject.delete(projectId);
      },
    };
  }
}

export interface Following {
  /** Resolves when something may have changed since the last call, after `timeoutMs`, or when `signal` aborts. */
  news(timeoutMs: number, signal: AbortSignal): Promise<void>;
  unsubscribe(): void;
}

function rouse(follower: Follower): void {
  follower.hasNews = true;
  follower.wake?.();
}

async function newsOf(follower: Follower, timeoutMs: number, signal: AbortSignal): Promise<void> {
  if (!follower.hasNews && !signal.aborted) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, timeoutMs);
      function done(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        follower.wake = null;
        resolve();
      }
      follower.wake = done;
      signal.addEventListener('abort', done);
    });
  }
  follower.hasNews = false;
}
