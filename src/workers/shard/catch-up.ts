import type { ShardKey } from '../../model/relation-tuple.ts';
import type { ChangePage } from '../../store/feed/changes.ts';
import type { ShardSource } from './ports.ts';

const CATCH_UP_ATTEMPTS_MAX = 3;
const CATCH_UP_RETRY_MS = 40;

/** Outcome of a page: `dropped` is one of an earlier life of the index, `caughtUp` the last one. */
export type PageOutcome = 'applied' | 'caughtUp' | 'diverged' | 'dropped';

/** The shard of a catch-up, as that sees it. */
export interface CatchUpShard {
  readonly key: ShardKey;
  readonly watermark: number;
  /** Changes when the index is dropped. */
  readonly generation: number;
  /** Whether an evaluation is begun, over the present revision. */
  readonly isInUse: boolean;
  /** Applies a page that was read in the life `generation` of the index. */
  applyPage(page: ChangePage, generation: number): PageOutcome;
  /** Calls back in the very step that ends the begun evaluations, before the next one begins. */
  whenResumed(callback: () => void): void;
}

/**
 * Reads and applies the changes that were committed after the watermark, page by page, until the shard is at its head
 * revision. Errors: those of the source, after some attempts.
 */
export async function catchUp(
  shard: CatchUpShard,
  source: Pick<ShardSource, 'readChanges'>,
): Promise<PageOutcome> {
  const { generation } = shard;
  for (;;) {
    const page = await readPage(shard, source, generation);
    if (page === null) return 'dropped';
    let outcome = shard.isInUse ? null : shard.applyPage(page, generation);
    if (outcome === null) {
      outcome = await new Promise<PageOutcome>((resolve) => {
        shard.whenResumed(() => resolve(shard.applyPage(page, generation)));
      });
    }
    if (outcome !== 'applied') return outcome;
  }
}

async function readPage(
  shard: CatchUpShard,
  source: Pick<ShardSource, 'readChanges'>,
  generation: number,
): Promise<ChangePage | null> {
  for (let attempt = 1; ; attempt++) {
    try {
      const page = await source.readChanges(shard.key, shard.watermark);
      return generation === shard.generation ? page : null;
    } catch (error) {
      if (generation !== shard.generation) return null;
      if (attempt >= CATCH_UP_ATTEMPTS_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, CATCH_UP_RETRY_MS * attempt));
    }
  }
}
