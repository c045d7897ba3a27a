import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AppError } from '../../shared/app-error.ts';
import { BodyBudget, type BodyHold, NO_OWNER } from './body-budget.ts';

const MIB = 2 ** 20;
const OVERHEAD_BYTES = 1_024;

/** A body that records its eviction. */
class Body {
  cut: AppError | null = null;
  readonly hold: BodyHold;

  constructor(budget: BodyBudget, owner: string) {
    this.hold = budget.open(owner, this);
  }

  evict(error: AppError): void {
    expect(this.hold.bytes).toBe(0);
    this.cut = error;
    this.hold.release();
  }
}

function budgetAt(bytesMax: number): { budget: BodyBudget; clock: { nowMs: number } } {
  const clock = { nowMs: 0 };
  return { budget: new BodyBudget({ bytesMax, now: () => clock.nowMs }), clock };
}

const owner = fc.constantFrom(NO_OWNER, 'ann', 'ben', 'cid');
const step = fc.oneof(
  fc.record({ open: owner }),
  fc.record({
    body: fc.nat(40),
    bytes: fc.integer({ min: 0, max: 300_000 }),
    isAwaited: fc.boolean(),
  }),
  fc.record({ moved: fc.nat(40), to: owner }),
  fc.record({ released: fc.nat(40) }),
  fc.record({ passedMs: fc.integer({ min: 0, max: 2_000 }) }),
);

test('bodies hold no more than the budget, owners no more than their shares, and all is given back (B1, B2)', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 250 }), (steps) => {
      const { budget, clock } = budgetAt(MIB);
      const bodies: Body[] = [];
      const chosen = (index: number): Body | undefined => bodies[index % (bodies.length || 1)];
      for (const one of steps) {
        if ('open' in one) bodies.push(new Body(budget, one.open));
        else if ('passedMs' in one) clock.nowMs += one.passedMs;
        else if ('released' in one) chosen(one.released)?.hold.release();
        else if ('moved' in one) {
          const hold = chosen(one.moved)?.hold;
          if (hold?.moveTo(one.to)) expect(hold.bytes).toBe(0);
        } else {
          const hold = chosen(one.body)?.hold;
          const before = hold?.bytes;
          if (hold?.resize(one.bytes, one.isAwaited)) expect(hold.bytes).toBe(before);
        }
        const held = bodies.reduce((sum, { hold }) => sum + hold.bytes, 0);
        expect(budget.heldBytes).toBe(held);
        expect(held).toBeLessThanOrEqual(budget.bytesMax);
        for (const name of ['ann', 'ben', 'cid', NO_OWNER]) {
          const own = bodies.filter(({ hold }) => hold.owner === name);
          const ownHeld = own.reduce((sum, { hold }) => sum + hold.bytes, 0);
          expect(budget.heldBytesOf(name)).toBe(ownHeld);
          expect(ownHeld).toBeLessThanOrEqual(name === NO_OWNER ? MIB / 8 : MIB / 2);
        }
      }
      for (const { hold } of bodies) hold.release();
      expect(budget.heldBytes).toBe(0);
      // A released hold stays empty, whatever is set late.
      for (const { hold } of bodies) expect(hold.resize(10_000, true)).toBeNull();
      expect(budget.heldBytes).toBe(0);
    }),
    { numRuns: 400 },
  );
});

test('who still sends is not cut: the next one is refused, with its share and when to try again', () => {
  const { budget, clock } = budgetAt(8 * MIB);
  const sending = Array.from({ length: 3 }, () => new Body(budget, 'ann'));
  for (const { hold } of sending) expect(hold.resize(MIB, true)).toBeNull();
  clock.nowMs = 900;
  const next = new Body(budget, 'ann');
  const full = next.hold.resize(MIB, true);
  expect(full?.reason).toBe('BODY_MEMORY_EXHAUSTED');
  expect(full?.metadata).toEqual({
    share: 'caller',
    limit_bytes: String(4 * MIB),
    retry_after_ms: '1000',
  });
  expect(sending.map(({ cut }) => cut)).toEqual([null, null, null]);
  expect(budget.counts.refused).toMatchObject({ caller: 1, process: 0, unauthenticated: 0 });
});

test('the one that was quiet for longest makes place, and no more than have to', () => {
  const { budget, clock } = budgetAt(8 * MIB);
  const quiet = Array.from({ length: 3 }, () => new Body(budget, 'ann'));
  for (const { hold } of quiet) {
    hold.resize(MIB, true);
    clock.nowMs += 10;
  }
  // The first one sends again.
  quiet[0]?.hold.resize(MIB + 1, true);
  const handled = new Body(budget, 'ann');
  handled.hold.resize(500_000, false);
  clock.nowMs += 1_500;
  const next = new Body(budget, 'ann');
  expect(next.hold.resize(MIB, true)).toBeNull();
  expect(quiet.map(({ cut }) => cut?.reason)).toEqual([
    undefined,
    'BODY_MEMORY_EXHAUSTED',
    undefined,
  ]);
  expect(handled.cut).toBeNull();
  expect(budget.counts.cut).toMatchObject({ caller: 1 });
});

test('callers that fill their shares leave each other theirs, and strangers have one of their own', () => {
  const { budget } = budgetAt(16 * MIB);
  const fill = (name: string): number => {
    let count = 0;
    while (new Body(budget, name).hold.resize(MIB - OVERHEAD_BYTES, true) === null) count += 1;
    return count;
  };
  expect(fill(NO_OWNER)).toBe(2);
  expect(fill('ann')).toBe(8);
  expect(new Body(budget, 'ben').hold.resize(MIB, true)).toBeNull();
  expect(fill('ben')).toBe(4);
  const stranger = new Body(budget, NO_OWNER);
  expect(stranger.hold.resize(1, true)?.metadata['share']).toBe('unauthenticated');
  expect(new Body(budget, 'cid').hold.resize(MIB, true)?.metadata['share']).toBe('process');
});

test('it is known late who sends: what is held counts as that of the caller, if it has room', () => {
  const { budget } = budgetAt(16 * MIB);
  const late = new Body(budget, NO_OWNER);
  late.hold.resize(MIB, true);
  expect(late.hold.moveTo('ann')).toBeNull();
  expect([budget.heldBytesOf(NO_OWNER), budget.heldBytesOf('ann')]).toEqual([
    0,
    MIB + OVERHEAD_BYTES,
  ]);
  const other = new Body(budget, 'ben');
  other.hold.resize(8 * MIB - OVERHEAD_BYTES, false);
  expect(late.hold.moveTo('ben')?.metadata['share']).toBe('caller');
  expect(budget.heldBytes).toBe(8 * MIB);
});
