import { describe, expect, test } from 'vitest';
import { checkHistory } from '../../verify/checker/check-history.ts';
import type { Action, History, Operation, Position } from '../../verify/checker/history.ts';
import { MARKER, MARKS, createUniverse } from '../../verify/checker/universe.ts';

/** Epochs before and after the failover. */
const [OLD, NEW] = [7, 9];

type Timing = { readonly called: number; readonly returned: number };
/** Where nothing else is said an operation is acknowledged. */
type Made = Timing & { readonly action: Action; readonly outcome?: Operation['outcome'] };

const at = (epoch: number, revision: number): Position => ({ epoch, revision });

/** Inserts a mark; `reached` is what its token says. */
function write(mark: number, [called, returned]: [number, number], reached?: Position): Made {
  const action: Action = { kind: 'write', updates: [{ op: 'insert', tuple: mark }], reached };
  return { action, called, returned, outcome: reached === undefined ? 'unknown' : 'ok' };
}

/** Lists the marks that are set; finds `marks`. */
function read(
  marks: readonly number[],
  [called, returned]: [number, number],
  atLeast?: Position,
): Made {
  const query = { kind: 'list', namespace: 'mark', relation: 'at', user: MARKER } as const;
  const answer = marks.map((mark) => MARKS[mark]).join(',');
  return { action: { kind: 'read', query, answer, atLeast }, called, returned };
}

/** The old server is gone at `lostAt`; from `returned` on no instance can answer without knowing that. */
function failover([called, lostAt, returned]: [number, number, number], syncedAt = 5): Made {
  return { action: { kind: 'failover', syncedAt, lostAt, epoch: NEW }, called, returned };
}

function historyOf(made: readonly Made[]): History {
  const operations = made.map(({ action, called, returned, outcome = 'ok' }, id): Operation => {
    const place = action.kind === 'failover' ? -1 : 0;
    const whose = { id, client: id, instance: place, project: place, tenant: place };
    return { ...whose, action, outcome, called, returned, calledMs: called, returnedMs: returned };
  });
  return {
    seed: 'made',
    startedMs: 0,
    endedMs: 0,
    projects: [1],
    clockBoundMs: 0,
    universe: createUniverse(),
    operations: operations.toSorted((a, b) => a.called - b.called),
    disturbances: [],
  };
}

function verdictOf(made: readonly Made[]): string {
  const { violations, undecided, brokenRules } = checkHistory(historyOf(made));
  if (undecided.length > 0) return 'undecided';
  return violations.length + brokenRules.length > 0 ? 'violation' : 'linearizable';
}

/** Two writes that the standby has, and a third that it lacks. */
const BEFORE = [
  write(0, [0, 1], at(OLD, 1)),
  write(1, [2, 3], at(OLD, 2)),
  write(2, [10, 11], at(OLD, 3)),
];
const FAILOVER = failover([20, 22, 60]);

describe('a failover that loses the last writes', () => {
  test.each<[string, string, readonly Made[]]>([
    ['what was lost is not seen any more', 'linearizable', [read([0, 1], [30, 31])]],
    ['what the standby had was lost', 'violation', [read([0], [30, 31])]],
    [
      'one sees what was kept, and what was lost after that',
      'violation',
      [read([0, 1], [30, 31]), read([0, 1, 2], [32, 33])],
    ],
    [
      'the next position follows what was kept',
      'linearizable',
      [write(3, [70, 71], at(NEW, 3)), read([0, 1, 3], [72, 73])],
    ],
    [
      'a position of the new history is left out',
      'violation',
      [write(3, [70, 71], at(NEW, 5)), read([0, 1, 3], [72, 73])],
    ],
  ])('%s: %s', (_, verdict, made) => {
    expect(verdictOf([...BEFORE, FAILOVER, ...made])).toBe(verdict);
  });
});

describe('a write that was under way', () => {
  const underWay = write(4, [12, 65], at(NEW, 3));
  test.each<[string, string, readonly Made[]]>([
    [
      'was seen in the history that was lost, and is in the new one once more',
      'linearizable',
      [underWay, read([0, 1, 2, 4], [14, 15]), read([0, 1, 4], [66, 67])],
    ],
    [
      'was seen there by a token after others saw the new history',
      'linearizable',
      [underWay, read([0, 1], [30, 31]), read([0, 1, 2, 4], [32, 33], at(OLD, 3))],
    ],
    [
      'is not in the new history, which acknowledged it',
      'violation',
      [underWay, read([0, 1, 2, 4], [14, 15]), read([0, 1], [66, 67])],
    ],
    [
      'is in the new history, was lost again, and came again',
      'violation',
      [underWay, read([0, 1, 4], [30, 31]), read([0, 1], [32, 33]), read([0, 1, 4], [66, 67])],
    ],
    [
      'of unknown outcome was seen and lost',
      'linearizable',
      [write(4, [12, 21]), read([0, 1, 2, 4], [14, 15]), read([0, 1], [66, 67])],
    ],
    [
      'was seen in the lost history although it was sent after that was gone',
      'violation',
      [
        write(4, [25, 65], at(NEW, 3)),
        read([0, 1], [26, 27]),
        read([0, 1, 2, 4], [28, 29], at(OLD, 3)),
      ],
    ],
    [
      'counts once in the lost history',
      'violation',
      [
        underWay,
        read([0, 1, 2, 4], [14, 15], at(OLD, 3)),
        write(5, [16, 17], at(OLD, 6)),
        read([0, 1, 4], [66, 67]),
      ],
    ],
  ])('%s: %s', (_, verdict, made) => {
    expect(verdictOf([...BEFORE, FAILOVER, ...made])).toBe(verdict);
  });
});

describe('a read with a token of the lost history', () => {
  const sawNew = read([0, 1], [30, 31]);
  test.each<[string, string, readonly Made[]]>([
    [
      'is answered by an instance that has not heard of the failover, after others have',
      'linearizable',
      [sawNew, read([0, 1, 2], [32, 33], at(OLD, 3))],
    ],
    [
      'does not show the write that the token names',
      'violation',
      [sawNew, read([0, 1], [32, 33], at(OLD, 3))],
    ],
    [
      'is answered from the new history',
      'violation',
      [
        sawNew,
        write(3, [40, 61], at(NEW, 3)),
        read([0, 1, 3], [62, 63]),
        read([0, 1, 3], [64, 65], at(OLD, 2)),
      ],
    ],
    [
      'is answered when no instance can do that any more',
      'violation',
      [sawNew, read([0, 1, 2], [61, 62], at(OLD, 3))],
    ],
    [
      'that names no write of the lost part is held to that, too',
      'violation',
      [sawNew, read([0, 1, 2], [61, 62], at(OLD, 2))],
    ],
    [
      'of the new history is not answered from the lost one',
      'violation',
      [sawNew, write(3, [40, 41], at(NEW, 3)), read([0, 1, 2], [42, 43], at(NEW, 3))],
    ],
  ])('%s: %s', (_, verdict, made) => {
    expect(verdictOf([...BEFORE, FAILOVER, ...made])).toBe(verdict);
  });
});

test('what was under way is not tried any more when the failover is over', () => {
  // Each of these may have been in the lost history, in any order.
  const underWay = [3, 4, 5, 6, 7].map((mark, i) =>
    write(mark, [12 + i / 10, 61 + i], at(NEW, 3 + i)),
  );
  const later = Array.from({ length: 300 }, (_, i) =>
    write(i % 8, [100 + 2 * i, 101 + 2 * i], at(NEW, 8 + i)),
  );
  const history = historyOf([...BEFORE, FAILOVER, ...underWay, read([0, 1], [30, 31]), ...later]);
  const { violations, undecided, steps } = checkHistory(history);
  expect([violations, undecided]).toEqual([[], []]);
  expect(steps).toBeLessThan(10_000);
});
