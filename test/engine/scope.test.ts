import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { ConditionCache, Scope } from '../../src/engine/bound/scope.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { systemClock } from '../../src/shared/time/clock.ts';

describe('prepared conditions', () => {
  const paramsOf = (age: number): string => JSON.stringify({ min_age: age });

  test('are prepared once for each name and parameters', () => {
    const cache = new ConditionCache();
    const first = cache.get('age_at_least', paramsOf(18));
    expect(cache.get('age_at_least', paramsOf(18))).toBe(first);
    expect(cache.get('age_at_least', paramsOf(21))).not.toBe(first);
    expect(cache.get('age_at_least', paramsOf(18))).toBe(first);
    expect(first({ age: 18 })).not.toBe(first({ age: 17 }));
  });

  test('are at most 1,024; then all are forgotten', () => {
    const cache = new ConditionCache();
    const first = cache.get('age_at_least', paramsOf(0));
    for (let age = 1; age < 1024; age++) cache.get('age_at_least', paramsOf(age));
    expect(cache.get('age_at_least', paramsOf(0))).toBe(first);
    cache.get('age_at_least', paramsOf(1024));
    expect(cache.get('age_at_least', paramsOf(0))).not.toBe(first);
  });

  test('are forgotten when their parameters have more than 1 Mi characters together', () => {
    const cache = new ConditionCache();
    const first = cache.get('age_at_least', paramsOf(1));
    const padded = (i: number): string => JSON.stringify({ min_age: i, pad: 'x'.repeat(1 << 18) });
    for (let i = 0; i < 3; i++) cache.get('age_at_least', padded(i));
    expect(cache.get('age_at_least', paramsOf(1))).toBe(first);
    for (let i = 3; i < 5; i++) cache.get('age_at_least', padded(i));
    expect(cache.get('age_at_least', paramsOf(1))).not.toBe(first);
  });

  test('are not remembered where that is off', () => {
    const cache = new ConditionCache(true);
    const first = cache.get('age_at_least', paramsOf(18));
    expect(cache.get('age_at_least', paramsOf(18))).not.toBe(first);
  });
});

test('a budget is exhausted by the read after its last one', () => {
  const reader = new TupleIndex();
  const scope = new Scope({
    reader,
    model: new BoundModel(parseModel('{"schema_version":1,"namespaces":{}}'), reader),
    clock: systemClock,
    conditions: new ConditionCache(),
    depthMax: 256,
    nowMs: 0,
    readBudget: 3,
    contextJson: '',
    relationText: 'doc#viewer',
  });
  scope.charge(2);
  scope.charge(1);
  expect(scope.isExhausted).toBe(false);
  expect(() => scope.charge(1)).toThrow(
    expect.objectContaining({ metadata: { relation: 'doc#viewer', limit: '3' } }),
  );
  expect(scope.isExhausted).toBe(true);
});
