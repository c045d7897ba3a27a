import { describe, expect, test } from 'vitest';
import type { Registration } from './instance-rows.ts';
import {
  acknowledged,
  becameAlone,
  ended,
  isAloneAt,
  type MemberState,
  nextStatement,
  NOBODY,
  registered,
  registering,
  renewed,
} from './member-state.ts';

/* What each answer makes of the state. That the whole protocol holds is explored by test/membership/. */

const SENT_MS = 1000;
const LEASE_MS = 200;
/** A tenth before the lease. */
const CLAIM_UNTIL_MS = 1180;

const SHARED: MemberState = {
  ...NOBODY,
  id: 'a',
  former: ['z'],
  mayWrite: true,
  term: 3,
  others: 1,
};
const ALONE: MemberState = {
  ...SHARED,
  isAlone: true,
  term: 4,
  others: 0,
  claimUntilMs: CLAIM_UNTIL_MS,
};
const ROW_ALONE: Registration = {
  isShared: false,
  mayWrite: true,
  term: 4,
  others: 0,
  fenced: 0,
  waitMs: null,
  databaseUs: 0n,
};
const ROW_SHARED: Registration = { ...ROW_ALONE, isShared: true };

describe('the next statement', () => {
  test('is a registration as long as there is none', () => {
    expect(nextStatement(NOBODY)).toBe('register');
    expect(nextStatement({ ...NOBODY, owedTerm: 1, mayWrite: true })).toBe('register');
  });

  test('is the acknowledgement that is owed, before all else', () => {
    expect(nextStatement({ ...SHARED, others: 0, owedTerm: 3 })).toBe('acknowledge');
    expect(nextStatement({ ...SHARED, owedTerm: 0 })).toBe('acknowledge');
  });

  test('is to become alone when nobody else is there and writing is allowed', () => {
    expect(nextStatement({ ...SHARED, others: 0 })).toBe('become alone');
    expect(nextStatement({ ...SHARED, others: 0, mayWrite: false })).toBe('renew');
    expect(nextStatement({ ...SHARED, others: 1 })).toBe('renew');
    expect(nextStatement(ALONE)).toBe('renew');
  });
});

describe('a registration', () => {
  test('that is sent ends what was known, and may have been made unseen', () => {
    expect(registering(ALONE, 'b')).toEqual({ ...NOBODY, former: ['z', 'b'] });
    expect(registering(ALONE, 'b').mayWrite).toBe(false);
  });

  test('that is answered is no former one any more', () => {
    const sent = registering(registering(NOBODY, 'a'), 'b');
    const row = { ...ROW_SHARED, mayWrite: false, term: 7, others: 2 };
    const state = { ...NOBODY, id: 'b', former: ['a'], mayWrite: false, term: 7, others: 2 };
    expect(registered(sent, 'b', row)).toEqual(state);
    expect(registered({ ...sent, isAlone: true, owedTerm: 2 }, 'b', row)).toEqual(state);
  });

  test('that ends is a former one; the end of another changes nothing', () => {
    expect(ended(ALONE, 'a')).toEqual({ ...NOBODY, former: ['z', 'a'] });
    expect(ended(ALONE, 'b')).toBe(ALONE);
  });

  test('the last sixteen former ones are kept', () => {
    let sent = NOBODY;
    for (let i = 0; i < 20; i++) sent = registering(sent, String(i));
    const last = Array.from({ length: 16 }, (_, i) => String(i + 4));
    expect(sent.former).toEqual(last);
    const { former } = ended({ ...sent, id: 'a' }, 'a');
    expect(former).toEqual([...last.slice(1), 'a']);
  });
});

describe('a renewal', () => {
  const renew = (state: MemberState, row: Parameters<typeof renewed>[1]): MemberState =>
    renewed(state, row, SENT_MS, LEASE_MS);

  test('of no registration says nothing', () => {
    expect(renew(NOBODY, ROW_SHARED)).toBe(NOBODY);
    expect(renew(NOBODY, undefined)).toBe(NOBODY);
  });

  test('that finds no row ends the registration', () => {
    expect(renew(ALONE, undefined)).toEqual({ ...NOBODY, former: ['z', 'a'] });
  });

  test('extends the claim from before it was sent, by less than the lease (M6)', () => {
    expect(renew({ ...ALONE, claimUntilMs: 5 }, ROW_ALONE)).toEqual(ALONE);
  });

  test('takes over what the row says', () => {
    const row = { ...ROW_SHARED, mayWrite: false, term: 9, others: 2 };
    expect(renew(SHARED, row)).toEqual({ ...SHARED, mayWrite: false, term: 9, others: 2 });
  });

  test('finds another one: alone ends at once, and is to be acknowledged', () => {
    const state = { ...ALONE, isAlone: false, others: 1, owedTerm: 4, claimUntilMs: 0 };
    expect(renew(ALONE, { ...ROW_ALONE, others: 1 })).toEqual(state);
  });

  test('finds a shared row: alone ends, and nothing is owed', () => {
    expect(renew(ALONE, ROW_SHARED)).toEqual({ ...ALONE, isAlone: false, claimUntilMs: 0 });
  });

  test('finds another term: that one is owed', () => {
    const state = { ...ALONE, isAlone: false, term: 5, owedTerm: 5, claimUntilMs: 0 };
    expect(renew(ALONE, { ...ROW_ALONE, term: 5 })).toEqual(state);
  });

  test('finds itself alone unknowingly: the answer was lost, and it is owed', () => {
    const state = { ...SHARED, term: 4, others: 0, owedTerm: 4 };
    expect(renew(SHARED, ROW_ALONE)).toEqual(state);
    expect(renew({ ...SHARED, term: 4 }, ROW_ALONE)).toEqual(state);
  });
});

test('an acknowledgement leaves nothing owed', () => {
  expect(acknowledged({ ...SHARED, owedTerm: 3 })).toEqual(SHARED);
});

describe('becoming alone', () => {
  test('counts from before it was sent', () => {
    expect(becameAlone({ ...SHARED, others: 0 }, 4, SENT_MS, LEASE_MS)).toEqual(ALONE);
  });

  test('refused, somebody else is there: not tried again before a renewal', () => {
    const refused = (others: number): MemberState =>
      becameAlone({ ...SHARED, others }, undefined, SENT_MS, LEASE_MS);
    expect(refused(0)).toEqual({ ...SHARED, others: 1 });
    expect(refused(3)).toEqual({ ...SHARED, others: 3 });
  });
});

test('is alone before the claim ends, and only then', () => {
  expect(isAloneAt(ALONE, CLAIM_UNTIL_MS - 1)).toBe(true);
  expect(isAloneAt(ALONE, CLAIM_UNTIL_MS)).toBe(false);
  expect(isAloneAt({ ...ALONE, isAlone: false }, 0)).toBe(false);
});
