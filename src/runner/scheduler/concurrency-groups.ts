import { AppError } from '../../shared/app-error.ts';
import type { JsonValue } from '../../shared/json.ts';
import { textOfValue } from '../language/expression-data.ts';

/** Pending members of a group with `queue: max`. Source: GitHub's changelog of 2026-05-07. */
const PENDING_MAX = 100;

/** An evaluated `concurrency:`. */
export type ConcurrencySetting = {
  readonly group: string;
  readonly isCancellingInProgress: boolean;
  /** `single`: a newcomer takes the place of the one that waits. `max`: up to 100 wait. */
  readonly queue: 'single' | 'max';
};

/** A run or job that wants to be the one of its group. */
export type ConcurrencyMember = {
  /** It has the group now. */
  readonly enter: () => void;
  /** It has to go: while it waits, then it is out already; while it has the group, it leaves when done. */
  readonly evict: (why: string) => void;
  /**
   * It has the group, and one that waits for it keeps others waiting (a job keeps the place of its run):
   * it should not wait for such a place itself, or both would wait for ever.
   */
  readonly urge?: (() => void) | undefined;
  /** Whether others wait for what this one has while it waits. */
  readonly isUrgent?: boolean | undefined;
};

type ConcurrencyGroup = {
  holder: ConcurrencyMember | undefined;
  readonly pending: ConcurrencyMember[];
};

/** The key under which names of groups are the same: GitHub compares them without case. */
export function groupKey(group: string): string {
  return group.toLowerCase();
}

/**
 * The setting of an evaluated `concurrency:` value: a text or `{group, cancel-in-progress, queue}`;
 * undefined when there is no group.
 * Errors: INVALID_WORKFLOW for another shape.
 */
export function concurrencySetting(value: JsonValue): ConcurrencySetting | undefined {
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  const fields = (isMapping ? value : { group: value }) as { readonly [key: string]: JsonValue };
  const group = fields['group'] ?? '';
  if (typeof group === 'object') throw invalid('the group must be a text');
  if (group === '') return undefined;
  const isCancelling = fields['cancel-in-progress'] ?? false;
  if (typeof isCancelling !== 'boolean') throw invalid('cancel-in-progress must be true or false');
  const queue = fields['queue'] ?? 'single';
  if (queue !== 'single' && queue !== 'max') throw invalid('queue must be single or max');
  return { group: textOfValue(group), isCancellingInProgress: isCancelling, queue };
}

function invalid(what: string): AppError {
  return new AppError('INVALID_WORKFLOW', `concurrency: ${what}`, { field: 'concurrency' });
}

/**
 * Concurrency groups: of each group one member goes on, the others wait or are evicted. Runs and jobs
 * share the names, as on GitHub. All calls of members are made synchronously.
 */
export class ConcurrencyGroups {
  readonly #groups = new Map<string, ConcurrencyGroup>();

  /** Answers how to leave: waiting or holding, once or more often. */
  join(setting: ConcurrencySetting, member: ConcurrencyMember): () => void {
    const key = groupKey(setting.group);
    const group = this.#groups.get(key) ?? { holder: undefined, pending: [] };
    this.#groups.set(key, group);
    this.#admit(group, setting, member);
    return () => this.#leave(key, group, member);
  }

  #admit(group: ConcurrencyGroup, setting: ConcurrencySetting, member: ConcurrencyMember): void {
    const why = `Canceling since a higher priority waiting request for ${setting.group} exists`;
    if (group.holder === undefined) {
      group.holder = member;
      member.enter();
      return;
    }
    if (setting.queue === 'max' && group.pending.length >= PENDING_MAX) {
      member.evict(`Canceling since ${PENDING_MAX} requests for ${setting.group} wait already`);
      return;
    }
    const evicted = setting.queue === 'single' ? group.pending.splice(0) : [];
    group.pending.push(member);
    for (const other of evicted) other.evict(why);
    if (member.isUrgent === true) group.holder.urge?.();
    if (setting.isCancellingInProgress) group.holder?.evict(why);
  }

  #leave(key: string, group: ConcurrencyGroup, member: ConcurrencyMember): void {
    const index = group.pending.indexOf(member);
    if (index >= 0) group.pending.splice(index, 1);
    if (group.holder !== member) return;
    group.holder = group.pending.shift();
    if (group.holder === undefined) {
      this.#groups.delete(key);
      return;
    }
    group.holder.enter();
    if (group.pending.some((other) => other.isUrgent === true)) group.holder.urge?.();
  }
}
