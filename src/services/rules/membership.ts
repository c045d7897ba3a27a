import { ACTIVE, INVITED, SUSPENDED, type MembershipStatus } from './roles.ts';

/*
 * Membership of a workspace.
 *
 * M1 The tuple of a member's role exists exactly while the member is ACTIVE.
 *    [test/e2e/workspaces.pg.test.ts] [test/services/operations.pg.test.ts]
 * M2 A workspace has exactly one owner, who is ACTIVE; the constraints of
 *    migrations/0001_authorization.sql hold it. [test/e2e/workspaces.pg.test.ts]
 *    [src/services/workspaces/concurrency.pg.test.ts]
 * M3 A suspended member holds none of the four relations on the workspace, also none that was
 *    written by hand before. [test/e2e/workspaces.pg.test.ts]
 * M4 A reinstated member has the role that its row has. [test/e2e/workspaces.pg.test.ts]
 * M5 A user has one PERSONAL workspace, which has one member for ever, its owner.
 *    [test/e2e/workspaces.pg.test.ts] [src/services/workspaces/concurrency.pg.test.ts]
 */

/** 0 is no membership at all. */
export type MembershipState = 0 | MembershipStatus;

export type MembershipEvent =
  | 'add'
  | 'accept'
  | 'suspend'
  | 'reinstate'
  | 'changeRole'
  | 'receiveOwnership'
  | 'remove';

/**
 * Effect on the user's tuples on the workspace: `grant` writes that of the role, `replace` leaves
 * exactly that one of the four, `revoke` leaves none, `keep` changes nothing.
 */
export type TupleEffect = 'grant' | 'replace' | 'revoke' | 'keep';

export type MembershipOutcome =
  | { readonly next: MembershipState; readonly tuples: TupleEffect }
  | { readonly refusal: 'MEMBER_UNKNOWN' | 'ALREADY_MEMBER' | 'MEMBERSHIP_STATE' };

const UNKNOWN = { refusal: 'MEMBER_UNKNOWN' } as const;
const EXISTS = { refusal: 'ALREADY_MEMBER' } as const;
const WRONG_STATE = { refusal: 'MEMBERSHIP_STATE' } as const;
const REMOVED = { next: 0, tuples: 'revoke' } as const;

/** Every event in every state. That the owner is left alone is checked before. */
export const MEMBERSHIP: Readonly<
  Record<MembershipState, Readonly<Record<MembershipEvent, MembershipOutcome>>>
> = {
  0: {
    add: { next: ACTIVE, tuples: 'grant' },
    accept: { next: ACTIVE, tuples: 'grant' },
    suspend: UNKNOWN,
    reinstate: UNKNOWN,
    changeRole: UNKNOWN,
    receiveOwnership: { next: ACTIVE, tuples: 'replace' },
    remove: UNKNOWN,
  },
  [ACTIVE]: {
    add: EXISTS,
    accept: EXISTS,
    suspend: { next: SUSPENDED, tuples: 'revoke' },
    reinstate: WRONG_STATE,
    changeRole: { next: ACTIVE, tuples: 'replace' },
    receiveOwnership: { next: ACTIVE, tuples: 'replace' },
    remove: REMOVED,
  },
  // Only imports make such rows; they grant nothing.
  [INVITED]: {
    add: EXISTS,
    accept: EXISTS,
    suspend: WRONG_STATE,
    reinstate: WRONG_STATE,
    changeRole: { next: INVITED, tuples: 'keep' },
    receiveOwnership: WRONG_STATE,
    remove: REMOVED,
  },
  [SUSPENDED]: {
    add: EXISTS,
    accept: EXISTS,
    suspend: WRONG_STATE,
    reinstate: { next: ACTIVE, tuples: 'grant' },
    changeRole: { next: SUSPENDED, tuples: 'keep' },
    receiveOwnership: WRONG_STATE,
    remove: REMOVED,
  },
};
