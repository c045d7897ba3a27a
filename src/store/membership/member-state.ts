import type { Registration } from './instance-rows.ts';

/**
 * State of an instance's registration. Pure: the protocol itself, explored whole by
 * test/membership/. Each function returns the state after an event.
 *
 * M1 A registration has an id of its own, never used again. [test/membership/protocol.test.ts]
 * M2 It commits nothing before every other row was in shared mode, or removed after its lease.
 *    [test/membership/protocol.test.ts]
 * M3 While it answers from memory alone its row states it, and no other instance may write.
 *    [test/membership/protocol.test.ts]
 * M4 Its row states that it left alone mode only after it has, and names the term that it left.
 *    [test/membership/protocol.test.ts]
 * M5 It is alone only after every other row was gone and, then, every write let in had ended; what
 *    it knew of shards before counts for nothing. [test/membership/protocol.test.ts]
 * M6 Alone counts from before the last renewal was sent, and ends before the row may be removed.
 *    [test/membership/protocol.test.ts] [member-state.test.ts]
 */
export type MemberState = {
  /** Id of the present registration; undefined: none. */
  readonly id: string | undefined;
  /** Registrations of this process that ended, or may have been made unseen. */
  readonly former: readonly string[];
  readonly mayWrite: boolean;
  /** Answers from memory, while `now` is below `claimUntilMs`. */
  readonly isAlone: boolean;
  /** Term by which the row wrongly states that this instance is alone; undefined: the row is right. */
  readonly owedTerm: number | undefined;
  /** The term of the row. */
  readonly term: number;
  /** Number of rows of others at the last read. */
  readonly others: number;
  /** On the monotonic clock, in ms. */
  readonly claimUntilMs: number;
};

/** Before the first registration. */
export const NOBODY: MemberState = {
  id: undefined,
  former: [],
  mayWrite: false,
  isAlone: false,
  owedTerm: undefined,
  term: 0,
  others: 0,
  claimUntilMs: 0,
};

/** Margin for clocks that do not run equally fast. */
const LEASE_MARGIN = 0.1;
/** Older ones have been removed by their leases. */
const FORMER_MAX = 16;

/** The statement that the state asks for; `renew` when it is due. */
export type NextStatement = 'register' | 'acknowledge' | 'become alone' | 'renew';

/** The statement to send next. */
export function nextStatement(state: MemberState): NextStatement {
  if (state.id === undefined) return 'register';
  if (state.owedTerm !== undefined) return 'acknowledge';
  if (!state.isAlone && state.mayWrite && state.others === 0) return 'become alone';
  return 'renew';
}

/** A registration of `id` is sent: should its answer be lost, its row may be there. */
export function registering(state: MemberState, id: string): MemberState {
  return { ...NOBODY, former: [...state.former, id].slice(-FORMER_MAX) };
}

/** The answer to a registration. */
export function registered(
  state: MemberState,
  id: string,
  { mayWrite, term, others }: Registration,
): MemberState {
  const former = state.former.filter((one) => one !== id);
  return { ...NOBODY, id, former, mayWrite, term, others };
}

/** The answer to a renewal that was sent at `sentMs`; undefined: the row is gone. */
export function renewed(
  state: MemberState,
  answer: Registration | undefined,
  sentMs: number,
  leaseMs: number,
): MemberState {
  if (state.id === undefined) return state;
  if (answer === undefined) return ended(state, state.id);
  const { mayWrite, term, others, isShared } = answer;
  // A row with another state is from a statement whose answer was lost.
  const isAlone = state.isAlone && others === 0 && !isShared && term === state.term;
  return {
    ...state,
    mayWrite,
    term,
    others,
    isAlone,
    owedTerm: isShared || isAlone ? undefined : term,
    claimUntilMs: isAlone ? claimUntil(sentMs, leaseMs) : 0,
  };
}

/** The answer to an acknowledgement. */
export function acknowledged(state: MemberState): MemberState {
  return { ...state, owedTerm: undefined };
}

/** The answer to becoming alone, sent at `sentMs`; undefined: another instance is there. */
export function becameAlone(
  state: MemberState,
  term: number | undefined,
  sentMs: number,
  leaseMs: number,
): MemberState {
  // Looked at again by the next renewal.
  if (term === undefined) return { ...state, others: Math.max(state.others, 1) };
  return { ...state, isAlone: true, term, claimUntilMs: claimUntil(sentMs, leaseMs) };
}

/** The registration `id` has ended, by a renewal or a write that found no row. */
export function ended(state: MemberState, id: string): MemberState {
  if (state.id !== id) return state;
  return { ...NOBODY, former: [...state.former, id].slice(-FORMER_MAX) };
}

/** Whether reads may be answered by what this process knows. */
export function isAloneAt(state: MemberState, nowMs: number): boolean {
  return state.isAlone && nowMs < state.claimUntilMs;
}

function claimUntil(sentMs: number, leaseMs: number): number {
  return sentMs + leaseMs * (1 - LEASE_MARGIN);
}

/** A wait that `wake` ends at once. One waiter. */
export class Pause {
  /** Woken since the last turn: the next wait ends at once. */
  isWoken = false;
  #resolve: (() => void) | undefined;

  /** Ends the present wait, or the next one if none is under way. */
  wake(): void {
    this.isWoken = true;
    this.#resolve?.();
  }

  /** Waits `ms`, or until woken. */
  async wait(ms: number): Promise<void> {
    if (this.isWoken || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    timer.unref();
    this.#resolve = resolve;
    await promise;
    clearTimeout(timer);
    this.#resolve = undefined;
  }
}
