import type { ScopeEntry } from '../../protocol/messages.ts';
import {
  type ProjectFigures,
  READ_BUCKETS,
  readBucketOf,
  SHARE_BOUNDS,
} from '../../protocol/read-figures.ts';

/** The part of a query's scope by which its reads are counted. */
export type CountedScope = Pick<ScopeEntry, 'projectId' | 'tenantId' | 'readBudget'>;

/** Projects that a worker distinguishes between two reports; all further ones are counted together. */
const PROJECTS_MAX = 256;
/** Refusals of a project that are passed on one by one between two reports. */
const REPORTED_MAX = 2;

const SHARES = SHARE_BOUNDS.length;
/** Behind the buckets: fields of their own would be allocated anew with each addition. */
const READS_AT = READ_BUCKETS;
const READS_MAX_AT = READ_BUCKETS + 1;

/** Reads of one project's evaluations between two reports. */
export class ProjectReads {
  readonly projectId: string;
  readonly #buckets = new Float64Array(READ_BUCKETS + 2);
  readonly #shares = new Float64Array(SHARES + 1);
  /** The most reads of each share of the budget. */
  readonly #bounds = new Float64Array(SHARES);
  #budget = 0;
  #refusals = 0;
  #reported = 0;
  #unreported = 0;

  constructor(projectId: string) {
    this.projectId = projectId;
  }

  /** The budget of the evaluations that follow. */
  set budget(reads: number) {
    if (reads === this.#budget) return;
    this.#budget = reads;
    for (let i = 0; i < SHARES; i++) this.#bounds[i] = (SHARE_BOUNDS[i] as number) * reads;
  }

  /** Counts an answered evaluation of `reads` (an integer ≥ 0). Hot: no allocation, mostly no loop. */
  answered(reads: number): void {
    const buckets = this.#buckets;
    const bounds = this.#bounds;
    const bucket = readBucketOf(reads);
    buckets[bucket] = (buckets[bucket] as number) + 1;
    buckets[READS_AT] = (buckets[READS_AT] as number) + reads;
    if (reads > (buckets[READS_MAX_AT] as number)) buckets[READS_MAX_AT] = reads;
    // An answered evaluation is within its budget; a list of many decisions has a larger one.
    let share = 0;
    while (share < SHARES - 1 && reads > (bounds[share] as number)) share++;
    this.#shares[share] = (this.#shares[share] as number) + 1;
  }

  /** Counts an evaluation that ran out of its budget. */
  exhausted(reads: number): void {
    this.#buckets[READS_AT] = (this.#buckets[READS_AT] as number) + reads;
    this.#shares[SHARES] = (this.#shares[SHARES] as number) + 1;
  }

  /** Counts a refused evaluation or batch; returns whether it is to be passed on. */
  refused(): boolean {
    this.#refusals += 1;
    if (this.#reported < REPORTED_MAX) {
      this.#reported += 1;
      return true;
    }
    this.#unreported += 1;
    return false;
  }

  /** Refusals since the last call that were only counted. */
  takeUnreported(): number {
    const unreported = this.#unreported;
    this.#unreported = 0;
    return unreported;
  }

  /** Everything counted since the last call; undefined: nothing was. */
  drain(): ProjectFigures | undefined {
    const { projectId } = this;
    const refusals = this.#refusals;
    const shares = [...this.#shares];
    this.#reported = 0;
    if (refusals === 0 && shares.every((count) => count === 0)) return undefined;
    const buckets: number[] = [];
    for (let bucket = 0; bucket < READ_BUCKETS; bucket++) {
      const count = this.#buckets[bucket] as number;
      if (count > 0) buckets.push(bucket, count);
    }
    const reads = this.#buckets[READS_AT] as number;
    const readsMax = this.#buckets[READS_MAX_AT] as number;
    this.#buckets.fill(0);
    this.#shares.fill(0);
    this.#refusals = 0;
    return { projectId, budget: this.#budget, buckets, shares, reads, readsMax, refusals };
  }
}

/** The projects of one worker. A project that was not asked for between two reports is forgotten. */
export class ReadsByProject {
  readonly #projects = new Map<string, ProjectReads>();
  readonly #others = new ProjectReads('');
  #scope: CountedScope | null = null;
  #project: ProjectReads = this.#others;

  /** Counts of a scope's project. Hot: consecutive requests mostly share one scope object. */
  of(scope: CountedScope): ProjectReads {
    if (scope === this.#scope) return this.#project;
    const { projectId } = scope;
    let project = this.#projects.get(projectId);
    if (project === undefined && this.#projects.size < PROJECTS_MAX) {
      project = new ProjectReads(projectId);
      this.#projects.set(projectId, project);
    }
    this.#project = project ?? this.#others;
    this.#project.budget = scope.readBudget;
    this.#scope = scope;
    return this.#project;
  }

  /** Everything counted since the last call. */
  drain(): readonly ProjectFigures[] {
    const drained: ProjectFigures[] = [];
    for (const project of [...this.#projects.values(), this.#others]) {
      const figures = project.drain();
      if (figures !== undefined) drained.push(figures);
      else this.#projects.delete(project.projectId);
    }
    // It may have been forgotten.
    this.#scope = null;
    return drained;
  }
}
