import { Dependencies } from './dependencies.ts';
import { type History, type Operation, isChange, isMutation } from './history.ts';

/** How much a run can have shown, whatever it found. Shares are 0-1. */
export type Coverage = {
  readonly reads: number;
  readonly mutations: number;
  /** Reads of which a write was under way that may change their answer. */
  readonly concurrentReads: number;
  /** Reads that asked another instance than the last change of their shard did. */
  readonly foreignReads: number;
  /** Changes whose outcome nobody knows. */
  readonly unknownMutations: number;
  readonly refused: number;
};

export const CONCURRENT_READS_MIN = 0.2;
export const FOREIGN_READS_MIN = 0.3;
export const UNKNOWN_MAX = 0.01;
/** Below this a run is no run. */
const READS_MIN = 100;

/** What `history` covers. Cost: O(operations × those under way at once). */
export function coverageOf(history: History): Coverage {
  const dependencies = new Dependencies(history.universe);
  const mutations = history.operations.filter(isChange);
  const reads = history.operations.filter((one) => !isMutation(one) && one.outcome === 'ok');
  let concurrentReads = 0;
  let foreignReads = 0;
  const byShard = Map.groupBy(reads, shardOf);
  for (const ofShard of byShard.values()) {
    const [sample] = ofShard;
    if (sample === undefined) continue;
    const writes = mutations
      .filter((one) => one.outcome !== 'refused' && touches(one, sample))
      .toSorted((a, b) => a.called - b.called);
    const acknowledged = writes
      .filter(({ outcome }) => outcome === 'ok')
      .toSorted((a, b) => a.returned - b.returned);
    const active: Operation[] = [];
    let [nextWrite, nextAcknowledged] = [0, 0];
    for (const read of ofShard.toSorted((a, b) => a.called - b.called)) {
      for (; (writes[nextWrite]?.called ?? Infinity) < read.returned; nextWrite++) {
        active.push(writes[nextWrite] as Operation);
      }
      // Reads come by their calls: what ended before this one was called ended before all later ones.
      for (let i = active.length - 1; i >= 0; i--) {
        if ((active[i] as Operation).returned < read.called) active.splice(i, 1);
      }
      if (active.some((write) => isRelevant(dependencies, write, read))) concurrentReads++;
      while ((acknowledged[nextAcknowledged]?.returned ?? Infinity) < read.called)
        nextAcknowledged++;
      const last = acknowledged[nextAcknowledged - 1];
      if (last !== undefined && last.instance !== read.instance) foreignReads++;
    }
  }
  return {
    reads: reads.length,
    mutations: mutations.length,
    concurrentReads,
    foreignReads,
    unknownMutations: mutations.filter(({ outcome }) => outcome === 'unknown').length,
    refused: history.operations.filter(({ outcome }) => outcome === 'refused').length,
  };
}

/** What several rounds cover together. */
export function sumOf(parts: readonly Coverage[]): Coverage {
  const sum = (of: (part: Coverage) => number): number =>
    parts.reduce((total, part) => total + of(part), 0);
  return {
    reads: sum(({ reads }) => reads),
    mutations: sum(({ mutations }) => mutations),
    concurrentReads: sum(({ concurrentReads }) => concurrentReads),
    foreignReads: sum(({ foreignReads }) => foreignReads),
    unknownMutations: sum(({ unknownMutations }) => unknownMutations),
    refused: sum(({ refused }) => refused),
  };
}

/** Why a run with this coverage would prove nothing; empty when it may stand. */
export function coverageFaults(coverage: Coverage, instances: number): readonly string[] {
  const { reads, mutations, concurrentReads, foreignReads, unknownMutations } = coverage;
  if (reads < READS_MIN) return [`only ${reads} reads were answered`];
  const faults: string[] = [];
  const expect = (isEnough: boolean, share: number, text: string): void => {
    if (!isEnough) faults.push(`${(share * 100).toFixed(2)} % ${text}`);
  };
  const concurrent = concurrentReads / reads;
  expect(
    concurrent >= CONCURRENT_READS_MIN,
    concurrent,
    `of the reads were concurrent with a relevant write, less than ${CONCURRENT_READS_MIN * 100} %`,
  );
  const foreign = foreignReads / reads;
  expect(
    instances === 1 || foreign >= FOREIGN_READS_MIN,
    foreign,
    `of the reads asked another instance than the last write, less than ${FOREIGN_READS_MIN * 100} %`,
  );
  const unknown = unknownMutations / Math.max(1, mutations);
  expect(
    unknown <= UNKNOWN_MAX,
    unknown,
    `of the changes have an unknown outcome, more than ${UNKNOWN_MAX * 100} %`,
  );
  return faults;
}

function shardOf({ project, tenant }: Operation): string {
  return `${project} ${tenant}`;
}

function touches(mutation: Operation, read: Operation): boolean {
  if (mutation.project !== read.project) return false;
  return mutation.tenant === -1 || mutation.tenant === read.tenant;
}

function isRelevant(dependencies: Dependencies, write: Operation, read: Operation): boolean {
  if (read.action.kind !== 'read') return false;
  const { query } = read.action;
  const { action } = write;
  switch (action.kind) {
    case 'write': {
      const tuples = dependencies.of(query);
      return action.updates.some(({ tuple }) => tuples.has(tuple));
    }
    case 'deprovision':
      return true;
    case 'settings':
      return action.isSuspended !== undefined || dependencies.dependsOnModel(query);
    case 'read':
    case 'failover':
      return false;
  }
}
