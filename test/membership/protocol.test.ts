import { describe, expect, test } from 'vitest';
import { byLength, inLong } from '../support/test-length.ts';
import { explore } from './explore.ts';
import { type Bounds, RULES, type Rule } from './model.ts';

/* Every order of events within small bounds: with all rules nobody answers from before what was told. */

const LEAST: Bounds = {
  start: 'alone',
  instances: 2,
  writes: 1,
  ids: 1,
  crashes: 0,
  losses: 0,
  leaves: 0,
  queries: 1,
};
/** GATEHOUSE_MODEL_STATES=3000000 also explores what takes minutes. */
const STATES_MAX = Number(process.env['GATEHOUSE_MODEL_STATES'] ?? 150_000);

const COMPLETE: readonly Partial<Bounds>[] = [
  { start: 'shared', ids: 0, queries: 2 },
  { start: 'two', ids: 0 },
];
const LARGE: readonly Partial<Bounds>[] = [
  { ids: 0, losses: 1, queries: 2 },
  { leaves: 1 },
  { start: 'two', ids: 0, leaves: 1 },
];
const LONG: readonly Partial<Bounds>[] = [
  { start: 'shared' },
  { start: 'late' },
  { ids: 2 },
  { crashes: 1 },
  { losses: 1 },
  { start: 'two', crashes: 1 },
  { start: 'two', losses: 1 },
  { instances: 3, ids: 2 },
];

/** In which world the loss of a rule shows soonest. */
const SHOWN_BY: Readonly<Record<Rule, Partial<Bounds>>> = {
  'a write looks for its own row': {},
  'a write looks for its own row under the fence lock': {},
  'an ended lease is deleted, not ignored': {},
  'a renewal makes no row': {},
  'each registration has a new id': { crashes: 1, queries: 2 },
  'nothing is written before all others are in shared mode': {},
  'registering holds the fence lock': { start: 'shared' },
  'alone is left before it is acknowledged': {},
  'an acknowledgement names the term': { start: 'late' },
  'becoming alone waits for what was let in': { start: 'two', ids: 0 },
  'becoming alone forgets heads': { start: 'two', ids: 0 },
  'becoming alone forgets queries under way': { start: 'two', ids: 0 },
  'the claim counts from before the renewal was sent': {},
  'the claim ends before the lease': {},
  'commits under way are hidden': { queries: 2, ids: 0 },
  'commits under way are hidden when becoming alone': { start: 'shared', ids: 0, queries: 2 },
  'an unknown outcome stays hidden': { ids: 0, losses: 1, queries: 2 },
};

/** Those whose loss shows only after many states. */
const FAR: ReadonlySet<Rule> = new Set<Rule>([
  'a renewal makes no row',
  'a write looks for its own row',
  'a write looks for its own row under the fence lock',
  'an acknowledgement names the term',
  'each registration has a new id',
  'registering holds the fence lock',
  'the claim counts from before the renewal was sent',
  'the claim ends before the lease',
]);

const CHOSEN = byLength(COMPLETE, LARGE);
const CHOSEN_RULES = RULES.filter((rule) => FAR.has(rule) === byLength(false, true));

describe('the protocol of instances', { timeout: 600_000 }, () => {
  test.each(CHOSEN)('answers nothing stale, in any order of events: %o (M2, M3)', (bounds) => {
    const { violation, isComplete } = explore({ ...LEAST, ...bounds }, new Set(), STATES_MAX);
    expect(violation).toBeUndefined();
    expect(isComplete).toBe(true);
  });

  inLong(test)
    .runIf(STATES_MAX > 150_000)
    .each(LONG)('nor with more of them: %o', (bounds) => {
    const { violation, states } = explore({ ...LEAST, ...bounds }, new Set(), STATES_MAX);
    process.stdout.write(`${JSON.stringify(bounds)}: ${states} states\n`);
    expect(violation).toBeUndefined();
  });

  test.each(CHOSEN_RULES)('needs its rule: %s (M1, M4, M5, M6)', (rule) => {
    const { violation } = explore({ ...LEAST, ...SHOWN_BY[rule] }, new Set([rule]), 400_000);
    expect(violation).toBeDefined();
  });
});
