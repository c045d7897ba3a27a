import { HotHistogram, type MetricStore } from '../observability/metric-store.ts';
import { type ProjectFigures, SHARE_BOUNDS } from '../protocol/read-figures.ts';
import type { Clock } from '../shared/clock.ts';
import { OTHER_KEY, TopKeys } from './top-keys.ts';

/** Projects with series of their own where nothing else is set. */
const NAMED_DEFAULT = 20;
/** Projects whose counts outlive their series, so that a series that comes back goes on where it was. */
const KEPT_MAX = 2_000;

/** Reads and refusals by project. */
export interface ProjectMetrics {
  /** Takes what a worker counted. Not hot: workers report four times a second. */
  add(figures: readonly ProjectFigures[]): void;
  /** How many projects have series of their own, of each kind; the rest is counted together. Set once, at start. */
  setNamed(namesMax: number): void;
}

/**
 * Series by project, of those that read, or were refused, most lately; all others count as `other`. What was counted as
 * `other` stays there when a project gets a name, so that every series only grows, and their sum is right.
 */
export function createProjectMetrics(store: MetricStore, clock: Clock): ProjectMetrics {
  const reads = new NamedCounts(clock);
  const refusals = new NamedCounts(clock);
  const shares = new Map<string, HotHistogram>();
  const budgets = new Map<string, number>();
  const shareOf = (name: string): HotHistogram => {
    const known = shares.get(name);
    if (known !== undefined) return known;
    const made = new HotHistogram(SHARE_BOUNDS);
    shares.set(name, made);
    dropOldest(shares, reads.names());
    return made;
  };
  shareOf(OTHER_KEY);

  register(store, { reads, refusals, shares, budgets });
  return {
    setNamed(namesMax) {
      reads.setNamed(namesMax);
      refusals.setNamed(namesMax);
    },
    add(all) {
      for (const figures of all) {
        const { projectId, budget } = figures;
        const name = reads.add(projectId, figures.reads);
        refusals.add(projectId, figures.refusals);
        // Shares are no reads: only their count matters.
        shareOf(name).merge(figures.shares, figures.reads / budget);
        if (projectId !== '') budgets.set(projectId, budget);
        dropOldest(budgets, [...reads.names(), ...refusals.names()]);
      }
    },
  };
}

type ProjectFamilies = {
  readonly reads: NamedCounts;
  readonly refusals: NamedCounts;
  readonly shares: ReadonlyMap<string, HotHistogram>;
  readonly budgets: ReadonlyMap<string, number>;
};

function register(store: MetricStore, { reads, refusals, shares, budgets }: ProjectFamilies): void {
  store.values(
    {
      name: 'gatehouse_project_reads_total',
      help: 'Reads of evaluations by project: of those that read most, and of all others together.',
    },
    'counter',
    () => reads.samples(),
  );
  store.values(
    {
      name: 'gatehouse_project_budget_refusals_total',
      help: 'Evaluations and batches that ran out of their read budget, by project: of those that were refused most, and of all others together.',
    },
    'counter',
    () => refusals.samples(),
  );
  store.histogramValues(
    {
      name: 'gatehouse_project_budget_share',
      help: "Reads of evaluations as a share of the project's own budget; refused ones lie beyond 1.",
    },
    () =>
      reads.names().flatMap((project) => {
        const cell = shares.get(project);
        return cell === undefined ? [] : [{ labels: { project }, cell }];
      }),
  );
  store.values(
    {
      name: 'gatehouse_project_read_budget',
      help: 'The read budget in force of the projects that have series of their own.',
    },
    'gauge',
    () =>
      [...new Set([...reads.names(), ...refusals.names()])].flatMap((project) => {
        const value = budgets.get(project);
        return value === undefined ? [] : [{ labels: { project }, value }];
      }),
  );
}

/** A counter by name, of the names that lead. */
class NamedCounts {
  readonly #clock: Clock;
  readonly #counts = new Map<string, number>([[OTHER_KEY, 0]]);
  #top: TopKeys;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#top = new TopKeys(NAMED_DEFAULT, clock);
  }

  setNamed(namesMax: number): void {
    this.#top = new TopKeys(namesMax, this.#clock);
  }

  /** The name under which it was counted. '' is never named. */
  add(key: string, amount: number): string {
    const isAnonymous = key === '' || amount === 0;
    const name = isAnonymous ? this.#known(key) : this.#top.nameOf(key, amount);
    if (amount > 0) this.#counts.set(name, (this.#counts.get(name) ?? 0) + amount);
    dropOldest(this.#counts, this.names());
    return name;
  }

  names(): readonly string[] {
    return [...this.#top.names(), OTHER_KEY];
  }

  samples(): { readonly labels: { readonly project: string }; readonly value: number }[] {
    return this.names().map((project) => ({
      labels: { project },
      value: this.#counts.get(project) ?? 0,
    }));
  }

  #known(key: string): string {
    return this.#top.names().includes(key) ? key : OTHER_KEY;
  }
}

/** Keeps a map within its bound, by the entries that came first and have no name. */
function dropOldest(map: Map<string, unknown>, named: readonly string[]): void {
  if (map.size <= KEPT_MAX) return;
  for (const key of map.keys()) {
    if (named.includes(key)) continue;
    map.delete(key);
    return;
  }
}
