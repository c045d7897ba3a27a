import type { Query } from './evaluate.ts';
import type { Universe } from './universe.ts';

/** A position that a consistency token names. */
export type Position = { readonly epoch: number; readonly revision: number };

/** One change of a write. */
export type Update = {
  readonly op: 'insert' | 'delete';
  /** In the universe. */
  readonly tuple: number;
  /** Of an insert that expires, in milliseconds since the epoch. */
  readonly expiresMs?: number | undefined;
  /** What it asks of what is stored; absent: nothing. */
  readonly mode?: 'absent' | 'identical' | 'present' | undefined;
};

/** What an operation did or asked. */
export type Action =
  | {
      readonly kind: 'write';
      readonly updates: readonly Update[];
      /** What its token says; absent where none came. */
      readonly reached?: Position | undefined;
    }
  | {
      readonly kind: 'deprovision';
      readonly user: string;
      /** Tuples deleted in all tenants of the project; absent where no answer came. */
      readonly deleted?: number | undefined;
    }
  | {
      readonly kind: 'settings';
      readonly model?: number | undefined;
      readonly isSuspended?: boolean | undefined;
    }
  | {
      /** The database became another one, which had followed the first until some time ago. */
      readonly kind: 'failover';
      /** What had taken effect before this event is in the new history, too. */
      readonly syncedAt: number;
      /** What was sent after this event found the first one gone. Absent: that is known of nothing before the return. */
      readonly lostAt?: number | undefined;
      /** Of the new history. */
      readonly epoch: number;
    }
  | {
      readonly kind: 'read';
      readonly query: Query;
      /** What the token names that the read carried. */
      readonly atLeast?: Position | undefined;
      /** As `Evaluator.answer` has it, or SUSPENDED. */
      readonly answer?: string | undefined;
    };

/** The answer of a read that was refused because its project was suspended. */
export const SUSPENDED = '!suspended';

/**
 * How an operation ended. `unknown`: it may have taken effect, or may yet. `refused`: it had no effect,
 * and says nothing of what is stored.
 */
export type Outcome = 'ok' | 'unknown' | 'refused';

/** One operation of one client against one instance. */
export type Operation = {
  readonly id: number;
  readonly client: number;
  /** Which instance was asked: its place in the cluster, whatever process held it. */
  readonly instance: number;
  /** -1 is all of them. */
  readonly project: number;
  /** Within its project; -1 is all of them. */
  readonly tenant: number;
  readonly action: Action;
  readonly outcome: Outcome;
  /** Positions in the order of all calls and returns of the run. */
  readonly called: number;
  readonly returned: number;
  /** The wall clock of the recording process, in milliseconds since the epoch. */
  readonly calledMs: number;
  readonly returnedMs: number;
  /**
   * Of a write whose outcome is unknown: whether what it alone writes was there when the run was over and
   * every write had been answered or given up. `applied`: it took effect before `returned`. Absent: not looked.
   */
  readonly found?: 'applied' | 'absent' | undefined;
  /** Only for the search: it took effect before this epoch, if at all. */
  readonly lostIn?: number | undefined;
  /** What the error said, where there was one. */
  readonly error?: string | undefined;
};

/** What was done to the processes while the run went on. */
export type Disturbance = { readonly atMs: number; readonly text: string };

/** A recorded run: all that a check of it needs. */
export type History = {
  readonly seed: string;
  readonly startedMs: number;
  readonly endedMs: number;
  /** Tenants of each project. */
  readonly projects: readonly number[];
  /** How far the clocks of instances may be from the recorder's, in milliseconds. */
  readonly clockBoundMs: number;
  readonly universe: Universe;
  readonly operations: readonly Operation[];
  readonly disturbances: readonly Disturbance[];
};

/** Whether an operation may change what is stored or how it is read. */
export function isMutation({ action }: Operation): boolean {
  return action.kind !== 'read';
}

/** Whether it is a change that a client asked for. */
export function isChange({ action }: Operation): boolean {
  return action.kind !== 'read' && action.kind !== 'failover';
}
