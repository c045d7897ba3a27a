import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Moment, type Spec, type Timed, linearize } from '../../verify/checker/linearize.ts';

/** A register of numbers, as porcupine's first example: 0 at first. */
type RegisterOp =
  | { readonly kind: 'put'; readonly value: number }
  | { readonly kind: 'get'; readonly value: number }
  /** Sets `to` if it holds `from`; says whether it did. */
  | { readonly kind: 'cas'; readonly from: number; readonly to: number; readonly done: boolean };

class Register implements Spec<number, RegisterOp> {
  readonly initial = 0;

  keyOf(state: number): string {
    return String(state);
  }

  isMutation({ kind }: RegisterOp): boolean {
    return kind !== 'get';
  }

  step({ state }: Moment<number>, { operation }: Timed<RegisterOp>): readonly number[] {
    if (operation.kind === 'put') return [operation.value];
    if (operation.kind === 'get') throw new Error('a get changes nothing');
    if ((state === operation.from) !== operation.done) return [];
    return [operation.done ? operation.to : state];
  }

  answers({ state }: Moment<number>, { operation }: Timed<RegisterOp>): boolean {
    return operation.kind === 'get' && operation.value === state;
  }

  mayMatter(): boolean {
    return true;
  }

  twinKey(operation: RegisterOp): string {
    return JSON.stringify(operation);
  }
}

const put = (value: number, called: number, returned: number | null): Timed<RegisterOp> => ({
  operation: { kind: 'put', value },
  called,
  returned,
});
const get = (value: number, called: number, returned: number): Timed<RegisterOp> => ({
  operation: { kind: 'get', value },
  called,
  returned,
});
const cas = (
  from: number,
  to: number,
  done: boolean,
  called: number,
  returned: number | null,
): Timed<RegisterOp> => ({ operation: { kind: 'cas', from, to, done }, called, returned });

function verdictOf(history: readonly Timed<RegisterOp>[]): string {
  return linearize(new Register(), history).kind;
}

describe('known histories of a register', () => {
  test.each<[string, string, readonly Timed<RegisterOp>[]]>([
    ['nothing', 'linearizable', []],
    [
      'a get beside the put sees either',
      'linearizable',
      [put(100, 0, 100), get(100, 25, 75), get(0, 30, 60)],
    ],
    [
      'a get after one that saw the put',
      'violation',
      [put(200, 0, 100), get(200, 10, 30), get(0, 40, 90)],
    ],
    ['a stale get after the put', 'violation', [put(1, 0, 1), get(0, 2, 3)]],
    ['a get from the future', 'violation', [get(1, 0, 1), put(1, 2, 3)]],
    ['a value that nobody wrote', 'violation', [put(1, 0, 1), get(7, 2, 3)]],
    [
      'puts at once, seen in either order',
      'linearizable',
      [put(1, 0, 10), put(2, 1, 11), get(1, 12, 13)],
    ],
    [
      'puts at once, seen in both orders',
      'violation',
      [put(1, 0, 10), put(2, 1, 11), get(1, 12, 13), get(2, 14, 15)],
    ],
    [
      'back and forth while both are under way',
      'violation',
      [put(1, 0, 20), put(2, 1, 21), get(1, 2, 3), get(2, 4, 5), get(1, 6, 7)],
    ],
    [
      'an unknown put that is never seen',
      'linearizable',
      [put(1, 0, null), get(0, 1, 2), get(0, 3, 4)],
    ],
    [
      'an unknown put that is seen much later',
      'linearizable',
      [put(1, 0, null), get(0, 1, 2), put(2, 3, 4), get(2, 5, 6), get(1, 7, 8)],
    ],
    [
      'an unknown put that is seen twice over',
      'violation',
      [put(1, 0, null), get(1, 1, 2), put(2, 3, 4), get(2, 5, 6), get(1, 7, 8)],
    ],
    [
      'an unknown put that is seen before it was sent',
      'violation',
      [get(1, 0, 1), put(1, 2, null)],
    ],
    [
      'one cas of two that exclude each other',
      'linearizable',
      [cas(0, 1, true, 0, 10), cas(0, 2, false, 1, 9), get(1, 11, 12)],
    ],
    [
      'both of two that exclude each other',
      'violation',
      [cas(0, 1, true, 0, 10), cas(0, 2, true, 1, 9)],
    ],
    ['a failed cas that should have worked', 'violation', [put(3, 0, 1), cas(3, 4, false, 2, 3)]],
  ])('%s: %s', (_name, expected, history) => {
    expect(verdictOf(history)).toBe(expected);
    expect(verdictOf(history.toReversed())).toBe(expected);
  });
});

/** Every order that respects time, tried: what linearizability means. */
function isLinearizableByForce(history: readonly Timed<RegisterOp>[]): boolean {
  const register = new Register();
  const extend = (state: number, left: readonly Timed<RegisterOp>[]): boolean => {
    if (left.every(({ returned }) => returned === null)) return true;
    return left.some((timed) => {
      const isEarly = left.every(
        (other) => other === timed || other.returned === null || other.returned > timed.called,
      );
      if (!isEarly) return false;
      const moment = { state, at: 0, before: [] };
      const rest = left.filter((other) => other !== timed);
      if (timed.operation.kind === 'get')
        return register.answers(moment, timed) && extend(state, rest);
      return register.step(moment, timed).some((next) => extend(next, rest));
    });
  };
  const { initial } = register;
  return extend(
    initial,
    history.filter(({ operation, returned }) => operation.kind !== 'get' || returned !== null),
  );
}

const smallHistories = fc
  .array(
    fc.record({
      kind: fc.constantFrom('put', 'get', 'get', 'cas'),
      value: fc.integer({ min: 0, max: 2 }),
      to: fc.integer({ min: 0, max: 2 }),
      done: fc.boolean(),
      isLost: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
      length: fc.integer({ min: 1, max: 9 }),
      start: fc.integer({ min: 0, max: 20 }),
    }),
    { maxLength: 7, size: 'max' },
  )
  .map((drafts) =>
    drafts.map(({ kind, value, to, done, isLost, length, start }, index): Timed<RegisterOp> => {
      // No two events at one position.
      const called = start + index / 100;
      const returned = isLost ? null : start + length + index / 100 + 0.005;
      if (kind === 'put') return { operation: { kind: 'put', value }, called, returned };
      if (kind === 'get') return { operation: { kind: 'get', value }, called, returned };
      return { operation: { kind: 'cas', from: value, to, done }, called, returned };
    }),
  );

test('says of small histories what trying every order says', () => {
  const seen = { linearizable: 0, violation: 0 };
  fc.assert(
    fc.property(smallHistories, (history) => {
      const expected = isLinearizableByForce(history) ? 'linearizable' : 'violation';
      seen[expected]++;
      expect(verdictOf(history)).toBe(expected);
    }),
    { numRuns: 3_000 },
  );
  expect(Math.min(seen.linearizable, seen.violation)).toBeGreaterThan(300);
});

test('a search beyond its bounds says that it does not know', () => {
  const history = Array.from({ length: 16 }, (_, i) => put(i + 1, i, null));
  const bounds = { configurationsMax: 1_000_000, stepsMax: 10_000 };
  const verdict = linearize(new Register(), [...history, get(99, 50, 51)], bounds);
  expect(verdict).toMatchObject({ kind: 'undecided', reason: 'too many steps' });
  const few = { configurationsMax: 3, stepsMax: 1_000_000 };
  const wide = linearize(new Register(), [...history, put(99, 50, 51)], few);
  expect(wide).toMatchObject({ kind: 'undecided', reason: 'too many configurations' });
});

test('a violation names the operation and where the object can have been', () => {
  const verdict = linearize(new Register(), [put(1, 0, 1), put(2, 2, 9), get(7, 3, 4)]);
  expect(verdict).toEqual({
    kind: 'violation',
    operation: get(7, 3, 4),
    candidates: [1],
    pending: [put(2, 2, 9)],
  });
});
