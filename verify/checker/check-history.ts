import { type Coverage, coverageOf } from './coverage.ts';
import { Dependencies } from './dependencies.ts';
import { Evaluator, type Query } from './evaluate.ts';
import { type History, type Operation, isChange, isMutation } from './history.ts';
import {
  SEARCH_BOUNDS,
  type SearchBounds,
  type Timed,
  type Verdict,
  linearize,
} from './linearize.ts';
import { ShardSpec, type ShardState } from './shard-spec.ts';
import { type BrokenRule, checkRefusals, checkTokens } from './token-rules.ts';

/** One shard whose history no order explains. */
export type ShardViolation = {
  readonly project: number;
  readonly tenant: number;
  readonly verdict: Exclude<Verdict<ShardState, Operation>, { kind: 'linearizable' }>;
  readonly spec: ShardSpec;
  /** Enough of the shard's operations to show it. */
  readonly operations: readonly Operation[];
};

export type Report = {
  readonly operations: number;
  readonly shards: number;
  /** Mutations that the searches tried, and configurations kept at once at most. */
  readonly steps: number;
  readonly widest: number;
  readonly coverage: Coverage;
  readonly violations: readonly ShardViolation[];
  readonly undecided: readonly ShardViolation[];
  readonly brokenRules: readonly BrokenRule[];
};

/** Whether nothing is wrong, and all was decided. Whether it covers enough is another question. */
export function isClean({ violations, undecided, brokenRules }: Report): boolean {
  return [violations, undecided, brokenRules].every((list) => list.length === 0);
}

/** Checks a history, shard by shard: linearizable, tokens, refusals. Says what it covers. */
export function checkHistory(history: History, bounds: SearchBounds = SEARCH_BOUNDS): Report {
  const evaluator = new Evaluator(history.universe);
  const violations: ShardViolation[] = [];
  const undecided: ShardViolation[] = [];
  const brokenRules: BrokenRule[] = [...checkRefusals(history.operations)];
  let [shards, steps, widest] = [0, 0, 0];
  const failovers = history.operations.filter(({ action }) => action.kind === 'failover');
  const byProject = Map.groupBy(history.operations, ({ project }) => project);
  for (const [project, tenants] of history.projects.entries()) {
    const ofProject = [...(byProject.get(project) ?? []), ...failovers];
    for (let tenant = 0; tenant < tenants; tenant++) {
      const operations = ofProject.filter((one) => one.tenant === tenant || one.tenant === -1);
      shards++;
      brokenRules.push(...checkTokens(operations));
      const spec = specOf(history, evaluator, operations, tenants === 1);
      const verdict = linearize(spec, timedAll(operations), bounds);
      if (verdict.kind === 'linearizable') {
        steps += verdict.steps;
        widest = Math.max(widest, verdict.widest);
        continue;
      }
      const found = { project, tenant, verdict, spec, operations };
      if (verdict.kind === 'undecided') undecided.push(found);
      else violations.push(minimized(found, bounds));
    }
  }
  return {
    operations: history.operations.length,
    shards,
    steps,
    widest,
    coverage: coverageOf(history),
    violations,
    undecided,
    brokenRules,
  };
}

function specOf(
  history: History,
  evaluator: Evaluator,
  operations: readonly Operation[],
  isOnlyTenant: boolean,
): ShardSpec {
  const { universe, clockBoundMs } = history;
  const epochs = operations.flatMap(({ action }) =>
    action.kind === 'write' && action.reached !== undefined ? [action.reached.epoch] : [],
  );
  const dependencies = new Dependencies(universe);
  const dependsOnModel = (query: Query): boolean => dependencies.dependsOnModel(query);
  const options = { universe, evaluator, clockBoundMs, dependsOnModel, isOnlyTenant };
  return new ShardSpec(options, operations, Math.min(...epochs, 2 ** 32));
}

/**
 * What took part. A change that was under way at a failover, or whose outcome is unknown, may have taken effect, have
 * been seen and been lost with the old history, whatever became of it afterwards: so it is there once more.
 */
function timedAll(operations: readonly Operation[]): readonly Timed<Operation>[] {
  const timed = operations.flatMap(timedOf);
  const failovers = operations.filter(({ action }) => action.kind === 'failover');
  for (const failover of failovers) {
    if (failover.action.kind !== 'failover') continue;
    const { epoch: lostIn, lostAt = failover.returned } = failover.action;
    for (const operation of operations) {
      const { action, called, returned, outcome } = operation;
      if (!isChange(operation) || called > lostAt) continue;
      const isUnderWay = returned > failover.called || outcome === 'unknown';
      if (!isUnderWay) continue;
      // No instance sends these again: they take effect once at most, before the failover or after it, as they stand.
      if (action.kind === 'settings' && outcome === 'unknown') continue;
      const unanswered = action.kind === 'write' ? { ...action, reached: undefined } : action;
      const lost = {
        ...operation,
        action: unanswered,
        outcome: 'unknown',
        found: undefined,
      } as const;
      const over = failover.returned;
      timed.push({ operation: { ...lost, lostIn }, called, returned: null, over });
    }
  }
  return timed;
}

/** What took part: what was refused had no effect and saw nothing. */
function timedOf(operation: Operation): readonly Timed<Operation>[] {
  const { outcome, called, found } = operation;
  if (outcome === 'refused' || found === 'absent') return [];
  if (outcome === 'unknown' && !isMutation(operation)) return [];
  const isOpen = outcome === 'unknown' && found === undefined;
  return [{ operation, called, returned: isOpen ? null : operation.returned }];
}

/**
 * The same violation by fewer reads: all changes stay, since each is part of what was stored. Reads are
 * dropped in ever smaller pieces while some violation remains (delta debugging; Zeller, 2002).
 */
function minimized(found: ShardViolation, bounds: SearchBounds): ShardViolation {
  const { verdict: first, spec, operations } = found;
  // What came after it cannot explain it.
  const until = first.operation.returned ?? Number.POSITIVE_INFINITY;
  const relevant = operations.filter(({ called }) => called < until);
  const changes = relevant.filter(isMutation);
  const attempt = (reads: readonly Operation[]): ShardViolation | undefined => {
    const kept = [...changes, ...reads];
    const verdict = linearize(spec, timedAll(kept), bounds);
    if (verdict.kind !== 'violation') return undefined;
    const ids = new Set(reads.map(({ id }) => id));
    const inOrder = relevant.filter((one) => isMutation(one) || ids.has(one.id));
    return { ...found, verdict, operations: inOrder };
  };
  let reads = relevant.filter((one) => !isMutation(one) && one.outcome === 'ok');
  let best = attempt(reads) ?? found;
  const alone = isMutation(first.operation.operation)
    ? attempt([])
    : attempt([first.operation.operation]);
  if (alone !== undefined) return alone;
  const deadlineMs = performance.now() + MINIMIZE_MS;
  for (let piece = Math.ceil(reads.length / 2); piece >= 1; piece = Math.floor(piece / 2)) {
    for (let from = 0; from < reads.length && performance.now() < deadlineMs;) {
      const fewer = reads.toSpliced(from, piece);
      const verdict = attempt(fewer);
      if (verdict === undefined) from += piece;
      else {
        best = verdict;
        reads = fewer;
      }
    }
  }
  return best;
}

const MINIMIZE_MS = 5_000;
