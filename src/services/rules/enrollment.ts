/**
 * The life of an enrollment, an overlay on the membership of one user or group in a group.
 *
 * States: the five of the contract, and `none`: no row, the membership is plain or absent.
 * Events: AddGroupMember (`add`), RemoveGroupMember (`remove`), SetEnrollmentState (`set` to a state).
 *
 * E1 After every event on a member with a row, the member's tuple is present exactly if the row's
 *    state bears access (ENROLLED, ACTIVE). [enrollment.test.ts]
 *    [src/services/groups/group-member-service.pg.test.ts] [test/services/operations.pg.test.ts]
 * E2 The row and the tuple change in one transaction.
 *    [src/services/groups/group-member-service.pg.test.ts]
 * E3 A row never goes away but with its group, or with the group that is its member.
 *    [enrollment.test.ts] [src/services/groups/group-service.pg.test.ts]
 * E4 Any state may follow any through `set`. [enrollment.test.ts]
 * E5 A plain membership has no row until a state is set. [enrollment.test.ts]
 *    [src/services/groups/group-member-service.pg.test.ts]
 * E6 Tuples written around these services do not change a row; the next event asserts the row's
 *    state again. [src/services/groups/group-member-service.pg.test.ts]
 */
export const ENROLLMENT_STATES = [
  'waitlisted',
  'enrolled',
  'active',
  'completed',
  'dropped',
] as const;
export type EnrollmentState = (typeof ENROLLMENT_STATES)[number];
export type EnrollmentEvent = 'add' | 'remove' | `set_${EnrollmentState}`;

/** Effect of an event on a member. */
export type EnrollmentOutcome = {
  /** The row's state afterwards; 'none' leaves no row. */
  readonly next: EnrollmentState | 'none';
  /** The member's tuple afterwards. */
  readonly tuple: 'present' | 'absent';
  /** Whether the event needs a stored tuple; without one there is no such member (MEMBER_UNKNOWN). */
  readonly needsTuple: boolean;
};

const PLAIN: EnrollmentOutcome = { next: 'none', tuple: 'present', needsTuple: false };
const LEFT: EnrollmentOutcome = { next: 'none', tuple: 'absent', needsTuple: true };
const WAITLISTED = rowIn('waitlisted', 'absent');
const ENROLLED = rowIn('enrolled', 'present');
const ACTIVE = rowIn('active', 'present');
const COMPLETED = rowIn('completed', 'absent');
const DROPPED = rowIn('dropped', 'absent');

const SET = {
  set_waitlisted: WAITLISTED,
  set_enrolled: ENROLLED,
  set_active: ACTIVE,
  set_completed: COMPLETED,
  set_dropped: DROPPED,
} as const satisfies Record<`set_${EnrollmentState}`, EnrollmentOutcome>;

/** Every event in every state; a missing cell does not compile. */
export const ENROLLMENT_TRANSITIONS: Readonly<
  Record<EnrollmentState | 'none', Readonly<Record<EnrollmentEvent, EnrollmentOutcome>>>
> = {
  none: { add: PLAIN, remove: LEFT, ...SET },
  waitlisted: { add: ENROLLED, remove: onlyTuple(WAITLISTED), ...SET },
  enrolled: { add: ENROLLED, remove: DROPPED, ...SET },
  active: { add: ACTIVE, remove: DROPPED, ...SET },
  completed: { add: ENROLLED, remove: onlyTuple(COMPLETED), ...SET },
  dropped: { add: ENROLLED, remove: onlyTuple(DROPPED), ...SET },
};

/** The state's number in the protocol and the database. */
export function enrollmentStateNumber(state: EnrollmentState): number {
  return ENROLLMENT_STATES.indexOf(state) + 1;
}

/** The state of a number; undefined for 0 (unspecified) and numbers that name none. */
export function enrollmentStateOf(number: number): EnrollmentState | undefined {
  return ENROLLMENT_STATES[number - 1];
}

function rowIn(next: EnrollmentState, tuple: 'present' | 'absent'): EnrollmentOutcome {
  return { next, tuple, needsTuple: false };
}

/** Removing who has no access: only a tuple that was written by hand is there to go. */
function onlyTuple(outcome: EnrollmentOutcome): EnrollmentOutcome {
  return { ...outcome, needsTuple: true };
}
