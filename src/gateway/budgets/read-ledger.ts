import {
  type BudgetRefusal,
  type ProjectFigures,
  READ_BUCKETS,
  readsOfBucket,
  type RefusedQuery,
} from '../../protocol/read-figures.ts';
import type { CallOrigin } from '../../protocol/shard-client.ts';
import type { Clock } from '../../shared/time/clock.ts';

/** Projects that are distinguished; the one that was not heard of for longest goes. About 2 KB each. */
const PROJECTS_MAX = 1_000;
/** Refused queries of a project that are remembered. */
const QUERIES_MAX = 16;
/** A refused query with a longer context is counted without the query, which cannot be asked again. */
const CONTEXT_BYTES_MAX = 4_096;

/** A refused query with its caller and its time. */
export type RememberedRefusal = Omit<BudgetRefusal, 'requestId' | 'unreported'> &
  CallOrigin & { readonly atMs: number };

/** Reads of a project's evaluations since `sinceMs` (wall clock). */
export type ReadUsage = {
  readonly projectId: string;
  readonly budget: number;
  readonly sinceMs: number;
  readonly answered: number;
  readonly refused: number;
  readonly reads: number;
  readonly readsMax: number;
  /** The most reads of a bucket, and how many answered evaluations are in it; ascending. */
  readonly buckets: readonly (readonly [readsMax: number, count: number])[];
};

/** Counts of the reads of projects, as workers send them, and some of the queries that were refused. */
export class ReadLedger {
  readonly #clock: Clock;
  readonly #projects = new Map<string, ProjectAccount>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes what a worker counted. Cost: O(projects in it and their buckets). */
  report(all: readonly ProjectFigures[]): void {
    for (const figures of all) {
      // Projects that workers do not distinguish have no account.
      if (figures.projectId !== '') this.#accountOf(figures.projectId).add(figures);
    }
  }

  /** Remembers a refused query; the same one again replaces the one before. */
  refused(refusal: BudgetRefusal, origin: CallOrigin | undefined): void {
    const { projectId, tenantId, rpc, relation, limit, bound } = refusal;
    const query = isShort(refusal.query) ? refusal.query : null;
    const requestId = origin?.requestId ?? '';
    const caller = origin?.caller ?? '';
    const atMs = this.#clock.nowMs();
    const asked = { projectId, tenantId, rpc, relation, limit, bound, query };
    this.#accountOf(projectId).remember({ ...asked, requestId, caller, atMs });
  }

  /** Undefined for a project of which nothing was heard. */
  usageOf(projectId: string): ReadUsage | undefined {
    return this.#projects.get(projectId)?.usage();
  }

  /** The latest first. */
  refusedOf(projectId: string): readonly RememberedRefusal[] {
    return this.#projects.get(projectId)?.refusals() ?? [];
  }

  /** The most refused first, then by reads. */
  list(limit: number): readonly ReadUsage[] {
    const all = [...this.#projects.values()].map((account) => account.usage());
    all.sort((a, b) => b.refused - a.refused || b.reads - a.reads);
    return all.slice(0, limit);
  }

  #accountOf(projectId: string): ProjectAccount {
    const known = this.#projects.get(projectId);
    if (known !== undefined) {
      // The order of the Map is that in which they were heard of.
      this.#projects.delete(projectId);
      this.#projects.set(projectId, known);
      return known;
    }
    const oldest = this.#projects.keys().next();
    if (this.#projects.size >= PROJECTS_MAX && oldest.done !== true) {
      this.#projects.delete(oldest.value);
    }
    const made = new ProjectAccount(projectId, this.#clock.nowMs());
    this.#projects.set(projectId, made);
    return made;
  }
}

class ProjectAccount {
  readonly #projectId: string;
  readonly #sinceMs: number;
  readonly #buckets = new Float64Array(READ_BUCKETS);
  #budget = 0;
  #refused = 0;
  #reads = 0;
  #readsMax = 0;
  #remembered: RememberedRefusal[] = [];

  constructor(projectId: string, sinceMs: number) {
    this.#projectId = projectId;
    this.#sinceMs = sinceMs;
  }

  add({ budget, buckets, reads, readsMax, refusals }: ProjectFigures): void {
    this.#budget = budget;
    for (let i = 0; i < buckets.length; i += 2) {
      const bucket = buckets[i] as number; // by turns with its count
      this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + (buckets[i + 1] as number);
    }
    this.#reads += reads;
    this.#readsMax = Math.max(this.#readsMax, readsMax);
    this.#refused += refusals;
  }

  /**
   * Remembers a refusal; at the bound the relation with most entries loses its oldest, so that one caller does not take all
   * entries.
   */
  remember(refusal: RememberedRefusal): void {
    const key = keyOf(refusal);
    const kept = this.#remembered.filter((one) => keyOf(one) !== key);
    if (kept.length >= QUERIES_MAX) kept.splice(crowdedIndex(kept), 1);
    this.#remembered = [...kept, refusal];
  }

  refusals(): readonly RememberedRefusal[] {
    return this.#remembered.toReversed();
  }

  usage(): ReadUsage {
    const buckets: [number, number][] = [];
    let answered = 0;
    this.#buckets.forEach((count, bucket) => {
      answered += count;
      if (count > 0) buckets.push([readsOfBucket(bucket), count]);
    });
    return {
      projectId: this.#projectId,
      budget: this.#budget,
      sinceMs: this.#sinceMs,
      answered,
      refused: this.#refused,
      reads: this.#reads,
      readsMax: this.#readsMax,
      buckets,
    };
  }
}

/** Finds the oldest refusal of the relation that has most entries. */
function crowdedIndex(kept: readonly RememberedRefusal[]): number {
  const counts = new Map<string, number>();
  for (const { rpc, relation } of kept) {
    const key = `${rpc} ${relation}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const most = Math.max(...counts.values());
  return kept.findIndex(({ rpc, relation }) => counts.get(`${rpc} ${relation}`) === most);
}

function keyOf({ tenantId, rpc, relation, bound, query }: RememberedRefusal): string {
  return JSON.stringify([tenantId, rpc, relation, bound, query]);
}

function isShort(query: RefusedQuery | null): boolean {
  return query?.kind !== 'check' || query.contextJson.length <= CONTEXT_BYTES_MAX;
}

/** Reads within which the share `part` (0 to 1) of the answered evaluations stayed; 0 if there are none. */
export function readsAt(buckets: ReadUsage['buckets'], part: number): number {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [readsMax, count] of buckets) {
    seen += count;
    if (seen >= part * total) return readsMax;
  }
  return 0;
}
