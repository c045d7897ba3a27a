import type { CheckItem, Query, Stored } from '../../verify/checker/evaluate.ts';
import { Evaluator } from '../../verify/checker/evaluate.ts';
import type { Action, History, Operation, Outcome, Update } from '../../verify/checker/history.ts';
import { SUSPENDED } from '../../verify/checker/history.ts';
import { DOCS, MARKER, MARKS, USERS, createUniverse } from '../../verify/checker/universe.ts';
import { createRandom, type Random } from '../../verify/workload/random.ts';

/** Where a simulated service is not right. */
export type SimulatedFault =
  | 'none'
  /** A read takes what was stored before the last write that had been acknowledged when it was sent. */
  | 'stale-read'
  /** A write that is acknowledged is not stored. */
  | 'lost-write'
  /** A write that is called refused is stored. */
  | 'called-failed'
  /** A read with a token takes what was stored before it. */
  | 'token-ignored'
  /** The items of a batch take two revisions. */
  | 'torn-batch'
  /** A read takes the model from before its call. */
  | 'stale-model'
  /** Two writes have one token. */
  | 'same-token';

export type SimulationOptions = {
  readonly seed: string;
  readonly operations: number;
  readonly clients: number;
  /** Out of 100 changes. */
  readonly unknownPercent: number;
  /** Whether it was looked in the end which of those took effect. */
  readonly isResolved?: boolean;
  readonly fault: SimulatedFault;
};

type World = {
  readonly stored: Stored;
  readonly model: number;
  readonly isSuspended: boolean;
  readonly revision: number;
};
type Draft = { action: Action; called: number; point: number; returned: number; client: number };

/**
 * A history of one shard as a right service would make it, or one with a fault in about each twentieth
 * operation: every operation takes effect at one moment between its call and its return.
 */
export function simulateHistory(options: SimulationOptions): History {
  const random = createRandom(options.seed);
  const universe = createUniverse();
  const evaluator = new Evaluator(universe);
  const drafts = draftsOf(options, random, universe.tuples.length);
  const worlds: { readonly at: number; readonly world: World }[] = [
    {
      at: -1,
      world: { stored: universe.tuples.map(() => 0), model: 0, isSuspended: false, revision: 0 },
    },
  ];
  const worldAt = (at: number): World =>
    (worlds.findLast((one) => one.at <= at) as (typeof worlds)[number]).world;
  const operations: Operation[] = [];
  const answer = ({ stored, model, isSuspended }: World, query: Query): string =>
    isSuspended ? SUSPENDED : evaluator.answer(stored, model, query, 0);
  for (const [id, { action, called, point, returned, client }] of drafts
    .toSorted((a, b) => a.point - b.point)
    .entries()) {
    const isFaulty = options.fault !== 'none' && random.chance(0.05);
    const now = worldAt(point);
    let outcome: Outcome = 'ok';
    let done = action;
    let found: Operation['found'];
    if (action.kind === 'read') {
      const { fault } = options;
      const before = worldAt(called);
      const older = worlds[worlds.findLastIndex((one) => one.at <= called) - 3]?.world ?? before;
      const atLeast = random.chance(0.2) ? { epoch: 1, revision: before.revision } : undefined;
      let seen = atLeast === undefined ? now : before;
      if (isFaulty && fault === 'stale-read' && atLeast === undefined)
        seen = { ...older, model: now.model, isSuspended: now.isSuspended };
      if (isFaulty && fault === 'token-ignored')
        seen = { ...older, model: now.model, isSuspended: now.isSuspended };
      const otherModel = worlds.findLast(
        ({ at, world }) => at <= called && world.model !== before.model,
      );
      if (isFaulty && fault === 'stale-model' && otherModel !== undefined)
        seen = { ...before, model: otherModel.world.model };
      const { query } = action;
      let text = answer(seen, query);
      if (isFaulty && fault === 'torn-batch' && query.kind === 'batch') {
        const other = answer(older, query);
        text = text
          .split('')
          .map((bit, i) => (i % 2 === 0 ? bit : (other[i] ?? bit)))
          .join('');
      }
      done = { ...action, atLeast, answer: text };
    } else {
      const isUnknown = random.chance(options.unknownPercent / 100);
      const isDropped = isUnknown && random.chance(0.5);
      if (isUnknown) outcome = 'unknown';
      if (isUnknown && options.isResolved === true && action.kind === 'write') {
        found = isDropped ? 'absent' : 'applied';
      }
      const isLost = isFaulty && options.fault === 'lost-write' && !isUnknown;
      const next = apply(now, action);
      if (!isDropped) {
        worlds.push({ at: point, world: isLost ? { ...next, stored: now.stored } : next });
        if (action.kind === 'write' && !isUnknown) {
          const isSame = isFaulty && options.fault === 'same-token';
          done = { ...action, reached: { epoch: 1, revision: next.revision - (isSame ? 1 : 0) } };
          if (isFaulty && options.fault === 'called-failed') {
            outcome = 'refused';
            done = action;
          }
        }
      }
    }
    operations.push({
      id,
      client,
      instance: client % 2,
      project: 0,
      tenant: action.kind === 'settings' ? -1 : 0,
      action: done,
      outcome,
      called,
      returned: found === 'applied' ? Number.MAX_SAFE_INTEGER - drafts.length + id : returned,
      found,
      calledMs: called,
      returnedMs: returned,
    });
  }
  return {
    seed: options.seed,
    startedMs: 0,
    endedMs: 0,
    projects: [1],
    clockBoundMs: 0,
    universe,
    operations,
    disturbances: [],
  };
}

function apply(world: World, action: Action): World {
  switch (action.kind) {
    case 'settings':
      return {
        ...world,
        model: action.model ?? world.model,
        isSuspended: action.isSuspended ?? world.isSuspended,
      };
    case 'write': {
      const stored = [...world.stored];
      for (const { op, tuple } of action.updates) stored[tuple] = op === 'insert' ? 1 : 0;
      return { ...world, stored, revision: world.revision + 1 };
    }
    case 'deprovision':
    case 'failover':
    case 'read':
      return world;
  }
}

/** Operations of clients that each do one after another, with a point of effect in each. */
function draftsOf(
  { operations, clients }: SimulationOptions,
  random: Random,
  tuples: number,
): readonly Draft[] {
  const freeAt = Array.from({ length: clients }, (_, i) => i / clients);
  return Array.from({ length: operations }, (_, id): Draft => {
    const client = random.integer(clients);
    // Positions are real numbers, so none is taken twice.
    const called = (freeAt[client] ?? 0) + random.fraction();
    const point = called + random.fraction() * 3;
    const returned = point + random.fraction() * 3;
    freeAt[client] = returned;
    return { action: actionOf(id, random, tuples), called, point, returned, client };
  });
}

function actionOf(id: number, random: Random, tuples: number): Action {
  const kind = random.fraction();
  if (kind < 0.03) return { kind: 'settings', model: random.integer(4) };
  if (kind < 0.4) {
    const updates = new Map<number, Update>();
    updates.set(id % MARKS.length, { op: 'insert', tuple: id % MARKS.length });
    const other = (id + 4) % MARKS.length;
    updates.set(other, { op: 'delete', tuple: other });
    const tuple = MARKS.length + random.integer(tuples - MARKS.length);
    updates.set(tuple, { op: random.chance(0.5) ? 'insert' : 'delete', tuple });
    return { kind: 'write', updates: [...updates.values()] };
  }
  if (kind < 0.6) {
    const items: CheckItem[] = MARKS.map((mark) => ['mark', mark, 'at', MARKER]);
    for (const doc of DOCS) for (const user of USERS) items.push(['doc', doc, 'viewer', user]);
    return { kind: 'read', query: { kind: 'batch', items } };
  }
  if (kind < 0.8) {
    return {
      kind: 'read',
      query: { kind: 'list', namespace: 'mark', relation: 'at', user: MARKER },
    };
  }
  const [object, user] = [random.pick(DOCS), random.pick(USERS)];
  return {
    kind: 'read',
    query: { kind: 'check', namespace: 'doc', object, relation: 'viewer', user },
  };
}
