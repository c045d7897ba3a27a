import {
  HotHistogram,
  type LabelledValue,
  type MetricStore,
} from '../../observability/metric-store.ts';
import { type ProjectFigures, SHARE_BOUNDS } from '../../protocol/read-figures.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { OTHER_KEY, TopKeys } from './top-keys.ts';

/** Projects with series of their own where nothing else is set. */
const NAMED_DEFAULT = 20;
/** Projects whose counts outlive their series, so that a series that comes back continues where it was. */
const KEPT_MAX = 2_000;

/**
 * Series by project, of those that read, or were refused, most lately: `namesMax` of each kind. All others count as
 * `other`. What was counted as `other` stays there when a project gets a name, so that every series only grows, and
 * their sum is right.
 */
export function createProjectMetrics(store: MetricStore, clock: Clock, namesMax = NAMED_DEFAULT) {
  const reads = new NamedCounts(new TopKeys(namesMax, clock));
  const refusals = new NamedCounts(new TopKeys(namesMax, clock));
  const shares = new Map([[OTHER_KEY, new HotHistogram(SHARE_BOUNDS)]]);
  const budgets = new Map<string, number>();
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
  const named = (): readonly string[] => [...new Set([...reads.names(), ...refusals.names()])];
  store.values(
    {
      name: 'gatehouse_project_read_budget',
      help: 'The read budget in force of the projects that have series of their own.',
    },
    'gauge',
    () =>
      named().flatMap((project) => {
        const value = budgets.get(project);
        return value === undefined ? [] : [{ labels: { project }, value }];
      }),
  );
  return {
    /** Adds the counts of a worker. Not hot: workers report four times a second. */
    add(all: readonly ProjectFigures[]): void {
      for (const figures of all) {
        const { projectId, budget } = figures;
        const name = reads.add(projectId, figures.reads);
        refusals.add(projectId, figures.refusals);
        const share = shares.get(name) ?? new HotHistogram(SHARE_BOUNDS);
        // Shares are no reads: only their count matters.
        share.merge(figures.shares, figures.reads / budget);
        keep(shares, name, share, reads.names());
        if (projectId !== '') keep(budgets, projectId, budget, named());
      }
    },
  };
}

/** A counter by name, of the names that lead. */
class NamedCounts {
  readonly #counts = new Map([[OTHER_KEY, 0]]);
  readonly #top: TopKeys;

  constructor(top: TopKeys) {
    this.#top = top;
  }

  /** The name under which it was counted. '' is never named. */
  add(key: string, amount: number): string {
    const isAnonymous = key === '' || amount === 0;
    const name = isAnonymous ? this.#known(key) : this.#top.nameOf(key, amount);
    if (amount > 0) keep(this.#counts, name, this.#of(name) + amount, this.names());
    return name;
  }

  names(): readonly string[] {
    return [...this.#top.names(), OTHER_KEY];
  }

  samples(): readonly LabelledValue[] {
    return this.names().map((project) => ({ labels: { project }, value: this.#of(project) }));
  }

  #of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  #known(key: string): string {
    return this.#top.names().includes(key) ? key : OTHER_KEY;
  }
}

/** Sets an entry of a map that keeps within its bound, by dropping what came first and has no name. */
function keep<V>(map: Map<string, V>, key: string, value: V, named: readonly string[]): void {
  map.set(key, value);
  if (map.size <= KEPT_MAX) return;
  const oldest = map.keys().find((kept) => !named.includes(kept));
  if (oldest !== undefined) map.delete(oldest);
}
