import type { IndexAudit, IndexDifference } from '../../cache/index-audit.ts';
import type { RowBytes } from '../../cache/tuple-row.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { SnapshotPage } from '../../store/feed/snapshot-page.ts';
import type { ShardSource } from '../shard/ports.ts';
import type { ShardActor } from '../shard/shard-actor.ts';

/** Rows of one page: some hundred microseconds to compare. */
const PAGE_ROWS = 500;
/** A slice ends after this, so that requests wait no longer than for each other. */
const SLICE_MS = 1;
/** How long the index may take to reach the revision of a page, and a page to come. */
const PATIENCE_MS = 10_000;
const POLL_AGAIN_MS = 5;
/** Cost of a page beside its rows, in rows; and nodes walked over for the cost of one row. */
const PAGE_COST = 50;
const WALKED_PER_ROW = 16;

export type FsckOptions = {
  readonly clock: Clock;
  readonly source: ShardSource;
  /** How long a slice may be; 1 ms if absent. */
  readonly sliceMs?: number | undefined;
  /** Waits until so many more rows may be compared; at least until the messages at hand are handled. */
  readonly pace: (rows: number) => Promise<void>;
};

/** `rows`: how many were compared. */
export type FsckResult =
  | { readonly kind: 'clean'; readonly rows: number }
  | { readonly kind: 'different'; readonly rows: number; readonly difference: IndexDifference }
  /** The index went, was loaded anew or emptied meanwhile: what is there now is another one. */
  | { readonly kind: 'dropped'; readonly rows: number }
  | { readonly kind: 'unfinished'; readonly rows: number; readonly error: unknown };

/**
 * Compares the loaded index of a shard with its rows in the store, both ways, while the shard serves and changes. Each page
 * of rows is the state of one revision; the comparison begins when the watermark has reached it, and takes into account
 * what came since (IndexAudit). Runs in slices of 1 ms. Never throws.
 */
export async function checkShard(actor: ShardActor, options: FsckOptions): Promise<FsckResult> {
  const { index, generation } = actor;
  const isSame = (): boolean => actor.generation === generation && actor.isLoaded;
  const audit = index.startAudit(() => actor.position.revision + 1);
  try {
    const difference = await compareAll(actor, audit, isSame, options);
    const { rows } = audit;
    if (difference === undefined || !isSame()) return { kind: 'dropped', rows };
    return difference === null ? { kind: 'clean', rows } : { kind: 'different', rows, difference };
  } catch (error) {
    const { rows } = audit;
    return isSame() ? { kind: 'unfinished', rows, error } : { kind: 'dropped', rows };
  } finally {
    index.endAudit();
  }
}

/** null: none; undefined: the index is no longer the one that was compared. */
async function compareAll(
  actor: ShardActor,
  audit: IndexAudit,
  isSame: () => boolean,
  options: FsckOptions,
): Promise<IndexDifference | null | undefined> {
  const { pace } = options;
  const isOver = sliceOf(options);
  while (!audit.isWalked) {
    const { walked, difference } = audit.walk(isOver());
    if (difference !== null) return difference;
    await pace(walked / WALKED_PER_ROW);
    if (!isSame() || audit.isVoid) return undefined;
  }
  let after: readonly string[] | null = null;
  for (;;) {
    audit.beginPage();
    const page = await options.source.readPage(
      actor.key,
      after,
      PAGE_ROWS,
      AbortSignal.timeout(PATIENCE_MS),
    );
    if (!(await reaches(actor, page, isSame))) return undefined;
    const rows: RowBytes = { ...page, expiryFormat: 'binary' };
    for (let row = 0; row < page.rows;) {
      const next = audit.compareRows(rows, row, isOver());
      await pace(next - row);
      row = next;
      if (!isSame()) return undefined;
    }
    const isLast = page.next === null;
    const difference = audit.endPage(rows, page.headRevision.revision, isLast);
    if (difference !== null) return difference;
    if (audit.isVoid) return undefined;
    if (isLast) return audit.finish();
    after = page.next;
    await pace(PAGE_COST);
    if (!isSame()) return undefined;
  }
}

/** Waits until the watermark has reached a page. False: it is of another history, or the index went. */
async function reaches(
  actor: ShardActor,
  { headRevision }: SnapshotPage,
  isSame: () => boolean,
): Promise<boolean> {
  const deadline = performance.now() + PATIENCE_MS;
  while (isSame() && actor.position.revision < headRevision.revision) {
    if (performance.now() > deadline) {
      throw new Error(`the index did not reach seq ${headRevision.revision} in ${PATIENCE_MS} ms`);
    }
    actor.changes.hint(headRevision.revision);
    await sleep(POLL_AGAIN_MS);
  }
  if (!isSame()) return false;
  const { epoch, revision, forkId } = actor.position;
  if (
    epoch === headRevision.epoch &&
    (revision > headRevision.revision || forkId === headRevision.forkId)
  )
    return true;
  // The actor follows the history that the store has.
  actor.changes.hint(0);
  return false;
}

/** Begins a slice; the predicate that is returned is true once the slice is over. */
function sliceOf({ clock, sliceMs = SLICE_MS }: FsckOptions): () => () => boolean {
  return () => {
    const endMs = clock.monotonicMs() + sliceMs;
    return () => clock.monotonicMs() >= endMs;
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}
