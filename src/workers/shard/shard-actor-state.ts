/**
 * SPEC: the index of one shard in one worker.
 *
 * States
 * - unloaded: no index. Requests start a load.
 * - loading: a snapshot is being read; requests wait.
 * - ready: the index is at its watermark.
 * - catchingUp: as ready, while committed changes after the watermark are being read.
 *
 * Beside the state, evaluations may be suspended between two slices: the index then does not change.
 * Other reads still run between their slices, over the same revision; changes and read pages wait
 * for the end of the begun ones, and once one waits, nothing new begins.
 *
 * Invariants
 * - I1 An answer comes from a watermark at or above the request's minRevision and from its epoch.
 *   Test: simulation.test.ts "answers are never older than minRevision".
 * - I2 The watermark of one life of an index only grows, one whole revision at a time.
 *   Test: shard-actor.test.ts "applies the next revision whole, ignores old ones".
 * - I3 A gap starts a catch-up; nothing is applied over it.
 *   Test: shard-actor.test.ts "a gap is caught up from the store".
 * - I4 Another fork id at the watermark, a head revision below it, or a pruned past drops the index and loads.
 *   Test: shard-actor.test.ts "reloads when the store diverged".
 * - I5 Concurrent requests share one load; a failed load fails who waits and is not remembered.
 *   Test: shard-actor.test.ts "requests share one load", "a failed load is not cached".
 * - I6 Every request is answered exactly once, or was cancelled.
 *   Test: simulation.test.ts "every request is answered once".
 * - I7 All items of a request see one revision and one now: no change is applied while it is
 *   suspended. Test: shard-actor.test.ts "a suspended evaluation keeps its revision".
 * - I8 An index with waiters, a load, a catch-up or a suspended evaluation is never evicted.
 *   Test: worker-pool.test.ts "a busy shard is not evicted, idle ones go by least recent use".
 * - I9 Without the store, a loaded shard continues answering what its watermark allows.
 *   Test: shard-actor.test.ts "decides without the store".
 *
 * Constraints
 * - C1 What waits is bounded: requests by the client's queues, held changes by HELD_CHANGES_MAX.
 * - C3 A waiting change is not starved by reads that follow each other, nor a long read by short
 *   ones. Tests: worker-pool.test.ts "a change is not starved …", "long lists stop neither …".
 * - C4 Between two polls of the messages there is at most one slice of long work, and short
 *   requests run before it. Test: turns.test.ts.
 * - C2 Results of a load or catch-up of an earlier life (`generation`) are ignored.
 */
export type ActorState = 'unloaded' | 'loading' | 'ready' | 'catchingUp';

export type ActorEvent =
  /** A request needs the shard, or a newer state of it. */
  | 'wanted'
  | 'loaded'
  | 'loadFailed'
  | 'caughtUp'
  | 'catchUpFailed'
  /** The store's history is not the one of this index. */
  | 'diverged'
  /** An assertion found that the index is damaged. */
  | 'damaged'
  | 'evicted';

/** The next state; `null` is an event that cannot come in this state: a programmer error. */
type NextActorState = ActorState | null;

/** Every cell is decided: a missing one does not compile. */
export const ACTOR_TRANSITIONS: Readonly<
  Record<ActorState, Readonly<Record<ActorEvent, NextActorState>>>
> = {
  unloaded: {
    wanted: 'loading',
    loaded: null,
    loadFailed: null,
    caughtUp: null,
    catchUpFailed: null,
    diverged: null,
    damaged: null,
    evicted: null,
  },
  loading: {
    wanted: 'loading',
    loaded: 'ready',
    loadFailed: 'unloaded',
    caughtUp: null,
    catchUpFailed: null,
    diverged: null,
    damaged: null,
    evicted: null,
  },
  ready: {
    wanted: 'catchingUp',
    loaded: null,
    loadFailed: null,
    caughtUp: null,
    catchUpFailed: null,
    diverged: 'loading',
    damaged: 'unloaded',
    evicted: 'unloaded',
  },
  catchingUp: {
    wanted: 'catchingUp',
    loaded: null,
    loadFailed: null,
    caughtUp: 'ready',
    catchUpFailed: 'ready',
    diverged: 'loading',
    damaged: 'unloaded',
    evicted: null,
  },
};

/** The state after `event`. Errors: throws when the table rules it out. */
export function nextActorState(state: ActorState, event: ActorEvent): ActorState {
  const next = ACTOR_TRANSITIONS[state][event];
  if (next === null) throw new Error(`a shard that is ${state} cannot be told '${event}'`);
  return next;
}
