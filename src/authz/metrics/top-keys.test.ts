import { expect, test } from 'vitest';
import { MetricStore } from '../../observability/metric-store.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { createProjectMetrics } from './project-metrics.ts';
import { TopKeys } from './top-keys.ts';

const MINUTE_MS = 60_000;

function clockFrom(startMs: number) {
  const clock = { ms: startMs };
  return {
    pass: (ms: number) => void (clock.ms += ms),
    clock: { nowMs: () => clock.ms, monotonicMs: () => clock.ms },
  };
}

test('the first ones are named at once, the others together', () => {
  const top = new TopKeys(2, clockFrom(0).clock);
  expect(['a', 'b', 'c'].map((key) => top.nameOf(key, 1))).toEqual(['a', 'b', 'other']);
});

test('who leads clearly takes the name of the weakest, once a minute', () => {
  const { clock, pass } = clockFrom(0);
  const top = new TopKeys(2, clock);
  top.nameOf('a', 100);
  top.nameOf('b', 10);
  expect(top.nameOf('c', 15)).toBe('other');
  pass(MINUTE_MS);
  // Not twice as much as the weakest.
  expect(top.nameOf('c', 1)).toBe('other');
  expect(top.nameOf('c', 50)).toBe('other');
  pass(MINUTE_MS);
  expect(top.nameOf('c', 1)).toBe('c');
  expect(top.names().toSorted()).toEqual(['a', 'c']);
  expect(top.nameOf('b', 1)).toBe('other');
});

test('what was long ago weighs little', () => {
  const { clock, pass } = clockFrom(0);
  const top = new TopKeys(1, clock);
  top.nameOf('old', 1_000_000);
  for (let minute = 0; minute < 30; minute++) {
    pass(MINUTE_MS);
    top.nameOf('new', 10);
  }
  expect(top.names()).toEqual(['new']);
});

test('names are bounded whatever comes, and memory with them', () => {
  const { clock, pass } = clockFrom(0);
  const top = new TopKeys(20, clock);
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 5_000; i++) top.nameOf(`p${round}-${i}`, i + 1);
    pass(MINUTE_MS);
  }
  expect(top.names().length).toBe(20);
});

test('a project that is called other counts as one of the others', () => {
  const top = new TopKeys(5, clockFrom(0).clock);
  expect(top.nameOf('other', 100)).toBe('other');
  expect(top.names()).toEqual([]);
});

test('series by project only grow, and add up to all that was counted', async () => {
  const store = new MetricStore();
  const projects = createProjectMetrics(store, systemClock, 2);
  const shares = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const figures = (projectId: string, reads: number) => ({
    projectId,
    budget: 100,
    buckets: [1, 1],
    shares,
    reads,
    readsMax: 1,
    refusals: 1,
  });
  const before = new Map<string, number>();
  let total = 0;
  for (let round = 0; round < 200; round++) {
    const projectId = ['a', 'b', 'c', 'd', 'other', ''][round % 6] ?? '';
    projects.add([figures(projectId, round + 1)]);
    total += round + 1;
    if (round % 20 !== 19) continue;
    const text = await store.render();
    let sum = 0;
    for (const [, name = '', value] of text.matchAll(
      /^gatehouse_project_reads_total\{project="([^"]*)"\} (\d+)$/gm,
    )) {
      sum += Number(value);
      expect(Number(value)).toBeGreaterThanOrEqual(before.get(name) ?? 0);
      before.set(name, Number(value));
    }
    expect(sum).toBe(total);
  }
  expect([...before.keys()].toSorted()).toEqual(['a', 'b', 'other']);
});
