import { describe, expect, test } from 'vitest';
import { checkHistory } from '../../verify/checker/check-history.ts';
import type { Action, History, Operation, Update } from '../../verify/checker/history.ts';
import { createUniverse } from '../../verify/checker/universe.ts';

/* What updates ask of stored tuples, in histories that are a few operations long. */

const TUPLE = 9;
const insert = (more: Partial<Update> = {}): Update => ({ op: 'insert', tuple: TUPLE, ...more });
const remove = (more: Partial<Update> = {}): Update => ({ op: 'delete', tuple: TUPLE, ...more });

/** A write of these that was acknowledged at a revision; a mark goes with it, as in runs. */
function written(revision: number, ...updates: Update[]): Action {
  const mark: Update = { op: 'insert', tuple: revision % 8 };
  return { kind: 'write', updates: [mark, ...updates], reached: { epoch: 1, revision } };
}

/** A write of these that was refused for this reason. */
function refused(answer: string, ...updates: Update[]): Action {
  return { kind: 'read', query: { kind: 'modes', updates }, answer };
}

/** One after the other, unless `areAtOnce`. */
function isExplained(actions: readonly Action[], areAtOnce = false): boolean {
  const operations = actions.map((action, id): Operation => {
    const [called, returned] = areAtOnce ? [id, 100 + id] : [2 * id, 2 * id + 1];
    const place = { client: id, instance: 0, project: 0, tenant: 0 };
    return { id, ...place, action, outcome: 'ok', called, returned, calledMs: 0, returnedMs: 0 };
  });
  const history: History = {
    seed: 'modes',
    startedMs: 0,
    endedMs: 1,
    projects: [1],
    clockBoundMs: 0,
    universe: createUniverse(),
    operations,
    disturbances: [],
  };
  const { violations, undecided, brokenRules } = checkHistory(history);
  expect([undecided, brokenRules]).toEqual([[], []]);
  return violations.length === 0;
}

const absent = insert({ mode: 'absent' });
const present = remove({ mode: 'present' });
const identical = insert({ mode: 'identical' });

describe('an absent tuple', () => {
  test('is inserted once, until it is deleted', () => {
    expect(isExplained([written(1, absent), refused('TUPLE_EXISTS', absent)])).toBe(true);
    expect(isExplained([written(1, absent), written(2, remove()), written(3, absent)])).toBe(true);
    expect(isExplained([written(1, absent), written(2, absent)])).toBe(false);
    expect(isExplained([written(1, absent), written(2, absent)], true)).toBe(false);
  });

  test('is no reason to refuse', () => {
    expect(isExplained([refused('TUPLE_EXISTS', absent)])).toBe(false);
    expect(isExplained([written(1, insert()), refused('TUPLE_MISSING', present)])).toBe(false);
    // While another write is under way it may have been there.
    expect(isExplained([written(1, insert()), refused('TUPLE_EXISTS', absent)], true)).toBe(true);
  });
});

test('a delete of what must be stored is acknowledged only where it is', () => {
  expect(isExplained([written(1, insert()), written(2, present)])).toBe(true);
  expect(isExplained([written(1, present)])).toBe(false);
});

test('an identical tuple may be inserted again, another one not', () => {
  expect(isExplained([written(1, identical), written(2, identical)])).toBe(true);
  const expiring = insert({ mode: 'identical', expiresMs: 5_000 });
  expect(isExplained([written(1, identical), refused('TUPLE_DIFFERS', expiring)])).toBe(true);
  expect(isExplained([written(1, identical), written(2, expiring)])).toBe(false);
});

test('the first update that asks in vain gives the reason', () => {
  const other: Update = { op: 'delete', tuple: TUPLE + 1, mode: 'present' };
  const both = [absent, other];
  expect(isExplained([written(1, insert()), refused('TUPLE_EXISTS', ...both)])).toBe(true);
  expect(isExplained([written(1, insert()), refused('TUPLE_MISSING', ...both)])).toBe(false);
});
