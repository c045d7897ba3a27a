import { describe, expect, test } from 'vitest';
import {
  ENROLLMENT_STATES,
  ENROLLMENT_TRANSITIONS,
  type EnrollmentState,
  enrollmentStateNumber,
  enrollmentStateOf,
} from './enrollment.ts';

const ACCESS: Readonly<Record<EnrollmentState, boolean>> = {
  waitlisted: false,
  enrolled: true,
  active: true,
  completed: false,
  dropped: false,
};
const cells = Object.entries(ENROLLMENT_TRANSITIONS).flatMap(([state, row]) =>
  Object.entries(row).map(([event, outcome]) => ({ state, event, outcome })),
);

describe('enrollment transitions', () => {
  test('E1: the tuple follows the state of the row', () => {
    expect(cells).toHaveLength(6 * 7);
    for (const { outcome } of cells) {
      if (outcome.next === 'none') continue;
      expect(outcome.tuple).toBe(ACCESS[outcome.next] ? 'present' : 'absent');
    }
  });

  test('E3: no event ends a row', () => {
    for (const { state, outcome } of cells) {
      if (state !== 'none') expect(outcome.next).not.toBe('none');
    }
  });

  test('E4: any state may follow any, without a condition', () => {
    for (const from of [...ENROLLMENT_STATES, 'none'] as const) {
      for (const to of ENROLLMENT_STATES) {
        const outcome = ENROLLMENT_TRANSITIONS[from][`set_${to}`];
        expect(outcome).toMatchObject({ next: to, needsTuple: false });
      }
    }
  });

  test('E5: plain membership makes no row', () => {
    expect(ENROLLMENT_TRANSITIONS.none.add).toMatchObject({ next: 'none', tuple: 'present' });
    expect(ENROLLMENT_TRANSITIONS.none.remove).toMatchObject({ next: 'none', tuple: 'absent' });
  });

  test('adding gives access, and removing ends it', () => {
    for (const state of ENROLLMENT_STATES) {
      const { add, remove } = ENROLLMENT_TRANSITIONS[state];
      expect(add).toMatchObject({ next: state === 'active' ? 'active' : 'enrolled' });
      expect(remove).toMatchObject({
        next: ACCESS[state] ? 'dropped' : state,
        tuple: 'absent',
        needsTuple: !ACCESS[state],
      });
    }
  });

  test('numbers are those of the protocol', () => {
    expect(ENROLLMENT_STATES.map(enrollmentStateNumber)).toEqual([1, 2, 3, 4, 5]);
    expect([0, 1, 2, 3, 4, 5, 6, -1, 1.5].map(enrollmentStateOf)).toEqual([
      undefined,
      ...ENROLLMENT_STATES,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
